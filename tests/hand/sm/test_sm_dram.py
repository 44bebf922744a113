"""An SM's share of DRAM, by hand: its rate, the queue before it, and writes among reads; and lines written in part."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, Path, idle_sm, ins, issues, program, row, simulate

from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units import dram as unit
from gemmsim.sm.units import slowest_line
from gemmsim.sm.units.execution import Sync
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.tma import load_tile


@pytest.mark.parametrize("mnemonic", ["LDG", "STG"])
def test_dram_bound_stream_runs_at_the_share_exactly(mnemonic):
    # 64 bytes a cycle for 4 active SMs: 128 bytes take 8 cycles of this SM's share
    gpu = replace(GPU, dram=replace(GPU.dram, peak_bytes_per_s=128e9, achievable_fraction=0.5))

    def finish(loads: int) -> float:
        code = program(*[ins(mnemonic, 1, write=0)] * loads, ins("FFMA", 1, wait=1), EXIT)
        return simulate(code, 4, cost=RecordCycles(1, 1, 4, 4), gpu=gpu, active_sms=4).cycles

    if mnemonic == "LDG":
        assert finish(200) - finish(100) == 4 * 100 * 8
    else:  # stores do not wait for DRAM: they leave at the L2 share, 2 cycles each
        assert finish(200) - finish(100) == 4 * 100 * 2


def test_a_line_in_part_takes_l2_as_long_as_further_sectors():
    """32 bytes a cycle, half of it for stores: four sectors take 8 cycles, with two lines in part of 1.5 sectors 14."""
    l2 = replace(GPU.l2, read_bytes_per_s=32e9, write_share=0.5, partial_line_sectors=1.5)

    def finish(accesses: int) -> float:
        code = program(*[ins("STG", 1)] * accesses, EXIT)
        return simulate(code, 4, cost=RecordCycles(1, 1, 4, 0, partial_lines=2), gpu=replace(GPU, l2=l2)).cycles

    assert finish(200) - finish(100) == 4 * 100 * 14


def test_reads_queue_as_dram_fills_up():
    """A sector takes DRAM 100 cycles. Where it was busy for a share u, a read waits 10 u / (1 - u) cycles longer.

    After 0, 100 and 200 busy cycles of the first 500, and 800 of 1,000.
    """
    dram = replace(GPU.dram, peak_bytes_per_s=0.32e9, queue_latency_cycles=10.0)
    state = idle_sm(replace(GPU, dram=dram))
    sm = state.sm

    def queued(lines: int, now: int) -> float:
        return unit.queue_cycles(
            sm.spec.dram_queue_cycles, sm.memory.dram_share.asked, lines, sm.spec.dram_latency_cycles, now
        )

    found = [queued(1, 1)]
    for now, sectors in ((1, 1), (1, 1), (1000, 6)):
        unit.load(sm.spec, sm.memory, sectors, now)
        found.append(queued(1, now))
    assert found == pytest.approx([0, 10 * 0.2 / 0.8, 10 * 0.4 / 0.6, 10 * 0.8 / 0.2])
    unit.load(sm.spec, sm.memory, 6, 1000)  # more than has passed
    assert queued(1, 1000) == pytest.approx(10 * 0.98 / 0.02)
    assert queued(2, 1000) == pytest.approx(2 * queued(1, 1000))  # the later of two
    assert queued(5, 1000) == pytest.approx(3 * queued(1, 1000))


def test_dram_turns_round_for_writes_among_reads():
    """A sector takes 10 cycles. Of six written after four were read, four take 5 cycles longer; then none do."""
    state = idle_sm(replace(GPU, dram=replace(GPU.dram, peak_bytes_per_s=3.2e9, turnaround=0.5)))
    sm = state.sm
    spec, memory = sm.spec, sm.memory
    assert unit.read(spec, memory, 4, 0) == 0
    unit.write(spec, memory, 6, 0)
    assert memory.dram_share.due == 40 + 60 + 20
    unit.write(spec, memory, 1, 0)
    assert memory.dram_share.due == 130
    assert unit.read(spec, memory, 1, 0) == 130  # a tile waits until DRAM begins with it


def test_lines_that_several_sms_want_come_sooner():
    """By 60 of the 300 cycles that DRAM takes longer than L2. What is early comes no sooner than from L2."""
    dram = replace(GPU.dram, latency_deviation_cycles=100.0, shared_sooner_cycles=60.0)
    spec = idle_sm(replace(GPU, dram=dram)).sm.spec
    assert [unit.latency_beyond_l2(spec, 0, slowest) for slowest in (0.0, 1.5, -4.0)] == [300, 450, 0]
    assert [unit.latency_beyond_l2(spec, 1, slowest) for slowest in (0.0, 1.5, -4.0)] == [240, 390, 0]


def test_a_load_waits_for_the_slowest_of_its_lines():
    """One line is as often early as late by as much. Of n lines the slowest is later: by 0.56, 1.03, 1.42 and 1.77
    standard deviations in the mean for 2, 4, 8 and 16 of them (the expected largest of n normal numbers)."""
    sm = idle_sm(GPU).sm
    means = []
    for lines in (1, 2, 4, 8, 16):
        drawn = [slowest_line.slowest_of(sm.spec, sm.memory, lines) for _ in range(slowest_line.DRAWS)]
        assert len(set(drawn)) == slowest_line.DRAWS  # each once, before one comes again
        means.append(sum(drawn) / slowest_line.DRAWS)
    assert means == pytest.approx([0, 0.56, 1.03, 1.42, 1.77], abs=0.04)
    assert slowest_line.level_of(0) == 0 and slowest_line.level_of(255) == 7
    assert slowest_line.level_of(10**6) == slowest_line.LEVELS - 1


@pytest.mark.parametrize(("shared", "base", "deviation"), [(0, 200, 10), (1, 500, 110)])
def test_latency_differs_from_line_to_line_in_l2_and_more_in_dram(shared, base, deviation):
    """A load of two runs of 256 bytes is 0.56 standard deviations later than one line in the mean; DRAM, which is read
    for another SM, has 100 cycles of deviation beside the 10 of L2."""
    gpu = replace(
        GPU,
        l2=replace(GPU.l2, latency_deviation_cycles=10.0),
        dram=replace(GPU.dram, latency_deviation_cycles=100.0),
    )
    loads = slowest_line.DRAWS
    code = program(*(ins("LDG", 1, write=0), ins("FFMA", 1, wait=1)) * loads, EXIT)
    cost = RecordCycles(1, 1, 1, 0, dram_shared=shared, runs=2)
    at = issues(code, gpu=gpu, cost=cost).cycles(0)
    waits = [at[n + 1] - at[n] for n in range(0, 2 * loads, 2)]
    assert sum(waits) / loads == pytest.approx(base + 0.56 * deviation, abs=0.02 * deviation + 1)
    assert max(waits) - min(waits) > 3 * deviation


def test_reads_wait_for_writes_the_longer_the_more_of_both_there_are():
    """A sector takes 10 cycles. Of 8 asked for in the first 800 cycles, half to be written, a tenth is used:
    100 * 1/2 * 0.1 / (1 - 0.07) cycles. Of 80, all of it: 100 * 1/20 * 1 / 0.3."""
    dram = replace(
        GPU.dram, peak_bytes_per_s=3.2e9, achievable_fraction=1.0, turnaround=0.0, mixed_latency_cycles=100.0
    )
    state = idle_sm(replace(GPU, dram=dram))
    sm = state.sm
    unit.load(sm.spec, sm.memory, 4, 0)
    assert unit.mixed_cycles(sm.spec, sm.memory, 800) == 0  # nothing is written
    unit.write(sm.spec, sm.memory, 4, 0)
    assert unit.mixed_cycles(sm.spec, sm.memory, 800) == pytest.approx(100 * 0.5 * 0.1 / 0.93)
    unit.load(sm.spec, sm.memory, 72, 0)
    assert unit.mixed_cycles(sm.spec, sm.memory, 800) == pytest.approx(100 * 0.05 / 0.3)
    assert unit.mixed_cycles(sm.spec, sm.memory, 700) == pytest.approx(100 * 0.05 / 0.3)  # more than has passed


def test_loads_and_tiles_wait_for_writes() -> None:
    """Of DRAM's share, 100,000 cycles are taken by what is written: a load and a tile come so much later."""

    def done(mixed: float) -> tuple[float, float]:
        path = Path(replace(GPU, dram=replace(GPU.dram, mixed_latency_cycles=mixed)))
        memory = path.sm.memory
        memory.dram_share.asked, memory.dram_read, memory.dram_written = 100_000.0, 0.0, 10_000.0
        load = row(Instruction, writes_registers=1, hit_latency_cycles=32.0, lane_groups=1)
        there = path.request(200_000, load, RecordCycles(1, 1, 4, 4))[2]
        return there, load_tile(path.sm, memory, row(Sync, amount=128, l2_sectors=4, dram_sectors=4), 200_000)

    waits = 500.0 * 0.5 / (1 - 0.35)
    for later, sooner in zip(done(500.0), done(0.0), strict=True):
        assert later - sooner == pytest.approx(waits, abs=1)


def test_writes_of_long_ago_count_less():
    """A sector takes 10 cycles. 1,000 are written, then 1,001 read, which is more than is remembered: half of both are
    left. 800 more are less than that."""
    state = idle_sm(
        replace(GPU, dram=replace(GPU.dram, peak_bytes_per_s=3.2e9, achievable_fraction=1.0, turnaround=0.0))
    )
    sm = state.sm
    unit.write(sm.spec, sm.memory, 1000, 0)
    unit.load(sm.spec, sm.memory, 1001, 0)
    assert (sm.memory.dram_read, sm.memory.dram_written) == (5005, 5000)
    unit.load(sm.spec, sm.memory, 800, 0)
    assert (sm.memory.dram_read, sm.memory.dram_written) == (13005, 5000)
