"""Computes figures of accuracy: means and percentiles of errors, and how well the order of kernels is predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite

from .judge import Judged, Number


@dataclass(frozen=True)
class Figures:
    """Statistics of the absolute errors of some cases, in percent or points.

    cases       how many errors there are
    p90         the 90th percentile of the absolute errors
    bias        mean of the signed errors
    worst_case  id of the case with the largest error
    """

    cases: int
    mean: float
    p90: float
    worst: float
    bias: float
    worst_case: str

    def texts(self) -> tuple[str, str, str, str]:
        """Return the mean, the 90th percentile, the worst error and the bias as texts for a table."""
        return f"{self.mean:.1f}", f"{self.p90:.1f}", f"{self.worst:.1f}", f"{self.bias:+.1f}"


@dataclass(frozen=True)
class Order:
    """How well the order of kernels by time was predicted, for one group of cases.

    group    name of the group: its GPU, size and so on (see `ladder_of`)
    kernels  the number of kernels in the group
    tau      Kendall's tau of the predicted and the measured order
    swapped  pairs of kernels whose order was predicted wrong, as texts
    """

    group: str
    kernels: int
    tau: float
    swapped: tuple[str, ...]


def figures(errors: Sequence[tuple[str, float]]) -> Figures:
    """Return the figures of `errors`, which has a pair (case id, signed error) for at least one case.

    The 90th percentile is the least error that 90 % of the cases do not exceed.
    """
    by_size = sorted(abs(error) for _, error in errors)
    worst = max(errors, key=lambda row: abs(row[1]))
    nearest = -(-9 * len(by_size) // 10) - 1
    mean, bias = (sum(values) / len(errors) for values in (by_size, [error for _, error in errors]))
    return Figures(len(errors), mean, by_size[nearest], abs(worst[1]), bias, worst[0])


def time_figures(judged: Iterable[Judged]) -> Figures | None:
    """Return the figures of the errors of the predicted times; None where no case has a time."""
    errors = [(row.case.id, row.time.error_pct) for row in judged if row.time]
    return figures(errors) if errors else None


def counter_figures(judged: Iterable[Judged], name: str) -> Figures | None:
    """Return the figures of the finite errors of one counter; None where no case has any."""
    errors = [(row.case.id, number.error_pct) for row in judged for number in row.numbers if number.name == name]
    errors = [(case, error) for case, error in errors if isfinite(error)]
    return figures(errors) if errors else None


def grouped(judged: Iterable[Judged], key: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    """Group the cases by the text that `key` returns for each; the groups are sorted by that text."""
    groups: dict[str, list[Judged]] = {}
    for row in judged:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def ladder_of(row: Judged) -> str:
    """Return the name of the group to which a case belongs when kernels are ordered by their time.

    The cases of a group share GPU, clocks, data type, size, the way of timing and the source of the measurement.
    """
    data = row.case.data
    where = data["source"]["url"] + data["source"].get("where", "") if "source" in data else ""
    parts = (row.case.gpu, *data.get("settings", ()), row.case.dtype, row.case.size, row.time_way, where)
    return " ".join(part for part in parts if part)


def orders(judged: Iterable[Judged], at_least: int = 3) -> list[Order]:
    """Return an `Order` for each group of cases (see `ladder_of`) that has at least `at_least` cases with a time."""
    found = []
    for group, rows in grouped((row for row in judged if row.time), ladder_of).items():
        if len(rows) >= at_least:
            pairs = [(row.title, row.time) for row in rows if row.time]
            found.append(_order(" ".join(part for part in group.split() if "://" not in part), pairs))
    return found


def _order(group: str, times: Sequence[tuple[str, Number]]) -> Order:
    """Compare the predicted with the measured order of the kernels whose names and times are in `times`.

    Tau is Kendall's tau a: the number of concordant pairs less the number of discordant pairs, divided by the number of
    all pairs. A pair with equal times is neither concordant nor discordant.
    """
    swapped = [
        f"{first} / {second}"
        for (first, a), (second, b) in combinations(times, 2)
        if (a.predicted - b.predicted) * (a.measured - b.measured) < 0
    ]
    return Order(group, len(times), tau_of([(time.predicted, time.measured) for _, time in times]), tuple(swapped))


def tau_of(times: Sequence[tuple[float, float]]) -> float:
    """Return Kendall's tau a of at least two times (predicted, measured)."""
    products = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(times, 2)]
    return sum((product > 0) - (product < 0) for product in products) / len(products)
