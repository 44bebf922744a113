"""From resident blocks to a launch: waves, cut loops, and records kept in step with the instructions."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from sm_builder import EXIT, GPU, HALVES, cost_of, ins, pipe, program, time_of, trace_of

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.sm.budget import Simulator, _Cut, _ends_of_loops
from gemmsim.sm.dram_time import dram_seconds
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.loops import find_loop
from gemmsim.sm.pipes import matrix_latency_cycles, pipe_slots
from gemmsim.sm.schedule import TimingOptions, _continued, schedule
from gemmsim.sm.streams import NO_RECORD, RecordCycles, RecordedStreams, recorded_streams
from gemmsim.sm.totals import Totals
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch

FETCH = RecordCycles._fields.index("fetch")


def gemm_loop(iterations: int) -> tuple[Program, list[int]]:
    """Load, barrier, multiply-add, branch back."""
    code = program(
        ins("S2R", 2, write=0), ins("IMAD", 4, wait=1),
        ins("LDG.E", 1, write=0), ins("LDS", 1, write=1), ins("LOP3", 1), ins("BAR.SYNC", 2), ins("FFMA", 2, wait=3),
        ins("FFMA", 4), ins("BRA", 5),
        ins("STG.E", 1), EXIT,
    )  # fmt: skip
    return code, [0, 1, *list(range(2, 9)) * iterations, 9, 10]


@pytest.mark.parametrize("gpu", [GPU, HALVES])
@pytest.mark.parametrize("cost", [NO_RECORD, RecordCycles(4, 2, 8, 4)])
def test_extrapolation_equals_the_full_simulation(gpu, cost):
    code, pcs = gemm_loop(300)
    streams = [pcs] * 16
    full = time_of(code, streams, 8, 20, 2, cost, gpu, budget=10**9)
    cut = time_of(code, streams, 8, 20, 2, cost, gpu, budget=9000)
    assert full.simulated_instructions == 16 * len(pcs)
    assert not full.notes
    assert cut.simulated_instructions <= 9000
    assert "iterations of the main loop extrapolated" in cut.notes[0]
    assert cut.cycles == pytest.approx(full.cycles, rel=0.01)
    assert cut.issue_active_pct == pytest.approx(full.issue_active_pct, rel=0.01)
    assert cut.achieved_occupancy_pct == pytest.approx(full.achieved_occupancy_pct, rel=0.01)
    for reason, value in full.stalls.items():
        assert cut.stalls[reason] == pytest.approx(value, rel=0.05, abs=0.02), reason


@pytest.mark.parametrize(("budget", "oldest_block_first", "within"), [(40_000, False, 0.02), (100_000, True, 0.05)])
def test_the_last_generation_costs_what_fewer_blocks_cost(budget, oldest_block_first, within):
    """Three blocks of 32 warps, two at a time: the third has the SM for itself, but for what it gets of it before where
    the oldest block goes first."""
    code, pcs = gemm_loop(300)

    def cycles(blocks: int, instructions: int = 10**9) -> float:
        timing = time_of(
            code, [pcs] * (32 * blocks), 32, 10 * blocks, 2, budget=instructions, oldest_block_first=oldest_block_first
        )
        assert timing.simulated_instructions <= instructions
        return timing.cycles

    alone, both = cycles(1), cycles(2)
    assert alone < 0.8 * both
    assert cycles(3) == pytest.approx(both + alone, rel=0.1 if oldest_block_first else 0.01)
    assert cycles(3, budget) == pytest.approx(cycles(3), rel=within)


def test_loops_of_different_length_are_cut_by_the_same_number_of_iterations():
    code, long = gemm_loop(300)
    _, short = gemm_loop(250)
    streams = [long] * 8 + [short] * 8
    full = time_of(code, streams, 8, 20, 2, budget=10**9)
    cut = time_of(code, streams, 8, 20, 2, budget=20_000)
    assert cut.simulated_instructions <= 20_000
    assert cut.cycles == pytest.approx(full.cycles, rel=0.02)


def test_irregular_code_is_scaled_from_its_beginning_and_says_so():
    code = program(*[ins("FFMA", 2)] * 4000, EXIT)
    pcs = list(range(4001))
    cut = time_of(code, [pcs] * 4, 4, 10, 1, budget=4000)
    assert cut.simulated_instructions <= 4000
    assert "scaled by instructions" in cut.notes[0]
    assert cut.cycles == pytest.approx(time_of(code, [pcs] * 4, 4, 10, 1, budget=10**9).cycles, rel=0.01)


def test_what_fits_the_budget_is_simulated_block_after_block():
    code, pcs = gemm_loop(30)
    timing = time_of(code, [pcs] * 4, 4, 50, 2)  # 10 SMs: 5 blocks each
    assert timing.simulated_instructions == 5 * 4 * len(pcs)
    assert timing.waves == 2.5
    assert timing.duration_us == timing.cycles / 1e9 * 1e6 + 2.0
    assert not timing.notes


def test_an_sm_whose_blocks_end_together_gets_as_many_again():
    """24 blocks for 10 SMs that hold two: of four that are left two SMs get two each where two blocks of one warp end
    together, else four get one."""
    code, pcs = gemm_loop(30)
    together = replace(GPU, launch=replace(GPU.launch, together_share=0.02))

    def simulated(gpu: GpuSpec, grid: int, resident: int, budget: int = 120_000) -> float:
        return time_of(code, [pcs] * 4, 1, grid, resident, gpu=gpu, budget=budget).simulated_instructions / len(pcs)

    assert [simulated(gpu, 24, 2) for gpu in (GPU, together)] == [3, 3 + 4]
    assert simulated(together, 21, 2) == 3  # only one is left
    assert simulated(together, 32, 3) == 4 + 5  # two are left for SMs that hold three
    assert simulated(together, 40, 2) == 4  # as many as there is room for
    assert simulated(together, 24, 2, 500) < 3  # which blocks get ahead is not known where loops are cut


def test_later_blocks_take_as_long_as_those_between_the_first_and_the_last_generation():
    ends = np.array([10.0, 12, 19, 20, 31, 33, 40, 44])
    first = Totals(44.0, np.full((1, 2), 16.0), np.array([80.0]), {"alu": 8.0}, ends)
    total = _continued(first, np.ones(8), 12.0, resident=2)
    assert total.cycles == 44 + 4 * (33 - 12) / 4  # four left between the second's end and the sixth's
    assert (total.issued == 120).all()
    assert (total.stall_cycles == 24).all()
    assert total.busy_cycles == {"alu": 12.0}


def test_two_generations_and_one_have_less_to_go_by():
    ends = np.array([10.0, 12, 19, 20])
    first = Totals(20.0, np.zeros((1, 2)), np.zeros(1), {}, ends)
    assert _continued(first, np.ones(4), 6.0, resident=2).cycles == 30
    assert _continued(replace(first, block_ends=ends[:2], cycles=12.0), np.ones(2), 4.0, resident=2).cycles == 24


@pytest.mark.parametrize(("grid", "generations"), [(500, 4), (490, 4)])
def test_many_blocks_are_continued_from_a_few(grid, generations):
    code, pcs = gemm_loop(30)
    full = time_of(code, [pcs] * 4, 4, grid, 2, budget=10**9)
    few = time_of(code, [pcs] * 4, 4, grid, 2, RecordCycles(0, 0, 0, 0), budget=10 * 4 * len(pcs))
    blocks = generations * 2 + (grid // 10) % 2
    assert few.simulated_instructions == blocks * 4 * len(pcs)
    assert few.notes == (f"{grid // 10} blocks an SM, 2 at once: {blocks} simulated, the others take as long as they",)
    assert few.cycles == pytest.approx(full.cycles, rel=0.01)
    assert few.achieved_occupancy_pct == pytest.approx(full.achieved_occupancy_pct, rel=0.02)


def test_stalls_sum_to_resident_warp_cycles_and_selected_to_one():
    code, pcs = gemm_loop(30)
    timing = time_of(code, [pcs] * 8, 8, 10, 1)
    issued = 8 * len(pcs)
    assert timing.stalls["selected"] == 1
    assert timing.stall_samples.sum() == pytest.approx(sum(timing.stalls.values()) * issued)
    assert timing.achieved_occupancy_pct == pytest.approx(
        100 * timing.stall_samples.sum() / timing.cycles / GPU.sm.max_warps
    )
    assert timing.issue_active_pct == pytest.approx(100 * issued / 4 / timing.cycles)
    assert timing.stall_samples.shape == (len(code.instructions), len(timing.stalls))


def test_of_blocks_that_differ_the_last_recorded_comes_last():
    """Three blocks of 10, 20 and 30 iterations are recorded; an SM that runs two gets the second and the third."""
    pcs = {n: gemm_loop(n)[1] for n in (10, 20, 30)}
    code, _ = gemm_loop(10)
    streams = [pcs[n] for n in (10, 20, 30) for _ in range(4)]
    for blocks, expected in ((1, [30]), (2, [20, 30]), (5, [20, 30, 10, 20, 30])):
        timing = time_of(code, streams, 4, blocks * 10, 1)
        assert timing.simulated_instructions == 4 * sum(len(pcs[n]) for n in expected)


def test_records_stay_in_step_where_an_instruction_had_no_active_lane():
    code = program(ins("LDG", 1), ins("LDS", 1), ins("LDG", 1), ins("SHFL", 1), EXIT)
    trace = trace_of(code, [[0, 1, 2, 3, 4]], 1)
    trace = replace(
        trace, record_pc=trace.record_pc[1:], record_base=trace.record_base[1:], record_start=np.array([0, 2])
    )  # the first LDG left none
    cost = cost_of(trace, RecordCycles(3, 0, 0, 0))
    cost.wavefronts[1] = 7
    streams = RecordedStreams(code, instruction_table(code, GPU), trace, cost)
    assert streams.cut([0], {})[0].costs[:, 0].tolist() == [0, 3, 7, 1]  # a shuffle passes the data stage once
    assert streams.cut([0], {0: [(0, 1), (2, 5)]})[0].costs[1, 0] == 7


def test_which_warp_asks_l2_for_a_line_is_left_open():
    """Two warps, four loads each of one line; in turn, the second's first and the first's fourth missed."""
    code = program(*[ins("LDG", 1)] * 4, ins("STG", 1), EXIT)
    trace = trace_of(code, [[0, 1, 2, 3, 4, 5]] * 2, 2)
    cost = cost_of(trace, RecordCycles(1, 1, 0, 0))
    cost.l2_sectors[[3, 5]], cost.dram_sectors[5] = 2, 1
    cost.l2_sectors[[4, 9]] = 4  # the stores
    streams = RecordedStreams(code, instruction_table(code, GPU), trace, cost)
    first, second = (stream.costs for stream in streams.cut([0, 1], {}))
    assert first[:, 2].tolist() == [0, 2, 2, 2, 4]  # the very first load came before any miss
    assert second[:, 2].tolist() == [2, 2, 2, 2, 4]
    assert first[:, 3].tolist() == [0, 1, 1, 0, 0]
    fetches = [*first[:, FETCH].tolist(), *second[:, FETCH].tolist()]
    a, b = fetches[1], fetches[3]
    assert fetches == [0, a, a, b, 0, a, a, a, b, 0]
    assert 0 < a != b > 0


def test_a_warp_that_is_ahead_pays_for_the_others():
    """The miss is counted at the first warp, which here comes 50 cycles late: both wait for the second's."""
    code = program(ins("FFMA", 51), ins("LDG", 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    trace = trace_of(code, [[0, 1, 2, 3], [1, 2, 3]], 2)
    cost = cost_of(trace, RecordCycles(1, 1, 0, 0))
    cost.l2_sectors[0] = 1
    assert schedule(code, Launch((1, 1, 1), (64, 1, 1), ()), trace, cost, GPU, 1).cycles == 1 + 200 + 1 + 1


def test_record_that_was_never_executed_is_an_error():
    code = program(ins("LDG", 1), ins("LDS", 1), EXIT)
    trace = trace_of(code, [[0, 1, 2]], 1)
    wrong = replace(trace, record_pc=np.array([1, 0], np.int32))
    with pytest.raises(GemmsimError, match="not in the stream"):
        RecordedStreams(code, instruction_table(code, GPU), wrong, cost_of(wrong, NO_RECORD)).cut([0], {})


def test_no_streams_and_no_room_are_errors():
    code, pcs = gemm_loop(3)
    with pytest.raises(GemmsimError, match="no instruction streams"):
        time_of(code, [[]] * 4, 4, 10, 1)
    with pytest.raises(GemmsimError, match="no block of 'test' fits"):
        time_of(code, [pcs] * 4, 4, 10, 0)


@pytest.mark.parametrize("mnemonic", ["FFMA", "HMMA.16816.F32", "DMMA.8x8x4"])
def test_matrix_instructions_lower_the_clock_but_not_those_of_fp64(mnemonic):
    clock = replace(GPU.clock, sm_tensor_load_hz=8e8)
    gpu = replace(GPU, clock=clock, pipes=GPU.pipes | {"tensor": pipe("tensor", 8, 24)})
    code = program(ins(mnemonic, 1), EXIT)
    trace = replace(trace_of(code, [[0, 1]], 1), executed=np.array([[1, 1]]))
    timing = schedule(code, Launch((1, 1, 1), (32, 1, 1), ()), trace, cost_of(trace, NO_RECORD), gpu, 1)
    assert (timing.sm_clock_hz < 1e9) == mnemonic.startswith("HMMA")
    assert timing.duration_us == pytest.approx(timing.cycles / timing.sm_clock_hz * 1e6 + 2.0)


def test_a_clock_that_is_given_holds_for_the_whole_launch():
    gpu = replace(
        GPU, clock=replace(GPU.clock, sm_tensor_load_hz=8e8), pipes=GPU.pipes | {"tensor": pipe("tensor", 8, 24)}
    )
    code = program(ins("HMMA.16816.F32", 1), EXIT)
    trace = replace(trace_of(code, [[0, 1]], 1), executed=np.array([[1, 1]]))
    options = TimingOptions(sm_clock_hz=5e8)
    timing = schedule(code, Launch((1, 1, 1), (32, 1, 1), ()), trace, cost_of(trace, NO_RECORD), gpu, 1, options)
    assert timing.sm_clock_hz == 5e8


def test_a_launch_that_is_timed_again_takes_the_same_streams(monkeypatch):
    """At another clock, with loops that are cut: they are found once, and the times are those of streams made anew."""
    code, pcs = gemm_loop(300)
    trace = trace_of(code, [pcs] * 4, 4)
    cost, launch, found = cost_of(trace, NO_RECORD), Launch((1, 1, 1), (128, 1, 1), ()), []
    monkeypatch.setattr("gemmsim.sm.streams.find_loop", lambda stream: found.append(1) or find_loop(stream))
    recorded = cache(partial(recorded_streams, code, trace, cost, GPU))
    for hz in (5e8, 1e9):
        options = TimingOptions(sm_clock_hz=hz, max_instructions=2000)
        again = schedule(code, launch, trace, cost, GPU, 1, options, recorded)
        assert len(found) == 4
        monkeypatch.undo()
        anew = schedule(code, launch, trace, cost, GPU, 1, options)
        assert (again.cycles, again.duration_us, again.notes) == (anew.cycles, anew.duration_us, anew.notes)
        assert again.notes
    assert recorded.cache_info().misses == 1


@pytest.mark.parametrize(
    ("name", "slots", "latency"),
    [
        ("HMMA.16816.F32", 1.0, 24.0), ("HMMA.1688.F32", 0.5, 16.0), ("HMMA.1688.F32.TF32", 1.0, 24.0),
        ("HMMA.1684.F32.TF32", 0.5, 16.0), ("IMMA.16832.S8.S8", 1.25, 25.0), ("IMMA.16816.S8.S8", 0.625, 16.0),
        ("DMMA.884", 2.0, 26.0), ("HMMA.16816.F16", 0.75, 24.0), ("QMMA.16832.F16.E4M3.E4M3", 0.75, 24.0),
        ("HMMA.SP.16832.F32", 1.0, 24.0), ("HMMA.SP.16816.F32.BF16", 0.5, 16.0), ("HMMA.SP.16816.F32.TF32", 1.0, 24.0),
        ("IMMA.16864.S4.S4", 1.25, 25.0), ("IMMA.16832.U4.U4", 0.625, 16.0), ("IMMA.SP.16864.S8.S8", 1.25, 25.0),
        ("BMMA.168256.AND.POPC", 1.25, 25.0), ("BMMA.168128.AND.POPC", 0.625, 16.0),
        ("DMMA.8x8x4", 2.0, 26.0), ("DMMA.16x8x4", 2.5, 34.0), ("DMMA.16x8x8", 4.0, 50.0), ("DMMA.16x8x16", 8.0, 82.0),
    ],
)  # fmt: skip
def test_tensor_instructions_by_their_shape(name, slots, latency):
    """The pipe takes HMMA.16816 every 8 cycles, IMMA every 10, DMMA every 16; half the work, half the time."""
    opcode, *modifiers = name.split(".")
    mma = replace(
        GPU.mma, half_work_share=0.5, half_work_latency_cycles=16.0, imma_interval_cycles=10.0,
        imma_latency_cycles=25.0, dmma_interval_cycles=16.0, dmma_latency_cycles=26.0, half_accumulator_share=0.75,
        dmma_wide_interval_cycles=(20.0, 32.0, 64.0),
        dmma_wide_latency_cycles=(34.0, 50.0, 82.0),
    )  # fmt: skip
    gpu = replace(GPU, mma=mma, pipes=GPU.pipes | {"tensor": pipe("tensor", 8, 24)})
    assert pipe_slots(opcode, modifiers, gpu) == slots
    assert matrix_latency_cycles(opcode, modifiers, gpu) == latency


def test_the_steady_state_is_measured_in_the_middle(monkeypatch):
    """One warp, iterations of 7 instructions behind 9, 66 of them in a row: 32 are measured, from the 17th to the 49th
    (a cycle each here), so that warps that are ahead or behind at either end do not count as the pace of all."""
    code, pcs = gemm_loop(400)
    trace = trace_of(code, [pcs], 1)
    table = instruction_table(code, GPU)
    simulator = Simulator(table, GPU, RecordedStreams(code, table, trace, cost_of(trace, NO_RECORD)), 1e9)
    loop = find_loop(np.array(pcs, np.int32))
    cut = _Cut({0: loop}, loop.count, 66)
    seen = []

    def run(blocks, resident, active_sms, parts, marks=()):
        seen.append(tuple(marks))
        ends = np.zeros(0)
        return SimpleNamespace(
            snapshots=[Totals(float(at), np.zeros((11, 18)), np.zeros(11), {}, ends) for at in marks]
        )

    monkeypatch.setattr(simulator, "_run", run)
    iteration = simulator._iteration([[0]], 1, 1, cut)
    assert seen == [(9 + 17 * 7, 9 + 49 * 7)]
    assert iteration.cycles == 7


def test_iterations_of_unequal_blocks_take_as_long_as_those_beside_them_allow():
    # Two blocks do two iterations in 30 cycles: the older 4 / 3, the younger 2 / 3, that is one in 22.5 and in 45.
    ends = _ends_of_loops([4, 1], 2, together=30.0, alone=15.0)
    assert ends.tolist() == pytest.approx([45 + 2 * 15, 45])  # the older has done two by 45
    # The older is at most as quick as alone, one in 25 cycles; the younger ends after 45. The third
    # has done 30 / 45 of its iteration when the first ends, and is alone for the rest.
    ends = _ends_of_loops([3, 1, 1], 2, together=30.0, alone=25.0)
    assert ends.tolist() == pytest.approx([75, 45, 75 + 25 / 3])
    assert _ends_of_loops([5, 0, 0], 3, together=30.0, alone=25.0).tolist() == pytest.approx([125, 0, 0])
    assert _ends_of_loops([2, 3], 1, together=7.0, alone=7.0).tolist() == pytest.approx([14, 35])


def test_staggered_blocks_leave_no_block_alone_for_long():
    # 16 blocks of 60 iterations, five at a time, an iteration of five in 50 cycles: 192 of these. In step, the 16th
    # would run alone after 180 of them.
    ends = _ends_of_loops([60] * 16, 5, together=50.0, alone=25.0)
    assert 192 * 50 < ends.max() < 180 * 50 + 60 * 25


@pytest.mark.parametrize(("read", "written", "cycles"), [(100, 0, 1000), (0, 100, 1000), (100, 50, 1750)])
def test_a_launch_takes_as_long_as_dram_is_busy(read: int, written: int, cycles: float) -> None:
    """3.2 GB/s and 1 GHz: a sector takes 10 cycles; one written for one that was read takes 5 more."""
    gpu = replace(GPU, dram=replace(GPU.dram, peak_bytes_per_s=3.2e9, turnaround=0.5))
    code = program(ins("LDG", 1, write=0), ins("STG", 1), EXIT)
    trace = trace_of(code, [[0, 1, 2]], 1)
    table = instruction_table(code, gpu)
    cost = replace(cost_of(trace, NO_RECORD), dram_sectors=np.array([read, written], np.uint16))
    assert dram_seconds(table, trace, cost, gpu) * 1e9 == pytest.approx(cycles)
