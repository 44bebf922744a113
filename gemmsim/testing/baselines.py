"""Compares predicted launches with baselines, JSON files in the folder `gemmsim_baselines/` next to the test's file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gemmsim.calls.trace import Trace
from gemmsim.checks.baseline import compare, dump, load, record
from gemmsim.cli.output import emit

FOLDER = "gemmsim_baselines"


@dataclass(frozen=True)
class BaselineChecker:
    """Compares the predicted launches (`Trace`) of one test with their baselines.

    test    the test's file
    node    the test's name with its parameters
    update  whether baselines are written instead of compared
    """

    test: Path
    node: str
    update: bool

    def path(self, name: str = "") -> Path:
        """Return the file of the baseline `name`. Each test has files of its own, so that tests can run in parallel."""
        parts = (self.test.stem, self.node, *([name] if name else []))
        return self.test.parent / FOLDER / (re.sub(r"[^\w.-]+", "_", ".".join(parts)).strip("_")[:200] + ".json")

    def __call__(self, trace: Trace, *quantities: str, name: str = "") -> None:
        """Fail where a quantity of `trace` moved further than its baseline allows; with `update`, write the baseline.

        quantities  names of the quantities (see `gemmsim check`) or counters that a baseline gets when it is written;
                    where none are given, those of the former baseline, or else of `gemmsim.checks.baseline.DEFAULT`
        name        tells several baselines of one test apart

        The file holds the tolerances, which may be changed there; --gemmsim-update keeps them.
        """
        __tracebackhide__ = True
        path = self.path(name)
        former = load(path)
        if self.update:
            path.parent.mkdir(exist_ok=True)
            emit(dump(record(trace.report, quantities, former)), str(path))
            return
        if former is None:
            raise AssertionError(f"there is no baseline {path}: run pytest --gemmsim-update once, and keep the file")
        failed = [outcome for outcome in compare(trace.report, former) if not outcome.ok]
        if failed:
            lines = [line for outcome in failed for line in (outcome.message, *(f"  {d}" for d in outcome.details), "")]
            raise AssertionError("\n".join([*lines, f"{path}: pytest --gemmsim-update takes these values over"]))
