"""Sets predictions beside measurements, and computes the error of each counter and time of each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..records.case import Case
from .deviations import known_deviations
from .metrics import EXACT, MODELLED, NOISE, NOISY, relative_error
from .predict import Prediction


@dataclass(frozen=True)
class Number:
    """One counter or time of a case, predicted and measured.

    kind    "exact", "noisy", "modelled" or "time"
    error   predicted / measured - 1; or predicted - measured, in points, where `points` is true
    points  whether `predicted` and `measured` are percentages
    excuse  why an exact counter need not agree (other machine code, a known deviation); "" where it must
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
        """Whether the absolute error is at most NOISE, the noise of a hardware counter."""
        return abs(self.error) <= NOISE

    @property
    def error_pct(self) -> float:
        """The signed error in percent of the measured value, or in points."""
        return self.error if self.points else 100 * self.error


@dataclass(frozen=True)
class Judged:
    """A case with its prediction and the prediction's errors.

    time      the time, predicted and measured; None where the launch was only counted, or could not be predicted
    time_way  the way of timing (one of TIMES) with which the prediction is compared; "" where `time` is None
    numbers   the counters that were both predicted and measured
    """

    case: Case
    prediction: Prediction
    time: Number | None
    time_way: str
    numbers: tuple[Number, ...]

    @property
    def title(self) -> str:
        """The kernel's name with its tunables."""
        return self.case.name + "".join(f" {key}={value}" for key, value in sorted(self.case.tunables.items()))

    @property
    def broken(self) -> tuple[Number, ...]:
        """The exact counters that do not agree and have no excuse."""
        return tuple(n for n in self.numbers if n.kind == "exact" and not n.excuse and not n.agrees)


def judge(case: Case, prediction: Prediction) -> Judged:
    """Compare a case's prediction with its measurement; return both with the errors."""
    if prediction.error:
        return Judged(case, prediction, None, "", ())
    way = case.compared_time
    time = None
    if way:
        measured = case.times[way].median_us
        error = relative_error(prediction.time_us, measured)
        time = Number("time", "time", prediction.time_us, measured, error)
    return Judged(case, prediction, time, way, tuple(_numbers(case, prediction.counters)))


def judge_all(cases: Iterable[Case], predictions: Mapping[str, Prediction]) -> list[Judged]:
    return [judge(case, predictions[case.key]) for case in cases]


def _numbers(case: Case, predicted: Mapping[str, float]) -> Iterable[Number]:
    excuses = dict(case.data.get("not_comparable", {}))
    excuses |= {one.counter: f"known deviation {one.number}" for one in known_deviations() if one.record == case.key}
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
