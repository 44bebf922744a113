"""Computes the figures of accuracy without each mechanism, and finds the kernels whose predicted times change most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..compare.figures import Figures, time_figures
from ..compare.judge import Judged, judge
from ..compare.predict import Prediction
from ..records.case import Case
from .mechanisms import Mechanism
from .run import Timed

CHANGED_PCT = 1.0  # a predicted time that changes by less counts as unchanged


@dataclass(frozen=True)
class Effect:
    """The effect of switching one mechanism off.

    figures  figures of the errors of the times that are predicted without the mechanism, as `gemmsim-validate compare`
             defines them
    change   by how many percentage points the mean of the absolute errors changes; above 0 where the model is worse
             without the mechanism
    changed  the number of cases whose predicted time changes by more than `CHANGED_PCT`
    kernels  for each kernel: (name, mean change of its predicted times in percent), the largest change first
    """

    mechanism: Mechanism
    figures: Figures
    change: float
    changed: int
    kernels: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Ablation:
    """The result of an ablation, which switches off one mechanism of the timing model at a time.

    cases    the cases that were timed, judged with all mechanisms on
    figures  figures of the errors with all mechanisms on
    effects  the effect of switching each mechanism off, the largest rise of the error first
    failed   the cases that could not be timed, with the reason
    """

    cases: tuple[Judged, ...]
    figures: Figures
    effects: tuple[Effect, ...]
    failed: tuple[tuple[Case, str], ...]


def ablation(cases: Sequence[Case], timed: Mapping[str, Timed], mechanisms: Sequence[Mechanism]) -> Ablation | None:
    """Return the effect of switching each mechanism off; None where no case has a predicted and a measured time.

    `timed` holds the predicted times of each case by the case's id.
    """
    failed = tuple((case, timed[case.id].error) for case in cases if timed[case.id].error)
    rows = [case for case in cases if not timed[case.id].error]
    before = _judged(rows, {case.id: timed[case.id].time_us for case in rows})
    figures = time_figures(before)
    if figures is None:
        return None
    effects = []
    for mechanism in mechanisms:
        without_us = {case.id: timed[case.id].without_us[mechanism.key] for case in rows}
        after = time_figures(_judged(rows, without_us))
        assert after  # not None, as the cases are those of `before`, which have times
        changes = {case.id: 100 * (without_us[case.id] / timed[case.id].time_us - 1) for case in rows}
        changed = sum(abs(change) > CHANGED_PCT for change in changes.values())
        effects.append(Effect(mechanism, after, after.mean - figures.mean, changed, _by_kernel(rows, changes)))
    effects.sort(key=lambda effect: -effect.change)
    return Ablation(tuple(before), figures, tuple(effects), failed)


def _judged(cases: Sequence[Case], time_us: Mapping[str, float]) -> list[Judged]:
    return [judge(case, Prediction(time_us=time_us[case.id])) for case in cases]


def _by_kernel(cases: Sequence[Case], changes: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    groups: dict[str, list[float]] = {}
    for case in cases:
        groups.setdefault(case.name, []).append(changes[case.id])
    means = ((name, sum(values) / len(values)) for name, values in groups.items())
    return tuple(sorted(means, key=lambda row: (-abs(row[1]), row[0])))
