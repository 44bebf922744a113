"""What each rung is there to show, shown by its counters and its code."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import pytest
from kernel_runs import loops

from gemmsim.api import Counted, count
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Program
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.notation import parse_tunables

pytest.importorskip("numba_cuda")


MOSTLY_PRODUCTS = [
    ("blocktile_2d", ()),
    ("register_blocked", ()),
    ("rectangular", ()),
    ("vectorized", ()),
    ("warptiled", ()),
    ("double_buffered", ()),
    ("async_pipelined", ()),
    ("split_k", ()),
    ("persistent", ()),
    ("fused_epilogue", ()),
    ("hgemm_warptiled", ()),
]

STAY_IN_REGISTERS = [
    "vectorized", "warptiled", "double_buffered", "async_pipelined", "split_k", "persistent", "fused_epilogue",
    "hgemm_warptiled",
]  # fmt: skip
# Tunables that test_kernels_compute.py changes, too, are compiled once for both files, as it is for sm_90.
ALSO_RUN_FOR = "h200"


@lru_cache(maxsize=32)
def counted(name: str, *tunables: str, size: int = 64, gpu: str = "a100") -> Counted:
    """The rung at M = N = K = size."""
    chosen = parse_tunables(tunables, "tunables")
    return count(ladder_launch(LadderCase(name, size, size, size, tunables=chosen), load_gpu(gpu)))


def wavefronts_per_request(name: str, *tunables: str) -> dict[str, set[float]]:
    """{"LDS.128": {2.0}, ...}: of each shared memory instruction."""
    run, found = counted(name, *tunables), defaultdict(set)
    for row in run.traffic.instructions:
        if row.space == "shared":
            found[run.program.instructions[row.index].mnemonic].add(row.wavefronts / row.requests)
    return dict(found)


def conflicts(name: str, *tunables: str) -> float:
    return sum(row.conflicts for row in counted(name, *tunables).traffic.instructions if row.space == "shared")


def sectors_per_request(name: str, line: str) -> set[float]:
    """Of the global loads and stores in source lines that contain `line`."""
    run = counted(name)
    found = set()
    for row in run.traffic.instructions:
        source = run.program.instructions[row.index].sources[0]
        if row.space == "global" and line in run.program.source[source.file].splitlines()[source.line - 1]:
            found.add(row.sectors / row.requests)
    return found


def executed(run: Counted, opcode: str, within: range | None = None) -> float:
    """Warp instructions executed whose opcode begins so, in a range of the code."""
    a_warp = run.execution.trace.weight @ run.execution.trace.executed
    code = run.program.instructions
    return sum(float(a_warp[i]) for i in within or range(len(code)) if code[i].opcode.startswith(opcode))


def requests(run: Counted, *opcodes: str) -> float:
    """Executions of global memory instructions in which any lane accessed memory."""
    code = run.program.instructions
    return sum(row.requests for row in run.traffic.instructions if code[row.index].opcode in opcodes)


def k_loop(program: Program) -> range:
    """The largest loop with products in it."""
    with_products = [loop for loop in loops(program) if any(program.instructions[i].opcode == "FFMA" for i in loop)]
    return max(with_products, key=len)


def test_transposed_tile_conflicts_32_ways() -> None:
    """32 lanes, 32 rows of 128 bytes: every word of a column lies in the same bank. tile_a is still a broadcast."""
    shared = wavefronts_per_request("tiled_transposed")
    assert shared["STS"] == {1.0, 32.0}
    assert 32.0 in shared["LDS.128"]


@pytest.mark.parametrize(("name", "tile"), [("tiled_padded", 32), ("tiled_swizzled", 16), ("tiled_swizzled", 32)])
def test_padding_and_swizzle_cure_it(name: str, tile: int) -> None:
    assert conflicts(name, f"tile={tile}") == 0
    assert wavefronts_per_request(name, f"tile={tile}")["STS"] == {1.0}


def test_padding_costs_memory_and_the_swizzle_does_not() -> None:
    """2 x 32 x 32 words, and 32 words of padding."""
    shared = {name: counted(name).program.static_shared_bytes for name in ("tiled_padded", "tiled_swizzled")}
    assert shared == {"tiled_padded": (2 * 32 * 32 + 32) * 4, "tiled_swizzled": 2 * 32 * 32 * 4}


def test_rows_of_a_transposed_b_take_a_sector_a_lane() -> None:
    """A is one address that all lanes share, B 32 rows; the same line holds both loads."""
    assert sectors_per_request("coalesced", "acc +=") == {1.0, 4.0}
    assert sectors_per_request("uncoalesced_bt", "acc +=") == {1.0, 32.0}


def test_shuffles_replace_shared_memory() -> None:
    """A shuffle for each product, and neither shared memory nor a barrier."""
    run = counted("warp_shuffle")
    assert run.program.static_shared_bytes == 0 and executed(run, "BAR") == 0
    assert executed(run, "SHFL") == 64**3 / 32


def test_two_by_two_halves_the_loads() -> None:
    """Four loads for four products: one a product, where `coalesced` has two. (C is not read: beta is 0.)."""
    loads = {name: executed(counted(name), "LDG") for name in ("coalesced", "register_tiled")}
    assert loads == {"coalesced": 2 * 64**3 / 32, "register_tiled": 64**3 / 32}


def shared_loads_per_product(name: str) -> float:
    run = counted(name, size=128)
    return executed(run, "LDS") / executed(run, "FFMA", k_loop(run.program))


def test_larger_tiles_a_thread_read_less_shared_memory() -> None:
    """A k of a thread, of tiled: 1 of B, 1/4 of A (128 bits, four k) for 1 product; of 1D: 1 and 8/4 for 8; of 2D: 8/4
    and 8/4 for 64; of warptiled: 8/4 and 16/4 for 128."""
    names = ("tiled", "blocktile_1d", "blocktile_2d", "vectorized", "warptiled")
    assert [shared_loads_per_product(name) for name in names] == [1.25, 3 / 8, 4 / 64, 4 / 64, 6 / 128]


@pytest.mark.parametrize(
    "gpu", ["a100", "rtx5070ti", *(pytest.param(gpu, marks=pytest.mark.slow) for gpu in ("rtx3050", "rtx4090", "h200"))]
)
@pytest.mark.parametrize(("name", "tunables"), MOSTLY_PRODUCTS)
def test_index_arithmetic_does_not_drown_the_products(name: str, tunables: tuple[str, ...], gpu: str) -> None:
    """Of the instructions issued in the K loop at least 60 % are FFMA."""
    run = counted(name, *tunables, size=256, gpu=gpu)
    loop = k_loop(run.program)
    assert executed(run, "FFMA", loop) >= 0.6 * executed(run, "", loop)


def test_sixteen_by_sixteen_spills() -> None:
    """256 sums do not fit in 255 registers; 8 x 8 keep clear of local memory."""
    assert counted("blocktile_2d").program.local_bytes == 0
    run = counted("blocktile_2d", "tm=16", "tn=16")
    assert run.program.registers == 255
    assert executed(run, "STL", k_loop(run.program)) > 0 and executed(run, "LDL", k_loop(run.program)) > 0


def test_neighbours_words_do_not_conflict() -> None:
    """A warp reads 16 neighbouring words of B in one wavefront; four words each of two rows of A are two half-warps.

    Stores are another matter: 16 words each of two rows of tile_b, which begin in the same bank.
    """
    for name in ("register_blocked", "rectangular"):
        found = wavefronts_per_request(name)
        assert (found["LDS"], found["LDS.128"], found["STS"]) == ({1.0}, {2.0}, {1.0, 2.0})


def test_words_eight_apart_conflict() -> None:
    """A quarter-warp reads 16 bytes of B every 32 bytes: 2 wavefronts, 8 in all; of A as above."""
    assert wavefronts_per_request("blocktile_2d")["LDS.128"] == {2.0, 8.0}


@pytest.mark.parametrize("unroll", [1, pytest.param(2, marks=pytest.mark.slow), 4, 8])
def test_unrolled_as_asked(unroll: int) -> None:
    """The loop in the K loop holds 32 products of each k."""
    program = counted("rectangular", f"unroll={unroll}", gpu=ALSO_RUN_FOR).program
    inner = min((loop for loop in loops(program) if loop.start in k_loop(program)), key=len)
    assert sum(program.instructions[i].opcode == "FFMA" for i in inner) == 32 * unroll


@pytest.mark.parametrize("name", ["vectorized", "warptiled", "double_buffered", "persistent"])
def test_global_memory_moves_16_bytes_a_lane(name: str) -> None:
    """Where rows are whole fours, nothing but LDG.128 and STG.128 is executed.

    Two stores fill the 8 columns of a thread of vectorized: 16 bytes of each sector at a time, so each is sent twice.
    Four lanes of warptiled fill 64 neighbouring bytes.
    """
    run = counted(name, size=128)
    rows = [row for row in run.traffic.instructions if row.space == "global" and row.requests]
    assert {row.width_bytes for row in rows} == {16}
    sent = 2 if name == "vectorized" else 1
    assert sum(row.sectors for row in rows if row.op == "st") == sent * 128 * 128 * 4 / 32


@pytest.mark.parametrize("name", STAY_IN_REGISTERS)
def test_sums_stay_in_registers(name: str) -> None:
    assert counted(name, size=128).program.local_bytes == 0


def test_copies_take_no_way_through_registers() -> None:
    """128 rows of A by word, 32 a warp: 4 rows of 8 words are 4 sectors, in 32 banks; B as before. Nothing is stored
    to shared memory otherwise, and one barrier a tile is enough."""
    run = counted("async_pipelined", size=128)
    assert executed(run, "STS") == 0
    copies = [row for row in run.traffic.instructions if row.op == "ldgsts" and row.requests]
    assert requests(run, "LDG") == 0 and sum(row.requests for row in copies) == (128 * 128 + 128 * 128 / 4) / 32
    assert {(row.width_bytes, row.sectors / row.requests) for row in copies} == {(4, 4.0), (16, 16.0)}
    assert executed(run, "BAR") == (1 + 128 / 8) * 4


def test_half_precision_halves_the_sectors() -> None:
    def sectors(name: str) -> float:
        rows = counted(name, size=128).traffic.instructions
        return sum(row.sectors for row in rows if (row.space, row.op) == ("global", "ld"))

    assert sectors("hgemm_warptiled") == sectors("warptiled") / 2


def test_the_epilogue_reads_the_bias_alone() -> None:
    """Beyond what warptiled reads: 16 words of the bias a thread, 16 bytes of four lanes beside each other; and one
    maximum an element of C."""
    plain, fused = counted("warptiled", size=128), counted("fused_epilogue", size=128)
    assert requests(fused, "LDG") - requests(plain, "LDG") == 4 * 4
    assert requests(fused, "STG") == requests(plain, "STG")
    assert executed(fused, "FMNMX") == 128 * 128 / 32


@pytest.mark.parametrize("atomics", [0, 1])
def test_the_price_of_split_k(atomics: int) -> None:
    """Two sheets of 64 x 64 are stored and read once; or 2 x 64 x 64 words are added to one, which is read and cleared.

    C is the tile of one warp: its 32 lanes have 128 elements each.
    """
    run = counted("split_k", "splits=2", f"atomics={atomics}", gpu=ALSO_RUN_FOR)
    moved = [row for row in run.traffic.instructions if row.space == "global"]
    c, blocks = 64 * 64 * 4 / 32, 2  # sectors of C
    stored = sum(row.sectors for row in moved if row.op == "st")
    assert executed(run, "ATOMG") == blocks
    assert requests(run, "RED", "REDG") == (128 * blocks if atomics else 0)
    counters = 1
    assert stored == (c + c if atomics else blocks * c + c) + counters


def test_strips_cure_the_conflicts_of_b() -> None:
    """A quarter-warp of warptiled reads four neighbouring 16 bytes of B: at most the 4 wavefronts of 128 bits."""
    assert max(wavefronts_per_request("vectorized")["LDS.128"]) == 8.0
    assert max(wavefronts_per_request("warptiled")["LDS.128"]) <= 4.0


def test_two_pairs_of_tiles_need_one_barrier() -> None:
    """128 / 16 tiles: two barriers each and 4 warps; with two pairs one each, and one before the first."""
    both = {name: counted(name, "bk=16", size=128, gpu=ALSO_RUN_FOR) for name in ("warptiled", "double_buffered")}
    barriers = {name: executed(run, "BAR") for name, run in both.items()}
    assert barriers == {"warptiled": 2 * 8 * 4, "double_buffered": (8 + 1) * 4}
