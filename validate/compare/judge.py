"""Predicted beside measured: the error of each counter and time of each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ..records import Case
from .gaps import Gap, known_gaps
from .metrics import EXACT, MODELLED, NOISE, NOISY, relative_error
from .predict import Prediction


@dataclass(frozen=True)
class Number:
    """One counter or time of a case. error: relative, or in points of percent; kind: exact, noisy, modelled or time.

    excuse  why an exact counter need not agree (other machine code, a known deviation), "" where it must
    """

    name: str
    kind: str
    predicted: float
    measured: float
    error: float
    points: bool = False
    excuse: str = ""

    @property
    def agrees(self) -> bool:
        return abs(self.error) <= NOISE

    @property
    def error_pct(self) -> float:
        """Signed, in percent of the measured value or in points."""
        return self.error if self.points else 100 * self.error


@dataclass(frozen=True)
class Judged:
    """A case with its prediction. time: None where it was only counted; how: what it is held against."""

    case: Case
    prediction: Prediction
    time: Number | None
    how: str
    numbers: tuple[Number, ...]

    @property
    def title(self) -> str:
        return self.case.name + "".join(f" {key}={value}" for key, value in sorted(self.case.tunables.items()))

    @property
    def size(self) -> str:
        case = self.case
        return str(case.n) if case.m == case.n == case.k else f"{case.m}x{case.n}x{case.k}"

    @property
    def broken(self) -> tuple[Number, ...]:
        """Exact counters that do not agree and have no excuse."""
        return tuple(n for n in self.numbers if n.kind == "exact" and not n.excuse and not n.agrees)


def judge(case: Case, prediction: Prediction) -> Judged:
    if prediction.error:
        return Judged(case, prediction, None, "", ())
    how = case.held_against
    time = None
    if how:
        measured = case.times[how].median_us
        error = relative_error(prediction.time_us, measured)
        time = Number("time", "time", prediction.time_us, measured, error)
    return Judged(case, prediction, time, how, tuple(_numbers(case, prediction.counters)))


def judge_all(cases: Iterable[Case], predictions: Mapping[str, Prediction]) -> list[Judged]:
    return [judge(case, predictions[case.id]) for case in cases]


@cache
def _gaps() -> tuple[Gap, ...]:
    return known_gaps()


def _numbers(case: Case, predicted: Mapping[str, float]) -> Iterable[Number]:
    excuses = dict(case.data.get("not_comparable", {}))
    excuses |= {gap.counter: f"known deviation {gap.number}" for gap in _gaps() if gap.covers(case, gap.counter)}
    for kind, names in (("exact", EXACT), ("noisy", NOISY)):
        for name in names:
            if name in case.counters and name in predicted:
                ours, theirs = predicted[name], case.counters[name]
                yield Number(name, kind, ours, theirs, relative_error(ours, theirs), excuse=excuses.get(name, ""))
    for metric in MODELLED:
        if metric.name in case.counters and metric.name in predicted:
            ours, theirs = predicted[metric.name], case.counters[metric.name]
            if theirs < metric.least:
                continue
            error = ours - theirs if metric.points else relative_error(ours, theirs)
            yield Number(metric.name, "modelled", ours, theirs, error, metric.points)
