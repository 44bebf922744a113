"""Defines `Trace`, a predicted launch with its quantities as attributes, and `Lines`, some source lines of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim import api
from gemmsim.analysis.findings import Advice, Bottleneck, Verification
from gemmsim.calls.shown import Shown
from gemmsim.checks.expectation import explain, place
from gemmsim.checks.quantities import OF_LAUNCH, OF_LINES, Reading, read
from gemmsim.checks.selection import Selection, everything, select
from gemmsim.launch.checks import array_names
from gemmsim.launch.spec import LaunchSpec
from gemmsim.report import json, text
from gemmsim.report.layout.words import duration, launch_name
from gemmsim.report.report import Report
from gemmsim.support.bit_patterns import to_numbers
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.sanitizer.findings import Sanitized


class Value(float):
    """A number that knows which launch and lines it was read from, so that a failed comparison can show them."""

    reading: Reading

    def __new__(cls, reading: Reading) -> Value:
        value = super().__new__(cls, reading.value)
        value.reading = reading
        return value

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        """Pickle as a plain number: what it was read from stays in this process."""
        return float, (float(self),)

    def __repr__(self) -> str:
        return f"{float(self):g}"

    __str__ = __repr__

    def failure(self, comparison: str) -> tuple[list[str], list[str]]:
        """Return (lines, drawing), which pytest shows where a comparison such as "4 == 0" does not hold.

        There are only a few lines, as pytest cuts off all lines after the eighth. The drawing, as lines of text, is of
        the worst access of the source line that contributes most to the number.
        """
        selection = self.reading.selection
        at = f" at {selection.where!r}" if selection.where else ""
        report = selection.report
        what = f"{self.reading.name}{at} of {report.labels.kernel} on {report.evidence.gpu.name} is {self}"
        most = [f"most of it at {place(self.reading)}"] if self.reading.row else []
        return [comparison, what, *most], list(explain(self.reading))


class Lines:
    """Some source lines of a launch. Their quantities are attributes: bank_conflicts, sectors_per_request, ..."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or name not in (*OF_LINES, *OF_LAUNCH):
            raise AttributeError(f"no quantity '{name}'{nearest(name, OF_LINES)}: lines have {', '.join(OF_LINES)}")
        return Value(read(self.selection, name))


class Trace(Shown):
    """A predicted launch. Its quantities are attributes: time_us, occupancy, registers, bank_conflicts, ...

    spec    the launch, as it was asked for
    report  all that is known of it, a `Report`
    """

    def __init__(self, spec: LaunchSpec, report: Report) -> None:
        self.spec, self.report = spec, report

    def beside(self, other: Trace | str | Path) -> Trace:
        """Return this with another prediction beside it: its text and page say which counters differ, and by how much.

        other  what `gemmsim.analyze` returned, or the file "x.json" of its `save` or of `gemmsim analyze -o x.json`
        """
        if isinstance(other, Trace):
            former = json.former_of(json.render(other.report), "other")
        else:
            former = json.read_former(other)
        return Trace(self.spec, replace(self.report, former=former))

    def _title(self) -> str:
        report = self.report
        time = duration(report.evidence.timing.duration_us)
        return f"{launch_name(report.labels)} on {report.evidence.gpu.name}: {time}, {report.bottleneck.sentence}"

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        return {"text": lambda: text.render(self.report), "json": lambda: json.render(self.report)}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each counter."""
        evidence = self.report.evidence
        return [
            {"counter": name, "value": value, "provenance": str(evidence.provenance[name])}
            for name, value in evidence.counters.items()
        ]

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def _page(self) -> str:
        from gemmsim.report.html.render import render  # draws much that only a page needs

        return render(self.report)

    @property
    def bottleneck(self) -> Bottleneck:
        """What limits the launch: `kind` in a word or two, `sentence` with numbers."""
        return self.report.bottleneck

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to change, most gain first."""
        return self.report.advice

    @property
    def counters(self) -> dict[str, float]:
        """Nsight Compute's counters, by name."""
        return self.report.evidence.counters

    @property
    def verified(self) -> Verification:
        """Whether the results are right: `ok` (None where nothing was checked) and `text`."""
        return self.report.verified

    def at(self, where: int | str) -> Lines:
        """Return the source lines with this number, or with this text in them (spaces do not count).

        Only lines that access memory are found. Raises GemmsimError, which names these lines, where none matches.
        """
        __tracebackhide__ = True
        try:
            return Lines(select(self.report, where))
        except GemmsimError as error:  # raised anew, so that the traceback leaves out gemmsim's own code
            raise GemmsimError(str(error)) from None

    def counter(self, name: str) -> Value:
        """Return the value of one of Nsight Compute's counters, by its full name."""
        if name not in self.report.evidence.counters:
            known = self.report.evidence.counters
            raise GemmsimError(f"no counter '{name}'{nearest(name, known)}: gemmsim list metrics names them")
        return Value(read(everything(self.report), name))

    @cached_property
    def sanitized(self) -> Sanitized:
        """The sanitizer's findings in this launch. The first use of this attribute executes the launch once more."""
        return api.sanitize(self.spec)

    @cached_property
    def arrays(self) -> dict[str, NDArray]:
        """The arrays after the run, by name. The first use of this attribute executes the launch once more.

        Types that NumPy lacks are there as numbers: bf16 as float32, fp8 as float64, 4-bit integers as int8, one an
        element. Where only a part of the grid was executed, elements that it did not store to are as they were before.
        """
        counted = api.count(self.spec)
        names = array_names(counted.launch.args, self.spec.verify)
        found = {name: counted.execution.outputs[at] for name, at in names.items()}
        return {
            name: to_numbers(counted.launch.args[names[name]].dtype, np.asarray(one)) for name, one in found.items()
        }

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or name not in (*OF_LINES, *OF_LAUNCH):
            known = (*OF_LINES, *OF_LAUNCH)
            raise AttributeError(f"no quantity '{name}'{nearest(name, known)}: a launch has {', '.join(known)}")
        return Value(read(everything(self.report), name))
