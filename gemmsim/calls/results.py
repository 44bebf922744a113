"""Defines what `gemmsim.compare`, `sweep`, `sensitivity` and `explain` return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from gemmsim.analysis.studies import comparison as comparing
from gemmsim.analysis.studies import ranking
from gemmsim.analysis.studies import sensitivity as varying
from gemmsim.calls.shown import Shown
from gemmsim.report.glossary import explain
from gemmsim.report.glossary.entries import Entry
from gemmsim.report.report import Report
from gemmsim.report.studies import comparison, comparison_data, sensitivity, sweep

T = TypeVar("T")


class Study(Shown, Generic[T]):
    """A result of several launches. `value` has all of it; its fields are attributes of this object, too."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)


class Comparison(Study[comparing.Comparison]):
    """Launches side by side, with the reasons why each beats the one before it."""

    def _title(self) -> str:
        return comparison_data.title(self.value)

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        return {form: lambda render=render: render(self.value) for form, render in comparison.RENDERERS.items()}  # type: ignore[misc]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return comparison_data.rows(self.value)


class Sweep(Study[ranking.Sweep]):
    """The combinations of a sweep, for each size and GPU the fastest first."""

    @property
    def best(self) -> ranking.SweepResult | None:
        """The fastest combination of all, with `point.tunables` and `prediction.time_us`; None where none ran."""
        return sweep.best(self.value)

    def _title(self) -> str:
        return sweep.title(self.value)

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        return {form: lambda render=render: render(self.value, None) for form, render in sweep.RENDERERS.items()}  # type: ignore[misc]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return sweep.rows(self.value)


class Sensitivity(Study[varying.Sensitivity]):
    """How much faster a launch would be with each number of the GPU better, the largest saving first."""

    def _title(self) -> str:
        return sensitivity.title(self.value)

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        return {form: lambda render=render: render(self.value) for form, render in sensitivity.RENDERERS.items()}  # type: ignore[misc]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return sensitivity.rows(self.value)


class Explanation(Shown):
    """What a metric, a stall reason or a term means, with the numbers of a launch where one was given."""

    def __init__(self, entry: Entry, report: Report | None) -> None:
        self.entry, self.report = entry, report

    def _title(self) -> str:
        return f"{self.entry.title}: {self.entry.definition}"

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        return {
            "text": lambda: explain.render_text(self.entry, self.report),
            "json": lambda: explain.render_json(self.entry, self.report),
        }

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{"part": name, "text": value} for name, value in self.to_dict().items() if isinstance(value, str)]
