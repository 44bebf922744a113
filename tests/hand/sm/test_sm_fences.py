"""Memory fences, worked out by hand: what a warp waits for at MEMBAR."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, Issues, ins, issues, program, simulate

from gemmsim.isa.program import Instruction
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.units.instruction import Reason

FENCED = replace(
    GPU,
    memory_fence=replace(
        GPU.memory_fence,
        block_cycles=3.0,
        gpu_cycles=100.0,
        system_cycles=500.0,
        acknowledged_cycles=40.0,
        bulk_loads=2,
    ),
)
FENCE, NEXT = ins("MEMBAR.ALL.GPU", 1), ins("NOP", 1)
EXECUTED, NOBODY = SyncFields(-1, amount=1), SyncFields(-1)
STORE = ins("STG.E", 1)
STORED = RecordCycles(1, 1, 4, 0)  # a line
WAY = 24  # to where fences are done: as long as a load from shared memory takes
BEHIND_STORE = WAY + 3  # the store, or fence, takes the way for four cycles and issues one before


def seen(
    *code: Instruction, streams: list[list[int]] | None = None, of: SyncFields = EXECUTED, **more: object
) -> Issues:
    syncs = {pc: [of] for pc, one in enumerate(code) if one.opcode == "MEMBAR"}
    listed = [[*stream, len(code)] for stream in streams] if streams else None
    return issues(program(*code, EXIT), streams=listed, syncs=syncs, gpu=FENCED, **more)


def took(found: Issues, warp: int = 0, position: int = 0) -> int:
    """Cycles from the issue of the warp's instruction at `position` to the next one's."""
    cycles = found.cycles(warp)
    return cycles[position + 1] - cycles[position]


def test_a_fence_takes_its_time_by_its_scope() -> None:
    assert took(seen(FENCE, NEXT)) == WAY + 100
    assert took(seen(ins("MEMBAR.SC.SYS", 1), NEXT)) == WAY + 500
    assert took(seen(ins("MEMBAR.ALL.CTA", 1), NEXT)) == FENCED.sources_read.shared_load_cycles[0]


def test_one_that_no_thread_executes_takes_none() -> None:
    assert took(seen(FENCE, NEXT, of=NOBODY)) == 1


def test_it_is_the_stall_reason_membar() -> None:
    totals = simulate(program(FENCE, NEXT, EXIT), syncs={0: [EXECUTED]}, gpu=FENCED)
    assert totals.stall_cycles.sum(axis=0)[Reason["MEMBAR"]] == WAY + 99


def test_behind_a_store_l2_is_asked_first() -> None:
    assert took(seen(STORE, FENCE, NEXT, costs={0: STORED}), position=1) == BEHIND_STORE + 140


def test_the_next_fence_does_not_ask_again() -> None:
    found = seen(STORE, FENCE, FENCE, NEXT, costs={0: STORED})
    assert [took(found, position=1), took(found, position=2)] == [BEHIND_STORE + 140, WAY + 100]


def test_of_three_warps_two_share_the_second_question() -> None:
    """The first asks L2 at once; the others, whose fences come later, wait until its question is answered."""
    found = seen(
        STORE, FENCE, NEXT, ins("NOP", 9), streams=[[0, 1, 2], [3, 0, 1, 2], [3, 3, 0, 1, 2]], costs={0: STORED}
    )
    begins = found.cycles(0)[1]
    assert [found.cycles(warp)[-2] - begins - BEHIND_STORE for warp in range(3)] == [140, 180, 180]


def test_a_question_under_way_is_not_the_next_fence_s() -> None:
    """The second warp has stored nothing, but its fence comes while the first one's question is under way."""
    found = seen(STORE, FENCE, NEXT, ins("NOP", 9), streams=[[0, 1, 2], [3, 1, 2]], costs={0: STORED})
    begins = found.cycles(0)[1]
    assert found.cycles(1)[1] < begins + BEHIND_STORE + 40
    assert [found.cycles(warp)[-2] - begins - BEHIND_STORE for warp in range(2)] == [140, 180]


def test_each_fence_of_a_warp_is_executed_by_some_thread_or_none() -> None:
    code = program(FENCE, FENCE, FENCE, NEXT, EXIT)
    found = issues(code, syncs={0: [EXECUTED], 1: [NOBODY], 2: [EXECUTED]}, gpu=FENCED)
    assert [took(found, position=i) for i in range(3)] == [WAY + 100, 1, BEHIND_STORE + 100]


@pytest.mark.parametrize(("loads", "waits"), [(1, 310), (2, 320), (3, 320), (8, 320), (9, 330)])
def test_a_fence_beside_bulk_loads_waits_for_the_first_two(loads: int, waits: int) -> None:
    """Each takes 10 cycles, one after the other, and 300 to come. Then L2 is asked for 40 cycles. Only the last eight
    loads are known."""
    code = [ins("UTMALDG.2D")] * loads + [FENCE, NEXT]
    syncs = {i: [SyncFields(0, 1, 0, 640)] for i in range(loads)} | {loads: [EXECUTED]}
    cycles = issues(program(*code, EXIT, arch="sm_90a"), syncs=syncs, gpu=FENCED).cycles(0)
    assert cycles[loads] - cycles[0] == loads
    assert cycles[loads + 1] - cycles[0] == waits + 40 + 100


def test_a_fence_does_not_wait_for_bulk_loads_that_have_come() -> None:
    """Of four loads the first two have come when the last two begin."""
    code = [ins("UTMALDG.2D"), ins("NOP", 5), ins("UTMALDG.2D")]
    code += [ins("NOP", 15)] * 22 + [ins("UTMALDG.2D"), ins("NOP", 9), ins("UTMALDG.2D"), FENCE, NEXT]
    bulk = [i for i, one in enumerate(code) if one.opcode == "UTMALDG"]
    syncs = {i: [SyncFields(0, 1, 0, 640)] for i in bulk} | {len(code) - 2: [EXECUTED]}
    cycles = issues(program(*code, EXIT, arch="sm_90a"), syncs=syncs, gpu=FENCED).cycles(0)
    assert cycles[bulk[2]] - cycles[bulk[1]] > 310
    assert cycles[-2] - cycles[bulk[2]] == 10 + 10 + 300 + 40 + 100


def test_a_fence_of_the_block_waits_for_what_its_warp_loads() -> None:
    code = (ins("LDG.E", 1, write=0), ins("MEMBAR.ALL.CTA", 1), NEXT)
    cost = RecordCycles(1, 1, 4, 0)
    loaded = seen(code[0], ins("NOP", 1, wait=1), costs={0: cost}).cycles(0)
    found = seen(*code, costs={0: cost}).cycles(0)
    assert found[2] - found[0] == loaded[1] - loaded[0] + 3
