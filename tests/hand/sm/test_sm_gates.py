"""Phases of mbarriers and bulk copies by hand, on the test GPU of `sm_builder`.

An arrival counts 10 cycles after its issue, one at another block's mbarrier after 100; a warp that waits goes on 20
cycles after the phase is over, the next warp 2 cycles later. TMA moves 64 bytes a cycle to shared memory, 32 from
there, or 16 in a reduction; a load is there 300 cycles after its last byte, a store has read shared memory after 40.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from sm_builder import EXIT, GPU, START, Issues, idle_sm, ins, issues, program, simulate

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Instruction
from gemmsim.sm.state import State
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.units.execution import Sync
from gemmsim.sm.units.gates import release_one
from gemmsim.sm.units.instruction import Reason
from gemmsim.sm.units.slowest_line import DRAWS
from gemmsim.sm.units.tma import load_tile

WAIT = ins("SYNCS.PHASECHK.TRANS64.TRYWAIT", write=0)
WAITED = ins("NOP", wait=1)
ARRIVE = ins("SYNCS.ARRIVE.TRANS64.A1T0")
ARRIVES, WAITS = [SyncFields(0, counts=1)], [SyncFields(0)]
HIT = 24  # cycles from a check of a phase that is over to its result: those of a load from shared memory


def late(cycles: int) -> Instruction:
    return ins("NOP", cycles)


def load(moved: int, l2_sectors: int = 0, dram_sectors: int = 0, more: int = 0) -> SyncFields:
    return SyncFields(0, 1, more, moved, l2_sectors, dram_sectors)


def seen(*code: Instruction, streams: list[list[int]], syncs: dict[int, list[SyncFields]], **more: object) -> Issues:
    """Warps that execute instructions of `code`; the last one is EXIT, which all of them end with."""
    last = len(code)
    ends = [[*stream, last] for stream in streams]
    return issues(program(*code, EXIT, arch="sm_90a"), streams=ends, syncs=syncs, **more)


def waited(found: Issues, warp: int = 0, position: int = 1) -> int:
    """Cycles from the first issue on the SM to that of the warp's instruction at `position`."""
    return found.cycles(warp)[position] - START


def test_a_phase_ends_with_the_arrival_of_another_warp() -> None:
    code = (WAIT, WAITED, late(15), ARRIVE)
    found = seen(*code, streams=[[0, 1], [2, 3]], syncs={0: WAITS, 3: ARRIVES})
    assert waited(found) == 15 + 10 + 20


def test_the_last_arrival_ends_it() -> None:
    code = (WAIT, WAITED, late(15), ARRIVE)
    found = seen(*code, streams=[[0, 1], [3], [2, 3], [2, 2, 3]], syncs={0: WAITS, 3: ARRIVES})
    assert waited(found) == 2 * 15 + 10 + 20


@pytest.mark.parametrize(("before", "expected"), [([], 10 + 20), ([1], 15 + HIT)])
def test_a_phase_that_is_over_is_seen_by_one_check(before: list[int], expected: int) -> None:
    """The first checks in the cycle of the arrival, the second 15 cycles later."""
    streams, syncs = [[0], [*before, 2, 3]], {0: ARRIVES, 2: WAITS}
    found = seen(ARRIVE, late(15), WAIT, WAITED, streams=streams, syncs=syncs)
    assert waited(found, 1, len(before) + 1) == expected


def test_a_wait_for_a_phase_that_nothing_completes_is_over_at_once() -> None:
    assert waited(seen(WAIT, WAITED, streams=[[0, 1]], syncs={0: [SyncFields(-1)]})) == HIT


def test_warps_go_on_one_after_another() -> None:
    code = (WAIT, WAITED, late(15), ARRIVE)
    found = seen(*code, streams=[[0, 1], [0, 1], [2, 3], [0, 1]], syncs={0: WAITS, 3: ARRIVES})
    assert [waited(found, warp) for warp in (0, 1, 3)] == [45, 47, 49]


def test_an_arrival_at_another_block_takes_longer() -> None:
    remote = [SyncFields(0, counts=1, remote=1)]
    found = seen(WAIT, WAITED, ARRIVE, streams=[[0, 1], [2]], syncs={0: WAITS, 2: remote})
    assert waited(found) == 100 + 20


def test_one_instruction_arrives_at_two_phases() -> None:
    both = [SyncFields(0, 1, more=1), SyncFields(1, 1, remote=1)]
    streams, syncs = [[0, 1], [2, 1], [3]], {0: WAITS, 2: [SyncFields(1)], 3: both}
    found = seen(WAIT, WAITED, WAIT, ARRIVE, streams=streams, syncs=syncs)
    assert (waited(found, 0), waited(found, 1)) == (10 + 20, 100 + 20)


def test_an_arrival_behind_copies_waits_for_them() -> None:
    """LDGSTS takes the 200 cycles of a load from L2; it comes to the data stage a cycle after the check of warp 0."""
    code = (WAIT, WAITED, late(15), ins("LDGSTS.E"), ins("ARRIVES.LDGSTSBAR.64"))
    costs = {3: RecordCycles(1, 1, 1, 0)}
    found = seen(*code, streams=[[0, 1], [2, 3, 4]], syncs={0: WAITS, 4: ARRIVES}, costs=costs)
    assert waited(found) == 15 + 200 + 20


def test_what_another_block_would_complete_is_taken_to_come() -> None:
    """Nothing else can happen in cycle START: what comes from the other block does so 100 cycles later."""
    found = seen(WAIT, WAITED, ARRIVE, streams=[[0, 1, 2]], syncs={0: WAITS, 2: ARRIVES})
    assert waited(found) == 100 + 20
    assert release_one(idle_sm().sm, 0) == 0


def test_a_wait_is_a_stall_of_its_own_kind() -> None:
    code = program(WAIT, WAITED, late(15), ARRIVE, EXIT, arch="sm_90a")
    totals = simulate(code, streams=[[0, 1, 4], [2, 3, 4]], syncs={0: WAITS, 3: ARRIVES})
    # WAITED issues in cycle 45; the first cycle after WAIT is its own delay
    assert totals.stall_cycles[1, Reason["LONG_SCOREBOARD"]] == 15 + 10 + 20 - 1


def from_l2(bytes_per_cycle: float) -> GpuSpec:
    return replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=bytes_per_cycle * 1e9))


COPY = ins("UTMALDG.2D")


@pytest.mark.parametrize(
    ("moved", "gpu", "expected"),
    [
        (load(6400), GPU, 100 + 300),
        (load(6400, l2_sectors=200), from_l2(16), 100 + 300),  # other SMs come after it
        # DRAM takes 300 cycles longer than L2, and here all of its bandwidth
        (load(6400, l2_sectors=200, dram_sectors=200), GPU, 100 + 300 + 300),
    ],
)
def test_a_load_takes_the_time_of_its_way(moved: SyncFields, gpu: GpuSpec, expected: int) -> None:
    found = seen(WAIT, WAITED, COPY, streams=[[0, 1], [2]], syncs={0: WAITS, 2: [moved]}, gpu=gpu)
    assert waited(found) == expected + 20


@pytest.mark.parametrize(
    ("alone", "merged", "expected"),
    [
        (1.0, 0, 400),  # 200 sectors at 16 bytes a cycle
        (1.0, 100, 200),
        (0.5, 100, 300),  # half of those that could merge
    ],
)
def test_a_load_waits_where_the_share_of_l2_is_used_up(alone: float, merged: int, expected: int) -> None:
    gpu = replace(from_l2(16), tma=replace(GPU.tma, merged_alone=alone))
    first = load(6400, l2_sectors=200)._replace(merged_sectors=merged)
    found = seen(WAIT, WAITED, COPY, COPY, streams=[[0, 1], [2, 3]], syncs={0: WAITS, 2: [first], 3: [first]}, gpu=gpu)
    assert waited(found) == expected + 100 + 300 + 20


def test_a_load_does_not_wait_for_a_share_that_was_not_used() -> None:
    """A load of 400 cycles of the share, and 400 cycles after it was over two that come together. A quarter of what the
    SM has got by then is due to it: the last one waits for 300 of the 400 cycles that the one before it takes."""
    state = idle_sm(replace(from_l2(16), l2=replace(from_l2(16).l2, loads_in_step=4.0)))
    one = SyncFields(0, 1, 0, 6400, 200)
    assert copied(state, one, 0) == 100 + 300
    assert copied(state, one, 800) == 800 + 100 + 300
    assert copied(state, one, 800) == 800 + 300 + 100 + 300


@pytest.mark.parametrize(("gate", "share"), [(0, 0.5), (1, 0.5 + 0.5 * 0.75**2), (2, 0.5)])
def test_requests_come_together_while_loads_of_earlier_phases_are_under_way(gate: int, share: float) -> None:
    """200 sectors of which 100 could merge, 16 bytes a cycle from L2. The first load takes 400 cycles, so that one of
    another phase 100 cycles later has it beside it for three quarters of its own time; one of its phase does not count,
    nor one that is over, 400 cycles later."""
    state = idle_sm(replace(from_l2(16), tma=replace(GPU.tma, merged_alone=0.5)))
    memory = state.sm.memory
    one = SyncFields(0, 1, 0, 6400, 200, merged_sectors=100)
    assert copied(state, one, 0) == 100 + 300
    before = memory.l2_share.asked
    copied(state, one._replace(gate=gate), 400 if gate == 2 else 100)
    assert memory.l2_share.asked - before == pytest.approx((200 - 100 * share) * 2)


def test_what_is_on_its_way_from_dram_for_another_sm_takes_as_long() -> None:
    """DRAM is 300 cycles farther than L2; none of this SM's share of it is used."""
    state = idle_sm(GPU)
    assert copied(state, SyncFields(0, 1, 0, 640, 20, dram_shared=1), 0) == 10 + 300 + 300
    assert state.sm.memory.dram_share.asked == 0


@pytest.mark.parametrize(("lines", "cycles"), [(10, 10), (16, 16), (80, 80)])
def test_a_tile_of_short_rows_takes_a_cycle_a_line(lines: int, cycles: int) -> None:
    """640 bytes take 10 cycles at 64 bytes a cycle, which 10 lines at one a cycle do not exceed and 80 do."""
    gpu = replace(GPU, tma=replace(GPU.tma, load_requests_per_cycle=1.0))
    assert copied(idle_sm(gpu), SyncFields(0, 1, 0, 640, lines=lines, requests=lines), 0) == cycles + 300


def test_a_line_takes_l2_as_long_as_some_of_its_sectors() -> None:
    """Ten lines of one sector at 16 bytes a cycle from L2: 20 cycles of the share, and as long as 20 sectors would, 40,
    where a line counts for two at least."""
    for least, cycles in ((1.0, 20), (2.0, 40)):
        gpu = from_l2(16)
        state = idle_sm(replace(gpu, l2=replace(gpu.l2, least_sectors=least)))
        copied(state, SyncFields(0, 1, 0, 320, 10, lines=10, requests=10), 0)
        assert state.sm.memory.l2_share.asked == pytest.approx(cycles)


def test_the_slowest_line_of_a_tile_counts() -> None:
    """64 lines: in the mean over all quantiles 2.34 deviations later than one line, which comes when it did."""
    gpu = replace(GPU, dram=replace(GPU.dram, latency_deviation_cycles=100.0))
    means = []
    for lines in (1, 64):
        state, apart = idle_sm(gpu), 10**6
        loads = (SyncFields(n, 1, 0, 0, 4 * lines, dram_shared=1, lines=lines) for n in range(DRAWS))
        ends = [copied(state, one, apart * one.gate) - apart * one.gate for one in loads]
        means.append(sum(ends) / DRAWS)
    assert means == pytest.approx([600, 600 + 234], abs=5)


def copied(state: State, fields: SyncFields, now: int) -> float:
    """Begin a load in cycle `now`; return when its last byte is in shared memory."""
    return load_tile(state.sm, state.sm.memory, cast(Sync, SimpleNamespace(**fields._asdict())), now)


def test_loads_come_one_after_another() -> None:
    code = (WAIT, WAITED, COPY, COPY)
    found = seen(*code, streams=[[0, 1], [2, 3]], syncs={0: WAITS, 2: [load(6400)], 3: [load(3200)]})
    assert waited(found) == 100 + 50 + 300 + 20


def test_a_phase_needs_both_the_arrival_and_the_bytes() -> None:
    """The arrival that says how many bytes will come is the phase's, too; the later of both ends it."""
    code, syncs = (WAIT, WAITED, COPY, late(15), ARRIVE), {0: WAITS, 2: [load(640)], 4: ARRIVES}
    assert waited(seen(*code, streams=[[0, 1], [2], [4]], syncs=syncs)) == 10 + 300 + 20
    assert waited(seen(*code, streams=[[0, 1], [2], [*[3] * 40, 4]], syncs=syncs)) > 15 * 40


def test_parts_of_a_copy_for_two_phases_come_one_after_another() -> None:
    both = [load(640, more=1), SyncFields(1, 1, 0, 640)]
    streams, syncs = [[0, 1], [2, 1], [3]], {0: WAITS, 2: [SyncFields(1)], 3: both}
    found = seen(WAIT, WAITED, WAIT, COPY, streams=streams, syncs=syncs)
    assert (waited(found, 0), waited(found, 1)) == (10 + 300 + 20, 20 + 300 + 20)


def store(moved: int) -> list[SyncFields]:
    return [SyncFields(-1, amount=moved)]


@pytest.mark.parametrize(("name", "cycles"), [("UTMASTG.2D", 100), ("UTMAREDG.2D.ADD", 200)])
def test_a_group_of_stores_has_read_shared_memory(name: str, cycles: int) -> None:
    code = (ins(name), ins("UTMACMDFLUSH", read=0), WAITED)
    assert waited(seen(*code, streams=[[0, 1, 2]], syncs={0: store(3200)}), position=2) == cycles + 40


def test_stores_take_their_share_of_l2() -> None:
    """Half of 16 bytes a cycle: 100 sectors take 400 cycles, where the unit alone takes 100."""
    gpu = from_l2(16)
    gpu = replace(gpu, l2=replace(gpu.l2, write_share=0.5))
    code, moved = (ins("UTMASTG.2D"), ins("UTMACMDFLUSH", read=0), WAITED), [SyncFields(-1, 0, 0, 3200, 100)]
    assert waited(seen(*code, streams=[[0, 1, 2]], syncs={0: moved}, gpu=gpu), position=2) == 400 + 40


def test_stores_wait_for_one_another_and_not_for_loads() -> None:
    code = (COPY, ins("UTMASTG.2D"), ins("UTMASTG.2D"), ins("UTMACMDFLUSH", read=0), WAITED)
    syncs = {0: [load(64_000)], 1: store(3200), 2: store(1600)}
    assert waited(seen(*code, streams=[[0, 1, 2, 3, 4]], syncs=syncs), position=4) == 1 + 100 + 50 + 40


def test_the_unit_holds_two_stores_beside_the_one_at_work() -> None:
    """They begin in cycles 0, 100 and 200; the fourth issues when the second begins, the fifth when the third does."""
    code = [ins("UTMASTG.2D")] * 5
    found = seen(*code, streams=[[0, 1, 2, 3, 4]], syncs=dict.fromkeys(range(5), store(3200)))
    assert [cycle - START for cycle in found.cycles(0)[:5]] == [0, 1, 2, 100, 200]


MAPS = replace(GPU, tma=replace(GPU.tma, map_latency_cycles=50, own_map_latency_cycles=400, map_drop_cycles=70))
LOAD, DROP = ins("UTMALDG.2D"), ins("UTMACCTL.IV", read=0)


def tile(gate: int, tensor_map: int) -> SyncFields:
    return SyncFields(gate, 1, 0, 640, tensor_map=tensor_map)


def ends_of_loads(*maps: int, own: bool = False, blocks: int = 1) -> list[int]:
    """When each of the loads of a warp is there, one issued when the one before it is: cycles from its issue on."""
    code = [*([DROP] if own else []), *[one for _ in maps for one in (LOAD, WAIT, WAITED)]]
    first = len(code) - 3 * len(maps)
    syncs = {first + 3 * i: [tile(i, number)] for i, number in enumerate(maps)}
    syncs |= {first + 3 * i + 1: [SyncFields(i)] for i in range(len(maps))}
    found = issues(program(*code, EXIT, arch="sm_90a"), gpu=MAPS, syncs=syncs, blocks=blocks, resident=1)
    cycles = found.cycles(0)
    each = len(code) + 1
    at = [b * each + first + 3 * i for b in range(blocks) for i in range(len(maps))]
    return [cycles[i + 2] - cycles[i] for i in at]


def test_an_sm_fetches_each_map_that_it_is_given_once() -> None:
    """The first load with each of three maps takes 50 cycles longer, in the first block alone."""
    usual = ends_of_loads(0)[0]
    assert usual == 10 + 300 + 20
    assert ends_of_loads(1, 1, 2, 1, 3, blocks=2) == [usual + 50, usual, usual + 50, usual, usual + 50, *[usual] * 5]


def test_each_block_fetches_the_maps_that_it_makes() -> None:
    usual = ends_of_loads(0)[0]
    assert ends_of_loads(1, 2, 1, own=True, blocks=2) == [usual + 400, usual + 400, usual] * 2


def test_a_map_that_is_on_its_way_is_waited_for() -> None:
    """The second of two loads with a map issues a cycle later, so that it waits a cycle less for it."""
    ends = [load_of(number) for number in (0, 1)]
    assert ends[1] == ends[0] + 50 - 1


def load_of(tensor_map: int) -> int:
    """When the second of two loads with a map is there, to two mbarriers."""
    code = (LOAD, LOAD, WAIT, WAITED)
    syncs = {0: [tile(0, tensor_map)], 1: [tile(1, tensor_map)], 2: [SyncFields(1)]}
    cycles = issues(program(*code, EXIT, arch="sm_90a"), gpu=MAPS, syncs=syncs).cycles(0)
    return cycles[3] - cycles[0]


def test_dropping_a_map_takes_time() -> None:
    code = program(DROP, ins("NOP", wait=1), EXIT, arch="sm_90a")
    cycles = issues(code, gpu=MAPS).cycles(0)
    assert cycles[1] - cycles[0] == 70
