"""What an observer is told adds up to what the model counts, cycle by cycle."""

from collections import defaultdict

import numpy as np
import pytest
from sm_builder import EXIT, GPU, HALVES, START, ins, program, simulate

from gemmsim.sm.observer import LEVELS, Observer
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.types import STALL_REASONS
from gemmsim.sm.units.instruction import Reason

CODE = program(
    ins("LDG.E", 2, write=0, read=3), ins("LDS.128", 1, write=1), ins("LOP3", 1), ins("IMAD", 2, wait=1),
    ins("FFMA", 4, wait=2), ins("BAR.SYNC", 5), ins("MUFU", 1, write=2), ins("FFMA", 1, wait=4, hint=True),
    ins("STS", 1, read=4), ins("BRA", 5), ins("STG.E", 1, wait=16), EXIT,
)  # fmt: skip
LOOPS = list(range(10)) * 5 + [10, 11]


class Everything(Observer):
    """All that is told, a list an event."""

    def __init__(self) -> None:
        self.stays: list[list[int]] = []  # [slot, block, start, end]
        self.issues: list[tuple[int, int, int]] = []  # warp, cycle, instruction
        self.stalls: list[tuple[int, int, int, int, int]] = []  # warp, instruction, reason, begin, end
        self.memory: list[tuple[int, int, int, int, int]] = []

    def on_start(self, cycle, sub_partition, warp, block):
        assert sub_partition == warp % 4
        self.stays.append([warp, block, cycle, -1])

    def on_issue(self, cycle, sub_partition, warp, instruction):
        self.issues.append((warp, cycle, instruction))

    def on_stall(self, warp, instruction, reason, begin, end):
        self.stalls.append((warp, instruction, reason, begin, end))

    def on_memory(self, warp, instruction, begin, end, level):
        self.memory.append((warp, instruction, begin, end, level))

    def on_end(self, cycle, warp):
        next(stay for stay in reversed(self.stays) if stay[0] == warp)[3] = cycle


def watched(warps, gpu, blocks=3, resident=2, cost=RecordCycles(3, 2, 4, 2)):  # noqa: B008
    seen = Everything()
    totals = simulate(CODE, warps, blocks=blocks, resident=resident, cost=cost, gpu=gpu, pcs=LOOPS, observer=seen)
    return seen, totals


@pytest.mark.parametrize("warps", [1, 3, 8, 17])
@pytest.mark.parametrize("gpu", [GPU, HALVES])
def test_stall_intervals_sum_to_the_stall_cycles_of_the_model(warps, gpu):
    seen, totals = watched(warps, gpu)
    told = np.zeros_like(totals.stall_cycles)
    for _, instruction, reason, begin, end in seen.stalls:
        told[instruction, reason] += end - begin
    for _, _, instruction in seen.issues:
        told[instruction, Reason["SELECTED"]] += 1
    assert told.tolist() == totals.stall_cycles.tolist()
    for reason in ("LONG_SCOREBOARD", "SHORT_SCOREBOARD", "BARRIER", "WAIT", "BRANCH_RESOLVE", "DRAIN"):
        assert told[:, Reason[reason]].sum() > 0, reason


@pytest.mark.parametrize("warps", [1, 8, 17])
def test_a_warp_is_in_one_state_in_each_of_its_cycles(warps):
    seen, totals = watched(warps, GPU)
    pieces = defaultdict(list)
    for warp, cycle, _ in seen.issues:
        pieces[warp].append((cycle, cycle + 1))
    for warp, _, _, begin, end in seen.stalls:
        assert begin <= end
        if begin < end:
            pieces[warp].append((begin, end))
    stays = defaultdict(list)
    for slot, _, start, end in seen.stays:
        stays[slot].append((start, end))
    assert len(seen.stays) == 3 * warps and {block for _, block, _, _ in seen.stays} == {0, 1, 2}
    for warp, resident in stays.items():
        covered = sorted(pieces[warp])
        joined = [covered[0]]
        for begin, end in covered[1:]:
            if begin == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((begin, end))
        assert joined == sorted(resident)
    assert max(end for *_, end in seen.stays) == totals.cycles


def test_one_warp_by_hand():
    code = program(ins("LDG.E", 2, write=0), ins("FFMA", 4, wait=1), EXIT)
    seen = Everything()
    totals = simulate(code, cost=RecordCycles(1, 1, 0, 0), observer=seen)
    [(warp, instruction, begin, end, level)] = seen.memory
    assert (warp, instruction, begin, LEVELS[level]) == (0, 0, START, "L1")
    # A hit: the FFMA issues in the cycle in which the load's registers are written, and the warp ends 4 + 1 later.
    assert end == START + round(GPU.l1.hit_latency_cycles[0])
    assert seen.issues == [(0, START, 0), (0, end, 1), (0, end + 4, 2)]
    told = [(STALL_REASONS[reason], instruction, b, e) for _, instruction, reason, b, e in seen.stalls if b < e]
    assert told == [
        ("wait", 1, START + 1, START + 2),
        ("long_scoreboard", 1, START + 2, end),
        ("wait", 2, end + 1, end + 4),
    ]
    assert seen.stays == [[0, 0, START, end + 5]]
    assert totals.cycles == end + 5


def test_an_observer_changes_nothing():
    _, seen = watched(8, GPU)
    unseen = simulate(CODE, 8, blocks=3, resident=2, cost=RecordCycles(3, 2, 4, 2), pcs=LOOPS)
    assert unseen.cycles == seen.cycles and unseen.stall_cycles.tolist() == seen.stall_cycles.tolist()
