"""The issue stage by hand: each expected cycle follows from the rules in the comment beside it."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, HALVES, START, ins, issues, pipe, program, simulate

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.program import Operand, OperandKind
from gemmsim.sm.observer import Observer
from gemmsim.sm.spec import Rates
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units.instruction import Reason
from gemmsim.support.errors import GemmsimError

ONE = RecordCycles(1, 0, 0, 0)


def test_stall_count_is_the_distance_between_two_issues():
    assert issues(program(ins("FFMA", 4), ins("FFMA", 4), EXIT)).cycles(0) == [START, START + 4, START + 8]


def test_yield_hint_leaves_the_next_cycle_even_to_nobody():
    assert issues(program(ins("FFMA", 1, hint=True), ins("FFMA", 1), EXIT)).cycles(0) == [START, START + 2, START + 3]


def test_one_instruction_a_cycle_and_sub_partition():
    seen = issues(program(*[ins("FFMA", 1)] * 10, EXIT), warps=8)  # two warps a sub-partition, 11 instructions each
    assert sorted(cycle for cycle, warp, _ in seen.seen if warp % 4 == 0) == list(range(START, START + 22))


def test_greedy_then_youngest():
    # Warps 0, 4, 8 share sub-partition 0. The youngest (8) goes first and keeps issuing while it is eligible; the three
    # cycles of a branch that is not taken let 4 in, which is greedy in turn.
    code = program(ins("FFMA", 1), ins("BRA", 3), ins("FFMA", 1), EXIT)
    order = [(warp, pc) for _, warp, pc in issues(code, warps=9).seen if warp % 4 == 0]
    # cycles 1,2: 8.0 8.1; 3,4: 4.0 4.1; 5: 8 is ready again (2+3=5) and younger than 0; 7: 4 is
    assert order == [(8, 0), (8, 1), (4, 0), (4, 1), (8, 2), (8, 3), (4, 2), (4, 3), (0, 0), (0, 1), (0, 2), (0, 3)]


def test_greedy_then_least_recently_issued():
    code = program(ins("FFMA", 1), ins("FFMA", 3), ins("FFMA", 1), EXIT)
    order = [(warp, pc) for _, warp, pc in issues(code, warps=9, oldest_block_first=False).seen if warp % 4 == 0]
    # cycles 1,2: 8.0 8.1; 3,4: 4.0 4.1; 5: 8 is ready (2+3=5), but 0 has not issued yet: 0.0 0.1; 7: 8 and 4 are ready
    assert order == [(8, 0), (8, 1), (4, 0), (4, 1), (0, 0), (0, 1), (8, 2), (8, 3), (4, 2), (4, 3), (0, 2), (0, 3)]


def test_warps_of_a_block_take_turns_with_the_tensor_cores():
    # A pipe of interval 2 and stalls of 3: in cycle 5 warp 8 is ready again, and 0 has not had its turn.
    gpu = replace(GPU, pipes=GPU.pipes | {"tensor": pipe("tensor", 2, 8)})
    seen = issues(program(ins("HMMA.16816.F32", 3), ins("HMMA.16816.F32", 3), EXIT), warps=9, gpu=gpu).seen
    assert [warp for _, warp, pc in seen if warp % 4 == 0 and pc < 2] == [8, 4, 0, 8, 4, 0]


def test_warps_that_wait_for_room_in_the_queue_of_memory_instructions_take_turns():
    # Warps 0, 4, 8 share a queue of 5; the data stage takes a load of 40 wavefronts every 40 cycles. The youngest, 8,
    # fills the queue, and takes the first place that becomes free. From then on they go in turn, until 8 has issued its
    # eight.
    seen = issues(program(*[ins("LDS", 1, write=0)] * 8, EXIT), warps=9, cost=RecordCycles(40, 0, 0, 0)).seen
    order = [warp for _, warp, pc in seen if warp % 4 == 0 and pc < 8]
    assert order[:14] == [8] * 6 + [4, 0, 8, 4, 0, 8, 4, 0]


def test_dependent_chains_advance_alike_and_with_the_youngest_first_do_not():
    # 8 warps a sub-partition, each ready every 4 cycles: twice what one issue a cycle can take
    code = program(*[ins("FFMA", 4)] * 100, EXIT)
    for oldest_block_first, least, most in ((False, 0, 8), (True, 300, 500)):
        seen = issues(code, warps=32, oldest_block_first=oldest_block_first)
        ends = [seen.cycles(warp)[-1] for warp in range(0, 32, 4)]
        assert least <= max(ends) - min(ends) <= most


def test_the_oldest_block_goes_first():
    # Two blocks of one warp on the same sub-partition, each ready every second cycle: the older one is never late.
    code = program(*[ins("LOP3", 2)] * 50, EXIT)
    seen = issues(code, warps=4, blocks=2, resident=2)
    assert seen.cycles(0) == [START + 2 * n for n in range(51)]
    assert seen.cycles(4)[0] == START + 101  # the pipe is free before it has issued EXIT


def test_pipe_with_interval_two_issues_every_second_cycle_whatever_the_number_of_warps():
    totals = simulate(program(*[ins("LOP3", 1)] * 50, EXIT), warps=32)  # 8 warps a sub-partition
    # 400 LOP3 at one in 2 cycles; the last one's warp exits in the next cycle (cbu is another pipe)
    assert totals.cycles == START + 2 * 399 + 1 + 1
    assert totals.busy_cycles["alu"] == 800
    assert totals.stall_cycles[:, Reason["MATH_PIPE_THROTTLE"]].sum() > 0


def test_single_warp_is_throttled_one_cycle_by_a_pipe_of_interval_two():
    totals = simulate(program(ins("LOP3", 1), ins("LOP3", 1), EXIT))
    assert totals.stall_cycles[1, Reason["MATH_PIPE_THROTTLE"]] == 1
    assert totals.stall_cycles[:, Reason["NOT_SELECTED"]].sum() == 0


def test_fp32_uses_both_halves_and_integer_multiply_only_the_heavy_one():
    ffma = issues(program(*[ins("FFMA", 1)] * 4, EXIT), gpu=HALVES).cycles(0)
    imad = issues(program(*[ins("IMAD", 1)] * 4, EXIT), gpu=HALVES).cycles(0)
    assert ffma == [1, 2, 3, 4, 5]
    assert imad == [1, 3, 5, 7, 8]
    # one IMAD and one FFMA alternate without a pause: the FFMA leaves the heavy half alone
    mixed = issues(program(*[ins("IMAD", 1), ins("FFMA", 1)] * 3, EXIT), gpu=HALVES).cycles(0)
    assert mixed == [1, 2, 3, 4, 5, 6, 7]


def test_taken_branch_waits_for_its_target():
    code = program(ins("FFMA", 1), ins("BRA", 5), EXIT)
    seen = issues(code, pcs=[0, 1, 0, 1, 2]).cycles(0)
    # cbu latency 10 where the branch is taken, its stall count 5 where it falls through
    assert seen == [1, 2, 12, 13, 18]
    totals = simulate(code, pcs=[0, 1, 0, 1, 2])
    assert totals.stall_cycles[0, Reason["BRANCH_RESOLVE"]] == 5
    assert totals.stall_cycles[0, Reason["WAIT"]] == 4


def test_scoreboard_of_a_variable_latency_pipe():
    code = program(ins("MUFU", 1, write=0), ins("FFMA", 1), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code).cycles(0) == [1, 2, 21, 22]  # MUFU: xu latency 20
    assert simulate(code).stall_cycles[2, Reason["SHORT_SCOREBOARD"]] == 18


def test_read_barrier_is_released_before_the_result():
    code = program(ins("MUFU", 1, write=0, read=1), ins("FFMA", 1, wait=2), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code).cycles(0) == [1, 12, 21, 22]  # sources read 11 cycles after issue


def test_barrier_opens_a_fixed_time_after_the_last_arrival():
    code = program(ins("FFMA", 15), ins("BAR.SYNC", 1), ins("ULDC", 1), EXIT)
    seen = issues(code, warps=8)
    # two warps a sub-partition: FFMA at 1 and 2, BAR at 16 and 17; both go on 20 cycles (adu latency) after cycle 17,
    # first warp 4, the younger, which keeps the slot for its EXIT
    assert [seen.cycles(w)[1] for w in (0, 4)] == [17, 16]
    assert [seen.cycles(w)[2] for w in (0, 4)] == [39, 37]
    totals = simulate(code, warps=8)
    # four warps are ready to go on at 17, four at 18, and wait till 37
    assert totals.stall_cycles[2, Reason["BARRIER"]] == 4 * 20 + 4 * 19


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_barriers_take_the_cycles_measured_on_hopper(warps):
    """Own microbenchmark on an H200: barriers one behind another take 12.2 + 2 * warps cycles each."""
    gpu = replace(GPU, barrier=load_gpu("h200").barrier)
    cycles = issues(program(*[ins("BAR.SYNC", 1)] * 9, EXIT), warps=warps, gpu=gpu).cycles(0)
    assert (cycles[8] - cycles[0]) / 8 == pytest.approx(12.2 + 2 * warps, abs=1.0)


@pytest.mark.parametrize("mnemonic", ["FFMA", "UISETP"])
@pytest.mark.parametrize("stops", ["ULDC", "UMOV", "S2R", "MUFU", "LDS", "BSSY"])
def test_arithmetic_goes_on_behind_a_barrier(mnemonic, stops):
    """Warp 0 arrives in cycle 1, warp 1 in cycle 31: the barrier opens in cycle 51. What computes issues before."""
    code = program(ins("FFMA", 30), ins("BAR.SYNC", 1), *[ins(mnemonic, 1)] * 2, ins(stops, 1), EXIT)
    streams = [[1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    seen = issues(code, streams=streams)
    assert seen.cycles(0)[:4] == [1, 2, 3, 51]
    assert seen.cycles(1)[:5] == [1, 31, 32, 33, 51]
    totals = simulate(code, streams=streams)
    assert totals.stall_cycles[4, Reason["BARRIER"]] == (51 - 4) + (51 - 34)
    waits = simulate(code, streams=streams, math_behind_barriers=False)
    assert waits.stall_cycles[2, Reason["BARRIER"]] == (51 - 2) + (51 - 32)


def test_a_barrier_that_is_open_does_not_hold_what_comes_later():
    code = program(ins("BAR.SYNC", 1), *[ins("FFMA", 1)] * 30, ins("ULDC", 1), EXIT)
    assert issues(code).cycles(0) == list(range(1, 34))  # opens in cycle 21, ULDC issues in cycle 32


def test_barrier_does_not_wait_for_warps_that_have_ended():
    code = program(ins("FFMA", 10), ins("BAR.SYNC", 1), EXIT)
    # warps 0 and 1 arrive in cycle 1; warp 2 never does, and ends in cycle 11
    seen = issues(code, streams=[[1, 2], [1, 2], [0, 2]])
    assert [seen.cycles(w) for w in range(3)] == [[1, 31], [1, 31], [1, 11]]


def test_barrier_closes_again_behind_the_warps():
    code = program(ins("BAR.SYNC", 1), ins("ULDC", 1), ins("FFMA", 15), ins("BAR.SYNC", 1), EXIT)
    seen = issues(code, streams=[[0, 1, 3, 4], [0, 1, 2, 3, 4]])  # a jump of warp 0 over pc 2 costs 10 cycles
    assert seen.cycles(0) == [1, 21, 31, 57]
    assert seen.cycles(1) == [1, 21, 22, 37, 57]


def test_named_barrier_counts_its_own_warps():
    two_warps = (Operand(OperandKind.IMMEDIATE, value=1), Operand(OperandKind.IMMEDIATE, value=64))
    code = program(ins("BAR.SYNC", 1, operands=two_warps), EXIT)
    seen = issues(code, warps=4)
    assert sorted(seen.cycles(w)[1] for w in range(4)) == [21, 21, 21, 21]


def test_depbar_lets_the_newest_operations_stay_outstanding():
    sb0 = Operand(OperandKind.SPECIAL, name="SB0")
    le = ins("DEPBAR.LE", 1, operands=(sb0, Operand(OperandKind.IMMEDIATE, value=1)))
    code = program(ins("MUFU", 1, write=0), ins("MUFU", 1, write=0), le, EXIT)
    # MUFU at 1 and 9 (interval 8), released at 21 and 29; one may stay outstanding
    assert issues(code).cycles(0) == [1, 9, 21, 22]


def test_two_blocks_share_the_sm_and_the_third_starts_when_one_has_left():
    code = program(ins("FFMA", 10), EXIT)
    seen = issues(code, warps=4, blocks=3, resident=2)
    # blocks 0 and 1 in slots 0-3 and 4-7: older first at 1, younger at 2; exits at 11 and 12, seats free at 12 and 13.
    # block 2 takes the first seat (slot 0-3) at 12 and starts one cycle later
    assert seen.cycles(0) == [1, 11, 13, 23]
    assert seen.cycles(4) == [2, 12]
    assert simulate(code, 4, blocks=3, resident=2).cycles == 24


@pytest.mark.parametrize(("resident", "cycles"), [(3, [1, 11, 21, 31]), (2, [1, 11, 21, 31]), (1, [1, 13, 25, 37])])
def test_blocks_are_dispatched_one_after_the_other(resident, cycles):
    """Every 10 cycles at best. A block takes 11 cycles and its place is free in the next, so one place gives 12."""
    gpu = replace(GPU, launch=replace(GPU.launch, block_interval_cycles=10.0))
    seen = issues(program(ins("FFMA", 10), EXIT), warps=1, blocks=4, resident=resident, gpu=gpu)
    begins = sorted(cycle for warp in range(resident) for cycle in seen.cycles(warp)[::2])
    assert begins == cycles


def test_all_sms_wait_for_one_dispatcher():
    """0.5 ns a block: 20 SMs at 1 GHz get one every 10 cycles each, unless an SM needs longer for each of its own."""
    gpu = replace(GPU, launch=replace(GPU.launch, block_interval_cycles=4.0, dispatch_interval_us=0.0005))
    assert [Rates.share(gpu, sms, 1e9).block_interval_cycles for sms in (20, 9, 8, 1)] == [10, 4.5, 4, 4]
    assert Rates.share(gpu, 20, 2e9).block_interval_cycles == 20


@pytest.mark.parametrize("warps", [1, 3, 8, 17])
@pytest.mark.parametrize("gpu", [GPU, HALVES])
def test_stall_reasons_add_up_to_resident_warp_cycles(warps, gpu):
    code = program(
        ins("LDG.E", 2, write=0, read=3), ins("LDS.128", 1, write=1), ins("LOP3", 1), ins("IMAD", 2, wait=1),
        ins("FFMA", 4, wait=2), ins("BAR.SYNC", 5), ins("MUFU", 1, write=2), ins("FFMA", 1, wait=4, hint=True),
        ins("STS", 1, read=4), ins("BRA", 5), ins("STG.E", 1, wait=16), EXIT,
    )  # fmt: skip
    resident = _ResidentCycles()
    totals = simulate(
        code, warps, cost=RecordCycles(3, 2, 4, 2), gpu=gpu, pcs=list(range(10)) * 5 + [10, 11], observer=resident
    )
    stalls = totals.stall_cycles
    drain = stalls[:, Reason["DRAIN"]].sum()
    assert stalls.sum() - drain == resident.total(START)
    assert (stalls >= 0).all()
    for reason in ("LONG_SCOREBOARD", "SHORT_SCOREBOARD", "BARRIER", "WAIT", "BRANCH_RESOLVE", "DRAIN"):
        assert stalls[:, Reason[reason]].sum() > 0, reason


class _ResidentCycles(Observer):
    """Warp cycles between start and last issue, from the issues alone."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}

    def on_issue(self, cycle: int, sub_partition: int, warp: int, instruction: int) -> None:
        self.last[warp] = cycle

    def total(self, start: int) -> int:
        return sum(cycle + 1 - start for cycle in self.last.values())


def test_an_unknown_opcode_is_named():
    with pytest.raises(GemmsimError, match=r"opcode FFMB .*did you mean 'FFMA'"):
        simulate(program(ins("FFMB")))


def test_missing_pipe_is_named():
    with pytest.raises(GemmsimError, match="no pipe 'fp64'"):
        simulate(program(ins("DFMA")))


def test_integer_multiply_uses_both_halves_from_sm_120_on():
    code = program(*[ins("IMAD", 1)] * 4, EXIT, arch="sm_120")
    assert issues(code, gpu=HALVES).cycles(0) == [1, 2, 3, 4, 5]


def test_half_precision_without_a_pipe_of_its_own_runs_where_fp32_does():
    assert simulate(program(ins("HFMA2"), EXIT)).busy_cycles["fmaheavy"] == 1 / 4  # one of four sub-partitions


def test_a_pipe_that_is_never_idle_keeps_the_fraction_of_its_interval():
    """Every 1.5 cycles: a warp that always has an instruction ready issues in cycles 1, 3, 4, 6, 7, 9, ..."""
    gpu = replace(GPU, pipes=GPU.pipes | {"alu": pipe("alu", 1.5, 4)})
    busy = issues(program(*[ins("LOP3", 1)] * 40, EXIT), gpu=gpu).cycles(0)[:40]
    assert busy == [START + (3 * n + 1) // 2 for n in range(40)]
    paused = issues(program(*[ins("LOP3", 4)] * 3, EXIT), gpu=gpu).cycles(0)[:3]
    assert paused == [START, START + 4, START + 8]


def test_the_barrier_of_a_cluster_opens_later_than_one_of_the_block():
    """Warp 1 comes 30 cycles later. Only the wait holds warp 0; warp 2 ends. It opens 40 cycles later than BAR."""
    code = program(ins("FFMA", 30), ins("UCGABAR_ARV", 1), ins("UCGABAR_WAIT", 1), ins("ULDC", 1), EXIT)
    plain = program(ins("FFMA", 30), ins("UCGABAR_ARV", 1), ins("BAR.SYNC", 1), ins("ULDC", 1), EXIT)
    streams = [[1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 4]]
    seen, known = issues(code, streams=streams), issues(plain, streams=streams)
    assert seen.cycles(0)[:2] == [1, 2]
    assert [seen.cycles(w)[:2] for w in range(3)] == [known.cycles(w)[:2] for w in range(3)]
    assert known.cycles(0)[2] == known.cycles(1)[2] + 20  # opens 20 cycles after the last arrival
    assert seen.cycles(0)[2] == seen.cycles(1)[2] + 20 + 40


@pytest.mark.parametrize(("warps", "cycles"), [(1, 80.3), (4, 86.3), (8, 94.8)])
def test_the_barrier_of_a_cluster_takes_the_cycles_measured_on_hopper(warps, cycles):
    """Of four blocks; of two it takes 4 cycles less on the H200, of eight 4 more (tests/records/h200_clusters.json)."""
    gpu = replace(GPU, barrier=load_gpu("h200").barrier)
    code = program(*[ins("UCGABAR_ARV", 1), ins("UCGABAR_WAIT", 1)] * 9, EXIT)
    found = issues(code, warps=warps, gpu=gpu).cycles(0)
    assert (found[17] - found[1]) / 8 == pytest.approx(cycles, abs=2.5)
