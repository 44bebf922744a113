"""The queue that stores have of an SM's share of L2, by hand.

L2 reads 16 bytes a cycle for the SM and writes 8, so that the four sectors of a store take 16 cycles of its share; the
link to L2 brings two sectors a cycle. The SM has left so much of its share unused that this keeps nothing waiting: what
waits does so for the link or for other stores. On the test GPU the first of four requests in one cycle, one from each
sub-partition, reaches L1 11 cycles later, the next ones a cycle each behind it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, START, Path, ins, issues, program, row, simulate

from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.units.instruction import Instruction

SLOW = replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9, write_share=0.5))
LOAD = row(Instruction, writes_registers=1, hit_latency_cycles=32.0, sources_read_cycles=11, lane_groups=1)
STORE = row(Instruction, hit_latency_cycles=32.0, sources_read_cycles=14, lane_groups=1)
MANY = RecordCycles(1, 1, 4000, 0)  # takes 8,000 cycles of the share, of which a quarter may be made up for later
FOUR = RecordCycles(1, 1, 4, 0)
LATER = 100_000


def done(*accesses: tuple[Instruction, int]) -> list[int]:
    """Cycles after which accesses of so many sectors each are complete, which issue together on an SM that waits for
    nothing any more."""
    path = Path(SLOW)
    path.request(1, LOAD, MANY)
    costs = [FOUR._replace(l2_sectors=sectors) for _, sectors in accesses]
    return [path.request(LATER, accesses[n][0], cost, n)[2] - LATER for n, cost in enumerate(costs)]


def test_stores_pass_one_after_another() -> None:
    """The first has passed the data stage in cycle 12 and takes 16 cycles; the two behind it are at L2 meanwhile."""
    assert done((STORE, 4), (STORE, 4), (STORE, 4)) == [12 + 16, 12 + 2 * 16, 12 + 3 * 16]


def test_a_load_does_not_wait_for_stores() -> None:
    """Three stores are before it at L2, until cycle 60. Its data take the data stage two cycles from cycle 14 on, the
    link two from cycle 15, of which half a cycle is the first sector's; it begins 3 cycles later than one alone."""
    assert done((STORE, 4), (STORE, 4), (STORE, 4), (LOAD, 4))[3] == 205  # 200 + 1.5 + 3
    assert done((LOAD, 4)) == [202]


def test_a_store_does_not_wait_for_loads() -> None:
    """400 sectors of a load come over the link from cycle 12 to 212, and take 800 cycles of the share. The store behind
    it passes the data stage in cycle 12, long before they come."""
    assert done((LOAD, 400), (STORE, 4))[1] == 13 + 16


@pytest.mark.parametrize(("sectors", "cycles"), [(400, 1600 + 16), (2, 1 + 12 + 16)])
def test_a_store_waits_for_what_tma_stores(sectors: int, cycles: int) -> None:
    """TMA takes the share from the cycle of its issue on; the store, which issues a cycle later, is at L2 12 cycles
    behind its own issue. Before it, what the load brings has the data stage for 1001 cycles."""
    waits = [ins("NOP", wait=1), *[ins("NOP", 15)] * 70]
    code = program(ins("LDG", 1, write=0), *waits, ins("UTMASTG.2D"), ins("STG"), EXIT, arch="sm_90a")
    bulk = 1 + len(waits)
    costs, syncs = {0: MANY, bulk + 1: FOUR}, {bulk: [SyncFields(-1, amount=64, l2_sectors=sectors)]}
    begun = issues(code, costs=costs, syncs=syncs, gpu=SLOW).cycles(0)[bulk]
    assert begun > 8000 + START
    assert simulate(code, costs=costs, syncs=syncs, gpu=SLOW).cycles - begun == cycles


@pytest.mark.parametrize("mnemonic", ["RED.E.ADD", "ATOMG.E.ADD"])
def test_atomics_leave_as_fast_as_the_busiest_slice_does_those_of_all_sms(mnemonic: str) -> None:
    """Each adds 20,000 ps to that slice's time: of three SMs, at 1 GHz, one gets through every 60 cycles."""
    cost = RecordCycles(1, 1, 1, 0, atomic_ps=20_000)

    def cycles(count: int) -> float:
        code = program(*[ins(mnemonic, 1)] * count, EXIT)
        return simulate(code, 4, cost=cost, gpu=SLOW, active_sms=3).cycles

    assert cycles(200) - cycles(100) == pytest.approx(4 * 100 * 60, abs=60)


def test_an_atomic_alone_waits_for_no_slice() -> None:
    """It is back as soon as a load; the next one waits for its turn, 60 cycles later, and comes a cycle behind."""
    path = Path(SLOW)
    cost = FOUR._replace(atomic_ps=60_000)
    alone = Path(SLOW).request(0, LOAD, FOUR)[2]
    assert path.request(0, LOAD, cost)[2] == alone
    assert path.request(1, LOAD, cost, 1)[2] == pytest.approx(alone + 60, abs=3)
