"""What loads miss takes the data stage when it comes. By hand, on a GPU whose L1 hits take 32 cycles and L2's 200."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, Path, idle_sm, ins, issues, program, row

from gemmsim.isa.program import Instruction, Operand, OperandKind
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units.data_stage import pass_data_stage, settle
from gemmsim.sm.units.fills import place_for
from gemmsim.sm.units.instruction import Instruction as Row

MISS = RecordCycles(1, 1, 1, 0)
LOAD = ins("LDG", 1, write=0)
USE = ins("FFMA", 1, wait=1)
DONE = 1 + 200  # a load that issues in cycle 1 and misses; its data is at the data stage 21 cycles before


DRAIN = ins(
    "DEPBAR.LE", 1, operands=(Operand(OperandKind.SPECIAL, name="SB0"), Operand(OperandKind.IMMEDIATE, value=0))
)


def other(first: int, wavefronts: int, use: Instruction = USE):  # type: ignore[no-untyped-def]
    """Two warps: one loads, and uses what it loads; the other loads from shared memory in cycle `first` and arrives at
    the data stage 11 cycles later. Return when the first one uses it."""
    stall = 15
    waits = [ins("NOP", stall)] * ((first - 1) // stall) + [ins("NOP", (first - 1) % stall)] * ((first - 1) % stall > 0)
    body = [LOAD, use, EXIT, *waits, ins("LDS", 1, write=0), EXIT]
    streams = [[0, 1, 2], list(range(3, len(body)))]
    costs = {0: MISS, len(body) - 2: RecordCycles(wavefronts, 0, 0, 0)}
    return issues(program(*body), 2, streams=streams, costs=costs).cycles(0)[1]


def test_alone_it_is_there_after_the_latency():
    assert issues(program(LOAD, USE, EXIT), cost=MISS).cycles(0)[1] == DONE


def test_until_it_comes_the_stage_serves_others():
    """A load from shared memory behind a load of eight wavefronts that misses is done as if there were none, though it
    waits for the eight wavefronts of one that hits."""
    shared = ins("LDS", 1, write=1), ins("FFMA", 1, wait=2)
    cost = RecordCycles(8, 1, 8, 0)
    behind_miss, behind_hit = (
        issues(program(LOAD, *shared, EXIT), costs={0: of, 1: RecordCycles(1, 0, 0, 0)}).cycles(0)[2]
        for of in (cost, cost._replace(l2_sectors=0))
    )
    alone = issues(program(ins("NOP", 1), *shared, EXIT), costs={1: RecordCycles(1, 0, 0, 0)}).cycles(0)[2]
    # It issues in cycle 2, waits three cycles for the address unit, and would be at the data stage in cycle 16.
    assert behind_miss == alone + 3
    assert behind_hit == behind_miss + (12 + 8 - 16)


@pytest.mark.parametrize(("first", "wavefronts", "later"), [(100, 40, 0), (150, 32, 13), (168, 32, 31), (169, 32, 0)])
def test_it_waits_for_what_has_the_stage_when_it_comes(first, wavefronts, later):
    """From cycle `first` + 11 on for so many cycles, and its data comes in cycle 180; what arrives with it or later is
    served behind it."""
    assert other(first, wavefronts) == DONE + later


def test_a_count_of_what_is_outstanding_waits_as_long():
    assert other(150, 32, DRAIN) == DONE + 13


def test_what_comes_behind_others_is_waited_for_as_long_as_they_take():
    """Two warps load a sector each, one of a hundred wavefronts, which takes the stage from cycle 180 on for 100 1/4
    cycles. The data of the other is there a cycle later, 1 1/4 cycles long, and could be used in cycle 202."""
    loads = [LOAD, USE, EXIT]
    costs = {0: RecordCycles(100, 1, 1, 0), 3: MISS}
    seen = issues(program(*loads, *loads), 2, streams=[[0, 1, 2], [3, 4, 5]], costs=costs)
    assert seen.cycles(0)[1] == 180 + 100 + 20
    assert seen.cycles(1)[1] == 202 + 100


def test_what_comes_and_requests_take_turns():
    """Two loads' data come in cycles 100 and 101, for 16 cycles each. A request of four cycles arrives before them, so
    that they keep the stage for eight at a time: a request passes after each eight that arrives meanwhile."""
    state = idle_sm(replace(GPU, l1=replace(GPU.l1, fill_turn=2.0)))
    sm, fills = state.sm, state.sm.memory.fills
    for at in (101.0, 100.0):  # the later one issued first
        fill = fills.rows[place_for(fills, at)]
        fill.at, fill.cycles, fill.until_use = at, 16.0, 10.0
    assert pass_data_stage(sm, 20.0, 4.0, 10) == 20
    assert pass_data_stage(sm, 102.0, 4.0, 90) == 100 + 8
    settle(sm, 108.0, 108)  # from 112 to 120
    assert (fills.free, fills.count) == (120, 1)
    assert pass_data_stage(sm, 113.0, 2.0, 110) == 120
    settle(sm, 200.0, 200)  # after a request of two cycles four at a time, and all that is left where none comes
    assert (fills.free, fills.count) == (122 + 16, 0)


def test_loads_that_wait_for_their_tags_let_others_pass_but_keep_their_entries():
    """Two loads of 40 lines each miss, and reach L1 in cycles 11 and 12: the tags of the second are looked up 40 cycles
    after those of the first, and its entry of the queue is free then. A load from shared memory behind them has the
    data stage in cycle 13."""
    path = Path(replace(GPU, mio=replace(GPU.mio, shared_entries=4)))
    load = row(Row, writes_registers=1, hit_latency_cycles=32.0, lane_groups=1, write_scoreboard=0)
    shared = row(Row, writes_registers=1, shared_load=1, hit_latency_cycles=24.0, narrow_latency_cycles=24.0)
    lines, one = RecordCycles(1, 40, 40, 0), RecordCycles(1, 0, 0, 0)
    requests = enumerate([(load, lines), (load, lines), (shared, one)])
    released = [path.request(now, access, cost, part=now)[0] for now, (access, cost) in requests]
    assert released == [11, 11 + 40, 13]
    assert path.sm.memory.data.next_free == 13 + 1
