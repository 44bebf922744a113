"""Copies to shared memory, what misses L1, and fences, by hand."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, ins, issues, program, simulate

from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.sync_rows import SyncFields


def test_loads_that_miss_come_one_after_another():
    """Five loads of a sector each: at an interval of 20 cycles the last is there 5 * 10 cycles later than at one of 10.
    Copies do not wait so."""

    def cycles(mnemonic, interval):
        gpu = replace(GPU, l1=replace(GPU.l1, miss_interval_cycles=interval))
        code = [ins(mnemonic, 1, write=0)] * 5
        fence = [ins("LDGDEPBAR", 1, write=0)] if mnemonic.startswith("LDGSTS") else []
        return simulate(
            program(*code, *fence, ins("IADD3", 1, wait=1), EXIT), cost=RecordCycles(1, 1, 1, 0), gpu=gpu
        ).cycles

    assert cycles("LDG", 20.0) - cycles("LDG", 10.0) == 50
    assert cycles("LDGSTS", 20.0) == cycles("LDGSTS", 10.0)


@pytest.mark.parametrize(
    ("mnemonic", "width", "past"),
    [("LDGSTS.E.BYPASS.128", 4, True), ("LDGSTS.E.128", 4, False), ("LDGSTS.E", 1, False)],
)
def test_copies_write_a_banks_width_a_cycle(mnemonic, width, past):
    """Counted as one wavefront, which a copy past L1 has alone; of a copy through L1 one of five is the write."""
    counted = 1 if past else width + 1
    totals = simulate(program(ins(mnemonic, 1), EXIT), cost=RecordCycles(counted, 4, 0, 0))
    assert totals.busy_cycles["lsu"] == counted + width - 1


def test_a_copy_that_reads_nothing_takes_the_stage_for_what_it_writes():
    """And at least for some cycles; one that reads adds what it writes to its wavefronts."""
    gpu = replace(GPU, l1=replace(GPU.l1, zeros_cycles=3.0))

    def busy(wavefronts, tag_cycles):
        cost = RecordCycles(wavefronts, tag_cycles, 0, 0)
        return simulate(program(ins("LDGSTS.E.128", 1), EXIT), cost=cost, gpu=gpu).busy_cycles["lsu"]

    assert [busy(n, 0) for n in (1, 2, 4, 16)] == [3, 3, 4, 16]
    assert [busy(n, 1) for n in (1, 4)] == [1 + 3, 4 + 3]


def test_a_fence_of_the_block_waits_its_turn_in_the_queue():
    """MEMBAR alone frees its scoreboard after 9 cycles; behind stores of 32 wavefronts it waits for the first."""

    def released(*before):
        code = (*before, ins("MEMBAR.ALL.CTA", 1, read=0), ins("IADD3", 1, wait=1), EXIT)
        costs, syncs = (
            dict.fromkeys(range(len(before)), RecordCycles(32, 0, 0, 0)),
            {len(before): [SyncFields(-1, amount=1)]},
        )
        seen = issues(program(*code), costs=costs, syncs=syncs).cycles(0)
        return seen[-2] - seen[-3]

    assert released() == 9
    assert released(ins("STS", 1), ins("STS", 1)) == 43
