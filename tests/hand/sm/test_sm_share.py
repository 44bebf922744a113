"""Shares of L2's and DRAM's bandwidth, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sm_builder import GPU, Path, idle_sm, row

from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.share import take

LOAD = row(Instruction, writes_registers=1, hit_latency_cycles=32.0, lane_groups=1)
STORE = row(Instruction, hit_latency_cycles=32.0, lane_groups=1)


def share():
    """A function (cycle, cycles of the share) that says when what was asked for is over; one part in four counts."""
    state = idle_sm(GPU)
    return lambda now, cycles: take(state.sm.memory.l2_share, now, cycles, 4.0), state


def test_at_first_an_sm_gets_its_share_and_no_more():
    ask, _ = share()
    assert ask(100, 80.0) == 180
    assert ask(120, 80.0) == 260  # behind the first, of which 20 cycles are over: 5 of them would count, too late


def test_what_it_has_not_used_counts_up_to_a_quarter_of_what_it_has_got():
    ask, _ = share()
    ask(0, 80.0)
    assert ask(1000, 80.0) == 1000 - 20 + 80
    assert ask(2000, 80.0) == 2000 - 40 + 80
    assert ask(3000, 80.0) == 3000 - 60 + 80
    assert ask(4000, 80.0) == 4000 - 80 + 80  # from the fifth on it is there at once, but for the link
    assert ask(4001, 80.0) == 4080  # and the sixth, which comes at once, waits for its share


def test_in_the_mean_it_gets_no_more_than_its_share():
    ask, _ = share()
    last = 0.0
    for n in range(1000):
        last = ask(40 * n, 80.0)  # asks for twice its share
    assert last >= 80 * 1000 * 0.99 - 40 * 1000 / 4
    for n in range(1000, 4000):
        last = ask(40 * n, 80.0)
    assert last > 40 * 4000


@pytest.mark.parametrize(
    ("sectors", "dram", "merged", "cycles"),
    [
        (4, 0, 0, 4 * 1.0),
        (4, 4, 0, 4 * 4.0),
        (4, 1, 0, 3 * 1.0 + 4.0),
        (4, 1, 2, 1 * 1.0 + 4.0),  # two come with another SM's request
        (4, 2, 4, 2 * 4.0),  # all are said to, and two to miss: these count
    ],
)
def test_slices_take_what_misses_as_slowly_as_stores(sectors: int, dram: int, merged: int, cycles: float) -> None:
    """To the SM come 16 bytes a cycle, a sector in two cycles. Its slices read them twice as fast, and write at half
    that rate, four cycles a sector."""
    path = Path(replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9, write_share=0.5, slice_read_share=2.0)))
    path.request(0, LOAD, RecordCycles(1, 1, sectors, dram, merged_sectors=merged), 0)
    assert path.sm.memory.slice_share.asked == pytest.approx(cycles)
    assert path.sm.memory.l2_share.asked == pytest.approx(2 * (sectors - merged))


def test_stores_take_the_time_of_slices_and_nothing_of_what_comes_to_the_sms() -> None:
    """The store's four sectors take 16 cycles; the load behind it, whose four miss, is there 16 cycles after them."""
    path = Path(replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9, write_share=0.5)))
    four = RecordCycles(1, 1, 4, 4)
    alone = Path(replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9, write_share=0.5))).request(0, LOAD, four)[2]
    path.request(0, STORE, four._replace(dram_sectors=0), 0)
    assert (path.sm.memory.slice_share.asked, path.sm.memory.l2_share.asked) == (16, 0)
    behind = path.request(0, LOAD, four, 1)[2]
    assert path.sm.memory.slice_share.due == 32
    assert behind >= alone
