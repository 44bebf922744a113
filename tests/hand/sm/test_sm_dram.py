"""An SM's share of DRAM, by hand: its rate, the queue before it, and writes among reads; and lines written in part."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, idle_sm, ins, program, simulate

from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units import dram as unit


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


def test_most_lines_that_several_sms_want_come_sooner():
    """A quarter of them does not: of 32 loads of one line 8 come as others do, of two lines 14, of four 22 (0.75 of
    them do not, 0.75 squared, and so on). None comes later than it would."""
    dram = replace(GPU.dram, latency_deviation_cycles=100.0, shared_sooner_cycles=60.0, shared_late_share=0.25)
    for lines, late in ((1, 8), (2, 14), (4, 22)):
        found = {}
        for shared in (0, 1):
            state = idle_sm(replace(GPU, dram=dram))
            found[shared] = [
                unit.load_latency(state.sm.spec, state.sm.memory, shared, lines) for _ in range(unit.DRAWS)
            ]
        assert all(b <= a for a, b in zip(found[0], found[1], strict=True))
        assert sum(latency > GPU.dram.latency_cycles - 60 for latency in found[1]) == late


def test_a_load_waits_for_the_slowest_of_its_lines():
    """One line is as often early as late by as much. Of n lines the slowest is later: by 0.56, 1.03, 1.42 and 1.77
    standard deviations in the mean for 2, 4, 8 and 16 of them (the expected largest of n normal numbers)."""
    state = idle_sm(replace(GPU, dram=replace(GPU.dram, latency_deviation_cycles=100.0)))
    spec, memory = state.sm.spec, state.sm.memory
    means = []
    for lines in (1, 2, 4, 8, 16):
        drawn = [unit.latency(spec, memory, lines) - GPU.dram.latency_cycles for _ in range(unit.DRAWS)]
        assert len(set(drawn)) == unit.DRAWS  # each once, before one comes again
        means.append(sum(drawn) / unit.DRAWS)
    assert means == pytest.approx([0, 56, 103, 142, 177], abs=4)
    assert unit.delays(1000.0, -300.0).min() == -300.0  # none comes sooner than from L2
    assert unit.level_of(0) == 0 and unit.level_of(255) == 7 and unit.level_of(10**6) == unit.LEVELS - 1
