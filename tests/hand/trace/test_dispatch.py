"""Which blocks the SM executes that ends last, where blocks have unequal work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gemmsim.trace.blocks.dispatch import shares_of_last_sms


def dealt(work: list[int], sms: int, resident: int) -> list[list[int]]:
    """The slow twin: the blocks of each SM, and when it ends, by going from one end of a block to the next."""
    left: list[dict[int, Fraction]] = [{} for _ in range(sms)]
    given: list[list[int]] = [[] for _ in range(sms)]
    ends, now, waiting = [Fraction(0)] * sms, Fraction(0), list(range(len(work)))
    for _ in range(resident):
        for sm in range(sms):
            if waiting:
                left[sm][waiting[0]] = Fraction(work[waiting[0]])
                given[sm].append(waiting.pop(0))
    while any(left):
        # Older blocks are done more of: of three, the oldest gets 3/6 of the SM, the youngest 1/6.
        shares = []
        for on in left:
            ages, total = enumerate(sorted(on)), sum(range(len(on) + 1))
            shares.append({b: Fraction(len(on) - age, total) for age, b in ages})
        step = min(on[b] / share[b] for on, share in zip(left, shares, strict=True) for b in on)
        now += step
        for on, share in zip(left, shares, strict=True):
            for block in on:
                on[block] -= step * share[block]
        for sm, on in enumerate(left):
            for block in [b for b, rest in on.items() if rest == 0]:
                del on[block]
                ends[sm] = now
                if waiting:
                    on[waiting[0]] = Fraction(work[waiting[0]])
                    given[sm].append(waiting.pop(0))
    return [blocks for sm, blocks in enumerate(given) if ends[sm] == max(ends)]


def share(work: list[int], sms: int, resident: int):
    return next(iter(shares_of_last_sms(np.array(work), np.arange(len(work)), sms, resident)), None)


def test_blocks_of_equal_work_need_no_dealing():
    assert share([100] * 1000, 10, 2) is None
    assert share([100, 101, 102] * 50, 10, 2) is None
    assert share([100, 101, 103] * 50, 10, 2) is not None


def test_blocks_that_leave_at_once_make_room_for_others():
    # Two SMs, one block at a time: the second leaves after 1, and its SM gets all until the first leaves after 10.
    found = share([10, 1, 1, 1, 1, 1, 9], 2, 1)
    assert found.blocks.tolist() == [6 if b == 6 else 1 for b in (1, 2, 3, 4, 5, 6)]  # 1 stands for those with as much
    assert found.work.tolist() == [1, 1, 1, 1, 1, 9]
    assert found.active_sms == 2  # 24 of work while this SM does 14


def test_where_all_blocks_begin_at_once_the_fullest_sm_ends_last():
    found = share([5, 1, 1, 5, 1, 1, 5], 3, 4)
    assert found.blocks.tolist() == [0, 0, 0]  # blocks 0, 3 and 6
    assert found.work.tolist() == [5, 5, 5]
    assert found.active_sms == 2  # 19 of work while this SM does 15


def test_equal_blocks_among_idle_ones_are_spread_evenly():
    # 4,096 blocks with work and 4,096 without on 132 SMs: 31.03 each. The SM that ends last does not get a whole
    # generation of five more.
    found = share([1000] * 4096 + [4] * 4096, 132, 5)
    assert (found.work == 1000).sum() in (31, 32)


def test_half_of_the_blocks_idle_take_half_the_work_of_all():
    work = [1000 if b % 2 else 4 for b in range(4096)]
    found = share(work, 132, 2)
    assert found.work.sum() == pytest.approx(sum(work) / 132, rel=0.1)
    assert found.active_sms >= 120


def test_the_sm_with_the_longest_block_is_looked_at_too():
    work = np.array([100, 60, 1, 60])  # two SMs: the first does 101, the second 120
    most, longest = shares_of_last_sms(work, np.arange(4), 2, 2)
    assert most.work.tolist() == [60, 60]
    assert longest.work.tolist() == [100, 1]
    assert len(shares_of_last_sms(np.array([100, 60, 60, 60]), np.arange(4), 2, 2)) == 1


def test_it_stands_for_executed_blocks_and_for_few_of_them():
    work = np.arange(1, 2001)
    found = shares_of_last_sms(work, np.full(2000, 7), 10, 2)[0]
    assert set(found.blocks.tolist()) == {7}
    found = shares_of_last_sms(work, np.arange(2000), 10, 2)[0]
    assert len(set(found.blocks.tolist())) == 8
    assert len(found.blocks) == len(found.work)
    assert work[found.blocks].sum() == pytest.approx(found.work.sum(), rel=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_any_work_is_dealt_as_by_hand(seed: int):
    rng = np.random.default_rng(seed)
    sms, resident = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    work = rng.integers(1, 10**6, rng.integers(2, 60)).tolist()  # so that no two blocks end at once by rounding
    found = share(work, sms, resident)
    if found is not None:
        by_hand = dealt(work, sms, resident)
        assert found.work.tolist() in [[work[b] for b in blocks] for blocks in by_hand]
