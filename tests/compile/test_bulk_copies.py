"""Bulk copies and TMA's copies of tiles: shared memory and arrays byte by byte against a twin in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programs import SOURCES, cuda_program
from tile_twin import loaded, stored

pytest.importorskip("cuda.bindings")

from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin
from gemmsim.launch.tensor_maps import Tile, encoded
from gemmsim.support.errors import GemmsimError
from gemmsim.trace import words
from gemmsim.trace.blocks.choice import plan
from gemmsim.trace.blocks.classes import classes_of
from gemmsim.trace.engine import trace_buffers
from gemmsim.trace.execute import Executor
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Address, Argument, Launch, Packed, active_lanes

ARCHITECTURES = ("sm_90", "sm_120")
FILE = "bulk_copies.cu"
# shape, box, swizzle, steps, place: sizes and places in the order of the array's shape
TILES = {
    "plain": ("f16", (96, 128), (16, 64), "none", (1, 1), (32, 64)),
    "sw128": ("f16", (96, 128), (64, 64), "128B", (1, 1), (16, 64)),
    "sw64": ("f16", (96, 128), (32, 32), "64B", (1, 1), (16, 32)),
    "sw32": ("f16", (96, 128), (32, 16), "32B", (1, 1), (16, 48)),
    "over": ("f16", (90, 120), (64, 64), "128B", (1, 1), (48, 64)),
    "under": ("f16", (90, 120), (64, 64), "128B", (1, 1), (-8, -16)),
    "odd": ("f16", (90, 120), (64, 64), "128B", (1, 1), (3, 56)),
    "outside": ("f16", (90, 120), (64, 64), "128B", (1, 1), (3, 200)),
    "step": ("f16", (96, 128), (16, 64), "none", (3, 1), (8, 16)),
    "bytes": ("u8", (64, 256), (32, 112), "none", (1, 1), (5, 48)),
    "one": ("f32", (1000,), (128,), "none", (1,), (900,)),
    "three": ("f16", (5, 40, 64), (2, 16, 64), "128B", (1, 1, 1), (3, 30, 0)),
    "four": ("f32", (3, 4, 20, 16), (2, 2, 8, 8), "32B", (1, 1, 1, 1), (1, 3, 15, 4)),
    "five": ("u32", (2, 3, 4, 5, 8), (2, 2, 2, 4, 4), "none", (1, 1, 1, 1, 1), (1, 1, 3, 2, 4)),
}
KINDS = {"f16": "float16", "f32": "float32", "u8": "uint8", "u32": "uint32"}


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(KINDS[dtype])


def run(entry: str, arch: str, args: list[Argument], parameters: list[int | Packed], shared: int) -> list[np.ndarray]:
    """What the arrays among `args` hold after a block of 64 threads."""
    launch = Launch((1, 1, 1), (64, 1, 1), tuple(args), shared, tuple(parameters))
    outputs = Executor(cuda_program(FILE, entry, arch), launch, 2_000_000).run([0]).outputs
    return [one for one in outputs if one is not None]


def prepared(name: str) -> tuple[Argument, Packed, Argument]:
    """The array of a case, the tensor map of it, and the coordinates as the instruction takes them."""
    dtype, shape, box, swizzle, steps, at = TILES[name]
    array = Argument(dtype, shape, numbers(dtype, shape, 1), "A")
    content = encoded(Tile(box, swizzle, steps=steps), array, 0, "map")
    return array, Packed(content, (Address(0, 0),)), Argument("i32", (len(at),), np.array(at[::-1], np.int32))


@pytest.mark.parametrize(
    ("name", "arch"), [*((name, "sm_90") for name in TILES), ("over", "sm_120"), ("three", "sm_120")]
)
def test_a_tile_in_shared_memory(name: str, arch: str) -> None:
    _, shape, box, swizzle, steps, at = TILES[name]
    array, tensor_map, where = prepared(name)
    expected = loaded(np.asarray(array.value), box, swizzle, steps, at)
    out = Argument("u8", expected.shape, np.zeros(expected.shape, np.uint8))
    args = [array, where, out, Argument("i32", (), expected.size)]
    found = run(f"load{len(shape)}", arch, args, [tensor_map, 1, 2, 3], expected.size)[2]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("name", ["sw128", "over", "odd", "step", "three", "four", "five"])
def test_a_tile_is_stored_or_added_where_the_array_is(name: str, adds: bool) -> None:
    dtype, shape, box, swizzle, steps, at = TILES[name]
    array, tensor_map, where = prepared(name)
    size = loaded(np.asarray(array.value), box, swizzle, steps, at).size
    tile = numbers(dtype, (size // np.dtype(KINDS[dtype]).itemsize,), 2)
    args = [array, where, Argument(dtype, tile.shape, tile), Argument("i32", (), size)]
    entry = f"{'add' if adds else 'store'}{len(shape)}"
    found = run(entry, "sm_90", args, [tensor_map, 1, 2, 3], size)[0]
    np.testing.assert_array_equal(found, stored(np.asarray(array.value), tile, box, swizzle, steps, at, adds))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_runs_of_bytes(arch: str) -> None:
    given = numbers("u32", (256,), 1)
    args = [Argument("u32", (256,), given), Argument("u32", (256,), given * 0), Argument("i32", (), 1024)]
    found = run("through", arch, args, [0, 1, 2], 1024)[1]
    np.testing.assert_array_equal(found, 2 * (given + 1))


def test_a_map_in_global_memory_and_bytes_that_come_before_they_are_expected() -> None:
    array, tensor_map, where = prepared("over")
    expected = loaded(np.asarray(array.value), *TILES["over"][2:])
    held = Argument("u8", (128,), np.frombuffer(tensor_map.content, np.uint8), addresses=tensor_map.addresses)
    out = Argument("u8", expected.shape, np.zeros(expected.shape, np.uint8))
    args = [array, held, where, out, Argument("i32", (), expected.size)]
    found = run("by_pointer", "sm_90", args, [1, 2, 3, 4], expected.size)[3]
    np.testing.assert_array_equal(found, expected)


def test_the_compiler_writes_the_same_map() -> None:
    """tensormap.replace, which is loads and stores of the map's bytes, sets all of its fields."""
    path = SOURCES / FILE
    cubin = compile_cuda(CudaKernel("#define MAPS\n" + path.read_text(), path), "sm_90a")[0]
    program = decode_cubin(cubin, "make_map", "sm_90a", abi="c")
    array = Argument("f16", (7, 33, 80), np.zeros((7, 33, 80), np.float16), "A")
    tile = Tile((3, 20, 64), "128B", "nan", steps=(2, 5, 1), shape=(7, 33, 72), strides=(1 << 36, 1 << 7, 1))
    n = Argument("i32", (8,), np.array([64, 20, 3, 72, 33, 7, 5, 2], np.int32))
    blank = Argument("u8", (128,), np.zeros(128, np.uint8))
    strides = [Argument("u64", (), 1 << 8), Argument("u64", (), 1 << 37)]
    launch = Launch((1, 1, 1), (1, 1, 1), (blank, array, n, *strides))
    executor = Executor(program, launch, 10_000)
    made = executor.run([0]).outputs[0]
    address = executor.memory.pointers[1]
    assert made is not None and address is not None
    assert made.tobytes() == address.to_bytes(8, "little") + encoded(tile, array, 0, "map")[8:]


def test_classes_of_blocks_with_tiles_of_their_own() -> None:
    """The tiles at the right and the lower edge are copied as all others, with zeros."""
    array = Argument("f16", (500, 304), numbers("f16", (500, 304), 1), "A")
    tensor_map = Packed(encoded(Tile((32, 64), "128B"), array, 0, "map"), (Address(0, 0),))
    size = 32 * 64 * 2
    out = Argument("u8", (80, size), np.zeros((80, size), np.uint8))
    args = (array, out, *(Argument("i32", (), n) for n in (32, size, size)))
    launch = Launch((5, 16, 1), (64, 1, 1), args, size, (tensor_map, 1, 2, 3, 4))
    executor = Executor(cuda_program(FILE, "tiles", "sm_90"), launch, 2_000_000)
    found = executor.run(range(80)).outputs[1]
    assert found is not None
    for block in range(80):
        at = (block // 5 * 32, block % 5 * 64)
        expected = loaded(np.asarray(array.value), (32, 64), "128B", (1, 1), at)
        np.testing.assert_array_equal(found[block], expected)
    classes = plan(executor, 2, 4, full_below=0).classes
    assert sorted(len(one.members) for one in classes) == [1, 4, 15, 60]  # a corner, two edges, and the others
    full = Executor(executor.program, launch, 2_000_000).run(range(80)).trace
    blocks = np.split(np.arange(len(full.record_pc)), full.record_start[2:-1:2])
    bulk = np.array(["UTMALDG" in i.text for i in executor.program.instructions])
    for one in classes:
        leader = blocks[one.leader]
        moves = bulk[full.record_pc[leader]]
        for place, block in enumerate(one.members):
            offsets = one.offset_bytes[one.record_mover, place]
            np.testing.assert_array_equal(full.record_pattern[blocks[block]][moves], full.record_pattern[leader][moves])
            expected = full.record_base[leader].astype(np.int64) + offsets
            np.testing.assert_array_equal(full.record_base[blocks[block]][moves], expected[moves])


@pytest.mark.parametrize(
    ("place", "entry", "said"),
    [
        ((3, 61), "load2", "at a multiple of 16 bytes, and element 61 is not"),
        ((-8, 0), "store2", "begins 8 elements before"),
    ],
)
def test_a_place_at_which_the_gpu_stops(place: tuple[int, int], entry: str, said: str) -> None:
    array, tensor_map, _ = prepared("odd")
    where = Argument("i32", (2,), np.array(place[::-1], np.int32))
    args = [array, where, Argument("u8", (8192,), np.zeros(8192, np.uint8)), Argument("i32", (), 8192)]
    with pytest.raises(Stopped, match=said):
        run(entry, "sm_90", args, [tensor_map, 1, 2, 3], 8192)


def test_sectors_of_a_tile() -> None:
    """The tile of 64 x 64 halves at (48, 64) of 90 x 120 has 42 rows of 112 bytes, 16-byte aligned, in the array.

    The first begins with a line, each next one 16 bytes further before one. Those that do so 0, 16, 96 and 112 bytes
    behind a line's begin take two requests (whole sectors of one line, half a sector), the others three.
    """
    array, tensor_map, where = prepared("over")
    out = Argument("u8", (8192,), np.zeros(8192, np.uint8))
    args = (array, where, out, Argument("i32", (), 8192))
    launch = Launch((1, 1, 1), (64, 1, 1), args, 8192, (tensor_map, 1, 2, 3))
    program = cuda_program(FILE, "load2", "sm_90")
    executor = Executor(program, launch, 2_000_000)
    trace = executor.run([0]).trace
    moves = np.flatnonzero([program.instructions[pc].opcode == "UTMALDG" for pc in trace.record_pc])
    lanes = active_lanes(trace.patterns.active_mask[trace.record_pattern[moves]])
    found = (
        trace.record_base[moves][:, None] + trace.patterns.offsets_bytes[trace.record_pattern[moves]].astype(np.uint64)
    )[lanes]
    start = executor.memory.pointers[0]
    first = [start + (48 + row) * 240 + 128 for row in range(42)]
    expected = [sector for at in first for sector in range(at // 32 * 32, at + 112, 32)]
    assert found.tolist() == expected
    assert trace.syncs is not None
    copies = trace.syncs.bytes > 0
    assert (trace.syncs.bytes[copies].tolist(), trace.syncs.records[copies].tolist()) == ([8192], [len(moves)])
    assert start % 128 == 0 and trace.syncs.requests[copies].tolist() == [5 * (4 * 2 + 4 * 3) + 2 * 2]
    # init, arrival, copy, and both warps wait for phase 0; and two fences
    fences = [one.opcode == "MEMBAR" for one in program.instructions]
    assert trace.executed[0, fences].sum() == 2
    assert sorted(trace.syncs.phase.tolist()) == [0, 0, 0, 0, 0, 0, 0]


def test_bytes_that_are_expected_and_never_come() -> None:
    array = Argument("f16", (64, 64), numbers("f16", (64, 64), 1), "A")
    tensor_map = Packed(encoded(Tile((32, 64), "128B"), array, 0, "map"), (Address(0, 0),))
    out = Argument("u8", (4096,), np.zeros(4096, np.uint8))
    args = (array, out, *(Argument("i32", (), n) for n in (32, 4096, 8192)))
    launch = Launch((1, 1, 1), (64, 1, 1), args, 4096, (tensor_map, 1, 2, 3, 4))
    with pytest.raises(Stopped, match="phase 0, which lacks 4,096 bytes, holds warps 0-1"):
        Executor(cuda_program(FILE, "tiles", "sm_90"), launch, 2_000_000).run([0])


@pytest.mark.parametrize(
    ("byte", "keep", "put", "message"),
    [
        (8, 0x8F, 0x00, "not have as many dimensions"),
        (9, 0xFF, 0x08, "interleaved layout"),
        (9, 0xFF, 0x80, "fills with NaN"),
        (0, 0xFF, 0x08, "needs a multiple of 16"),
    ],
)
def test_what_tma_does_not_do_here_is_refused(byte: int, keep: int, put: int, message: str) -> None:
    array, tensor_map, where = prepared("sw128")
    args = [array, where, Argument("u8", (8192,), np.zeros(8192, np.uint8)), Argument("i32", (), 8192)]
    content = bytearray(tensor_map.content)
    content[byte] = content[byte] & keep | put
    addresses = tensor_map.addresses if byte else (Address(0, 0, put),)
    with pytest.raises(GemmsimError, match=message):
        run("load2", "sm_90", args, [Packed(bytes(content), addresses), 1, 2, 3], 8192)


@pytest.mark.parametrize(("value", "kept"), [(1.5, True), (1 + 2**-13, False), (2.0**-130, False), (np.inf, True)])
def test_a_map_that_makes_tf32_loads_what_this_does_not_change(value: float, kept: bool) -> None:
    """tf32 has 10 bits behind the leading one. TMA's rounding is not known, so that other values are refused."""
    array, tensor_map, where = prepared("one")
    values = np.full(1000, value, np.float32)
    out, size = Argument("u8", (512,), np.zeros(512, np.uint8)), Argument("i32", (), 512)
    content = bytearray(tensor_map.content)
    content[10] |= 1
    args, given = (
        [replace(array, value=values), where, out, size],
        [Packed(bytes(content), tensor_map.addresses), 1, 2, 3],
    )
    if kept:
        found = run("load1", "sm_90", args, given, 512)[2].view(np.float32)
        assert (found == np.where(np.arange(128) < 100, np.float32(value), 0)).all()
        return
    with pytest.raises(GemmsimError, match="TMA converts to tf32"):
        run("load1", "sm_90", args, given, 512)


def test_a_map_that_is_not_there() -> None:
    where, out = Argument("i32", (2,), np.zeros(2, np.int32)), Argument("u8", (8192,), np.zeros(8192, np.uint8))
    args = [Argument("u64", (), 64), where, out, Argument("i32", (), 8192)]
    with pytest.raises(GemmsimError, match="no tensor map at 0x40"):
        run("by_pointer", "sm_90", args, [0, 1, 2, 3], 8192)


def test_classes_of_blocks_whose_tiles_leave_the_array_sooner_or_later() -> None:
    """Of 8 tiles from tile y on, tile 9 is copied in part and those below are not: all of blocks 0 and 1 are whole."""
    array = Argument("f16", (300, 64), numbers("f16", (300, 64), 1), "A")
    tensor_map = Packed(encoded(Tile((32, 64), "128B"), array, 0, "map"), (Address(0, 0),))
    size = 32 * 64 * 2
    args = (array, *(Argument("i32", (), n) for n in (32, size)))
    launch = Launch((1, 8, 1), (32, 1, 1), args, size, (tensor_map, 1, 2))
    executor = Executor(cuda_program(FILE, "down", "sm_90"), launch, 2_000_000)
    classes = classes_of(executor)
    assert classes is not None
    assert sorted(one.members.tolist() for one in classes) == [[0, 1], *([block] for block in range(2, 8))]


def copies_of(entry: str, name: str) -> tuple[list[int], list[int], list[int], int]:
    """What a copy of a tile leaves in the trace: its bytes, records and requests, and how many records there are."""
    array, tensor_map, where = prepared(name)
    dtype, _, box, swizzle, steps, at = TILES[name]
    size = loaded(np.asarray(array.value), box, swizzle, steps, at).size
    tile = Argument("u8", (size,), np.zeros(size, np.uint8))
    if entry.startswith("store"):
        tile = Argument(dtype, (size // 2,), numbers(dtype, (size // 2,), 2))
    launch = Launch((1, 1, 1), (64, 1, 1), (array, where, tile, Argument("i32", (), size)), size, (tensor_map, 1, 2, 3))
    program = cuda_program(FILE, entry, "sm_90")
    trace = Executor(program, launch, 2_000_000).run([0]).trace
    assert trace.syncs is not None
    copies = np.flatnonzero(trace.syncs.bytes)
    moves = sum(program.instructions[pc].opcode in ("UTMALDG", "UTMASTG") for pc in trace.record_pc)
    fields = (trace.syncs.bytes, trace.syncs.records, trace.syncs.requests)
    return *(one[copies].tolist() for one in fields), moves  # type: ignore[return-value]


def test_a_stored_tile_is_noted_as_a_loaded_one_is() -> None:
    """Each of the 42 rows of `test_sectors_of_a_tile` touches four sectors, so that a record has eight rows."""
    loaded_tile, stored_tile = copies_of("load2", "over"), copies_of("store2", "over")
    assert loaded_tile == stored_tile
    assert stored_tile == ([8192], [6], [104], 6)


def test_room_for_the_records_of_a_copy_is_made_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 rows of 256 bytes have eight sectors each, so that four of them are a record: 64. There is room for 56 behind
    those of the loads and stores before the copy, which are counted when it asks for more."""
    monkeypatch.setitem(TILES, "large", ("u8", (256, 512), (256, 256), "none", (1, 1), (0, 256)))
    begin, grow = trace_buffers.Buffers.__init__, trace_buffers.Buffers.grow
    entries, before = 64, list[int]()

    def with_little_room(buffers: trace_buffers.Buffers, *args: int) -> None:
        begin(buffers, *args)
        for name in ("record_pc", "record_pattern", "record_base", "record_mover"):
            setattr(buffers, name, getattr(buffers, name)[:entries].copy())

    def counted(buffers: trace_buffers.Buffers) -> None:
        if buffers.counters[words.ROOM] > 0:
            before.append(int(buffers.counters[words.RECORDS]))
        grow(buffers)

    monkeypatch.setattr(trace_buffers.Buffers, "__init__", with_little_room)
    monkeypatch.setattr(trace_buffers.Buffers, "grow", counted)
    assert copies_of("load2", "large") == ([65536], [64], [512], 64)
    entries = before[0] + 56
    assert copies_of("load2", "large") == ([65536], [64], [512], 64)
