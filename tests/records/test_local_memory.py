"""Local memory on an H200: what was measured, by rules worked out by hand, and what the model says of these launches.

Each warp touches n lines (n words of 32 threads), so blocks of 256 threads have 8 n lines. With b of them on each of
132 SMs the footprint is 132 b 8 n lines; L1 has 224 KiB a SM, L2 60 MiB (62.9 MB).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.replay import launch_of
from programs import cuda_program

from gemmsim import api
from gemmsim.calls.launches import launch_spec

DATA = json.loads(Path(__file__).with_name("h200_local_memory.json").read_text(encoding="utf-8"))
SOURCE = Path(__file__).parents[1] / "sources" / "local_memory.cu"
SMS, L2_BYTES = 132, 60 << 20
LOADS, STORES = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld", "l1tex__t_sectors_pipe_lsu_mem_local_op_st"


class Row(NamedTuple):
    """A launch of `arrays`, and its counters in sectors."""

    kernel: str
    words: int
    passes: int
    blocks: int
    threads: int
    shared_bytes: int
    stored: int
    stored_hit: int
    loaded: int
    loaded_hit: int
    l2_read: int
    l2_written: int
    dram_read: int
    dram_written: int
    us: float

    @property
    def resident_bytes(self) -> int:
        """What the resident threads touch; an SM holds 2048."""
        threads = self.blocks * self.threads
        return min(threads, SMS * 2048) * self.words * 4


ARRAYS, LAST = ([Row(*row) for row in DATA[name]] for name in ("arrays", "last"))
WIDER_THAN_L2 = [row for row in ARRAYS if row.resident_bytes > 1.2 * L2_BYTES]


def row_of(kernel: str, words: int, blocks: int, rows: list[Row] = ARRAYS) -> Row:
    return next(r for r in rows if (r.kernel, r.words, r.blocks) == (kernel, words, blocks) and not r.shared_bytes)


@pytest.mark.parametrize("row", ARRAYS, ids=lambda row: f"{row.kernel}-{row.words}-{row.blocks}")
def test_sectors_are_those_of_words_in_lines_of_their_own(row: Row) -> None:
    """Each thread's word is a quarter of a lane group's sector: 4 sectors a warp and word, whatever the width."""
    warps = row.blocks * row.threads // 32
    kind = row.kernel.split("_")[0]
    stores = {"write": row.passes, "read": 1, "both": 1 + row.passes, "wide": 1 + row.passes}[kind]
    assert row.stored == 4 * warps * row.words * stores
    assert row.loaded == pytest.approx(0 if kind == "write" else 4 * warps * row.words * row.passes, rel=0.003)


@pytest.mark.parametrize("row", [*ARRAYS, *LAST], ids=lambda row: f"{row.kernel}-{row.words}-{row.blocks}")
def test_stores_are_written_through(row: Row) -> None:
    """L1 sends every store to L2, and the result that each thread leaves in memory."""
    result = 0 if row.kernel.startswith("write") else row.blocks * row.threads // 8
    assert row.l2_written == pytest.approx(row.stored + result, rel=0.002)


def test_beyond_l2_dram_moves_what_l2_is_asked_for() -> None:
    assert len(WIDER_THAN_L2) > 15
    for row in WIDER_THAN_L2:
        if row.blocks != 4224:  # four waves, of which the last ones overlap
            assert row.dram_read == pytest.approx(row.l2_read, rel=0.03, abs=0.001 * row.stored)
            assert row.dram_written == pytest.approx(row.stored, rel=0.05)


def test_blocks_use_the_places_of_those_before() -> None:
    """Each thread stores 16 words once. Of four waves of blocks, 128 KiB an SM each, all stores but a few find their
    lines in L1, and the 69 MB of all blocks are no more to L2 than the 17 MB of one wave.
    """
    one, four = (row_of("write_64", 16, blocks) for blocks in (1056, 4224))
    assert four.stored == 4 * one.stored and four.resident_bytes == one.resident_bytes
    assert four.stored_hit > 0.9 * four.stored
    assert four.dram_written < 0.1 * four.stored


def test_the_last_use_keeps_what_l1_has() -> None:
    """Loads of 512 KiB an SM, over and over: LDL finds nothing, LDL.LU the 224 KiB that were there first."""
    plain, last = (row_of("read_4096", 512, 132, rows) for rows in (ARRAYS, LAST))
    assert plain.loaded_hit < 0.01 * plain.loaded
    assert last.loaded_hit == pytest.approx(224 / 512 * last.loaded, rel=0.06)


@cache
def predicted(row: Row) -> dict[str, float]:
    out = row.blocks * row.threads
    args = [f"f32[{out}]", f"i32={row.words}", f"i32={row.passes}"]
    launch = {"entry": row.kernel, "grid": (row.blocks, 1, 1), "block": (row.threads, 1, 1), "args": args}
    spec = launch_spec(SOURCE, "h200", launch)
    counted = api.count(spec, cuda_program(SOURCE.name, row.kernel, spec.gpu.arch))
    return {**counted.traffic.counters, "us": api.time(counted, spec).duration_us}


BELOW_L1 = (row_of("both_4096", 64, 132), row_of("read_4096", 64, 132), row_of("wide_4096", 64, 132))
BEYOND_L2 = (
    *(row_of("read_1024", 256, blocks) for blocks in (528, 1056)),
    *(row_of("both_1024", 256, blocks) for blocks in (528, 1056)),
    *(row_of("both_512", 128, blocks) for blocks in (1056, 4224)),
    row_of("wide_1024", 256, 528),
    row_of("write_4096", 1024, 132),
)


@pytest.mark.parametrize("row", [*BELOW_L1, *BEYOND_L2], ids=lambda row: f"{row.kernel}-{row.words}-{row.blocks}")
def test_the_model_moves_as_much(row: Row) -> None:
    found = predicted(row)
    assert found[STORES + ".sum"] == row.stored
    assert found[LOADS + ".sum"] == pytest.approx(row.loaded, rel=0.003)
    assert found["lts__t_sectors_srcunit_tex_op_write.sum"] == pytest.approx(row.l2_written, rel=0.002)
    assert found[LOADS + "_lookup_hit.sum"] == pytest.approx(row.loaded_hit, abs=0.01 * row.loaded)
    assert found["dram__sectors_read.sum"] == pytest.approx(row.dram_read, abs=0.06 * row.loaded + 0.01 * row.stored)
    assert found["dram__sectors_write.sum"] == pytest.approx(row.dram_written, abs=0.04 * row.stored)


@pytest.mark.parametrize("row", BEYOND_L2, ids=lambda row: f"{row.kernel}-{row.words}-{row.blocks}")
def test_times_beyond_l2(row: Row) -> None:
    """Loads alone, stores alone and wide accesses come out within 10 %. Where each warp stores what it has just loaded,
    word by word, within 13 %: before loads waited for what DRAM writes, 20 to 32 % too fast.
    """
    error = predicted(row)["us"] / row.us - 1
    low, high = (-0.02, 0.135) if row.kernel.startswith("both") else (-0.12, 0.1)
    assert low < error < high


@pytest.mark.parametrize("words", [192, 224, 256])
def test_stacks_of_about_half_of_l2_are_written_before_they_are_replaced(words: int) -> None:
    """25 to 33 MiB that are stored eight times; L2 has 60. Before no more than half of a set was dirty, none was."""
    row = row_of("write_4096", words, 132)
    assert predicted(row)["dram__sectors_write.sum"] == pytest.approx(row.dram_written, rel=0.25)


@pytest.mark.xfail(strict=True, reason="9 % fewer loads hit here since model 40, within 5 % up to 38 (deviation 52)")
def test_spilled_registers_of_a_gemm() -> None:
    """blocktile_2d with 16 x 16 results a thread at 3072, four blocks of 128 KB of stacks on each SM.

    Its loads are LDL.LU. Of the same code with LDL the H200 found 54 % of them in L1, not 74.
    """
    measured = {how: row for kernel, how, n, *row in DATA["gemm"] if (kernel, n) == ("ladder", 3072)}
    stored, stored_hit, loaded, loaded_hit, l2_read, *_ = measured["LDL.LU"]
    assert measured["LDL"][3] / measured["LDL"][2] == pytest.approx(0.54, abs=0.01)
    name = "blocktile_2d-f32-bm=128,bn=128,bk=8,tm=16,tn=16-3072x3072x3072"
    found = api.count(launch_of(next(c for c in load_cases() if c.id == name and c.gpu == "h200"))).traffic.counters
    assert found[STORES + ".sum"] == stored and found[LOADS + ".sum"] == loaded
    assert found[LOADS + "_lookup_hit.sum"] == pytest.approx(loaded_hit, rel=0.05)
    assert found[STORES + "_lookup_hit.sum"] == pytest.approx(stored_hit, abs=0.05 * stored)
    assert found["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(l2_read, rel=0.1)
