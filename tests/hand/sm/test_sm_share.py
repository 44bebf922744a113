"""Shares of L2's and DRAM's bandwidth, by hand."""

from __future__ import annotations

from sm_builder import GPU, idle_sm

from gemmsim.sm.units.share import take


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
