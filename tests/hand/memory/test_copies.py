"""Asynchronous copies: what conflicts where they write to shared memory add, by hand and as an H200 counts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_builder import launch, program, warp_trace

from gemmsim.gpu import load_gpu
from gemmsim.memory.requests.copies import with_copies
from gemmsim.memory.serve import serve

H200 = load_gpu("h200")
GLOBAL = 1 << 40
RECORD = Path(__file__).parents[2] / "records" / "h200_ldgsts.json"
PATTERNS = json.loads((RECORD.parent / "h200_copied_rows.json").read_text(encoding="utf-8"))["patterns"]
ZEROS = json.loads((RECORD.parent / "h200_zero_copies.json").read_text(encoding="utf-8"))["rows"]
ROWS = [row for row in json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if row[0].startswith("ca")]
CODE = {4: program("LDGSTS.E"), 8: program("LDGSTS.E.64"), 16: program("LDGSTS.E.128")}


def copied(width: int, distance: int) -> tuple[list[int], list[int]]:
    """The records of one copy: of its packed reads, and of where each lane writes."""
    return [GLOBAL + width * lane for lane in range(32)], [distance * lane % 8192 for lane in range(32)]


@pytest.mark.parametrize(("distance", "added"), [(4, 0), (8, 1), (16, 3), (128, 31), (132, 0)])
def test_conflicts_of_four_bytes_a_lane(distance: int, added: int) -> None:
    """Lanes 8 bytes apart meet in pairs, those 128 bytes apart all in one bank, those 132 apart in none."""
    trace = warp_trace(1, {0: [[(0, lanes) for lanes in copied(4, distance)]]})
    kept = with_copies(CODE[4], trace)
    assert kept.copies is not None and kept.copies.conflicts.tolist() == [added]
    assert kept.record_base.tolist() == [GLOBAL] and kept.record_start.tolist() == [0, 1]


def test_a_copy_of_zeros_alone_has_no_reads() -> None:
    """Of three copies the second reads nothing: what it writes is kept. The conflicts of the third are its own."""
    reads, writes = copied(4, 8)
    records = [(0, reads), (0, writes), (0, writes), (0, reads), (0, copied(4, 16)[1])]
    kept = with_copies(CODE[4], warp_trace(1, {0: [records]}))
    assert kept.copies is not None and kept.copies.conflicts.tolist() == [1, 0, 3]
    assert kept.record_base.tolist() == [GLOBAL, 0, GLOBAL] and kept.copies.zeros.tolist() == [False, True, False]


@pytest.mark.parametrize("row", [row for row in ZEROS if row[4] == 0], ids=lambda row: "-".join(map(str, row[:4])))
def test_copies_of_zeros_are_counted_as_an_h200_does(row: list[Any]) -> None:
    """They take as many wavefronts as stores, and are no requests of L1's tags, with conflicts or without. Beside them
    the H200 counts four wavefronts for each step of a warp, three more a warp, and 130 for the launch."""
    width, count, warps, apart, *_, wavefronts, conflicts, requests = row
    copies = count * warps * 64
    writes = [(0, [apart * lane for lane in range(32)])]
    code = CODE[width] if width < 16 else program("LDGSTS.E.BYPASS.128")
    trace = with_copies(code, warp_trace(1, {0: [writes]}))
    traffic = serve(code, launch(), trace, load_gpu("h200"), 64 << 10, 1)
    found = traffic.counters
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == requests == 0
    assert found["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"] == 0
    assert found["smsp__inst_executed_op_ldgsts.sum"] == 1
    [zeros] = [one for one in traffic.instructions if one.op == "zeros"]
    assert zeros.conflicts * copies == conflicts
    assert found["l1tex__data_pipe_lsu_wavefronts.sum"] * copies == wavefronts - (4 * 64 + 3) * warps - 130


def test_a_copy_past_l1_has_no_conflicts() -> None:
    """16 bytes a lane, 512 apart: through L1 each lane is by itself, 28 wavefronts more than the least."""
    trace = warp_trace(1, {0: [[(0, lanes) for lanes in copied(16, 512)]]})
    for mnemonic, added in (("LDGSTS.E.128", 28), ("LDGSTS.E.BYPASS.128", 0)):
        kept = with_copies(program(mnemonic), trace)
        assert kept.copies is not None and kept.copies.conflicts.tolist() == [added]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[0].replace(" ", "-"))
def test_sectors_of_copies_past_l1(pattern: list[Any]) -> None:
    """As an H200 counts them: L1 those that are written, and from L2 one for each pair of one read and one written."""
    _, source, target, counted, sent, _ = pattern
    trace = warp_trace(1, {0: [[(0, [GLOBAL + at for at in source]), (0, target)]]})
    code = program("LDGSTS.E.BYPASS.128")
    traffic = serve(code, launch((1, 1, 1)), with_copies(code, trace), H200, 0, 1)
    assert traffic.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == counted
    assert traffic.counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == sent == traffic.cost.l2_sectors[0]


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_up_to_four_sectors_that_are_the_same_are_read_once(number: int) -> None:
    """Rows that one copy takes four to sixteen times."""
    _, source, target, _, _, read = PATTERNS[number]
    trace = warp_trace(1, {0: [[(0, [GLOBAL + at for at in source]), (0, target)]]})
    code = program("LDGSTS.E.BYPASS.128")
    found = serve(code, launch((1, 1, 1)), with_copies(code, trace), H200, 0, 1).counters
    touched = len({at // 32 for at in source})
    assert read <= found["lts__t_sectors_srcunit_tex_op_read.sum"] <= read + touched


def test_a_program_without_copies_stays_as_it_is() -> None:
    trace = warp_trace(1, {0: [[(0, [GLOBAL] * 32)]]})
    assert with_copies(program("LDG.E"), trace) is trace


@pytest.mark.parametrize(("kind", "distance", "counted"), sorted({(row[0], row[1], row[4]) for row in ROWS}))
def test_wavefronts_as_an_h200_counts_them(kind: str, distance: int, counted: float) -> None:
    """An H200 counts half a wavefront more for each request, here as everywhere (deviation 10). By hand: 32 lanes side
    by side lie in `width` / 4 lines, and what misses asks for one a cycle."""
    width = int(kind[2:])
    records = [(0, lanes) for lanes in copied(width, distance)]
    trace = with_copies(CODE[width], warp_trace(1, {0: [records]}))
    cost = serve(CODE[width], launch(), trace, H200, 65536, 1).cost
    assert counted - 0.52 <= int(cost.wavefronts[0]) <= counted - 0.49
    assert np.all(cost.tag_cycles == max(1, width // 4))
