"""How well predictions choose among configurations, by hand."""

from __future__ import annotations

import pytest
from gemmsim_validate.compare.tiles import Choice, choice


def test_a_choice_among_seven() -> None:
    """(predicted, measured): the predicted best takes 12 where the best takes 10; that is the third predicted.

    Of the five measured best (10 to 14) four are among the five predicted best. Of 21 pairs, 4 are in another order.
    """
    times = [(1, 12), (2, 11), (3, 10), (4, 13), (5, 15), (6, 14), (7, 20)]
    found = choice([(float(p), float(m)) for p, m in times])
    assert found == Choice(7, pytest.approx(20.0), 0.0, 4, pytest.approx((17 - 4) / 21))


def test_the_best_of_five_may_not_be_the_best() -> None:
    times = [(float(i), 20.0 + i) for i in range(6)] + [(9.0, 10.0)]
    found = choice(times)
    assert (found.regret_pct, found.top_regret_pct) == (100.0, 100.0)
