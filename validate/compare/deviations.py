"""Reads the known deviations that records can show, from `deviations.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..records.case import Case
from .metrics import relative_error

PATH = Path(__file__).parents[1] / "deviations.toml"


@dataclass(frozen=True)
class Deviation:
    """One counter of one record that is known to be predicted wrong.

    number        the number of the deviation's paragraph in deviations.md
    record        "folder/id" of the record
    counter       the name of the counter
    least, most   the range in which the counter's signed error lies while the deviation exists, in percent or points
    points        whether errors are in percentage points: true where the counter itself is a percentage
    """

    number: int
    record: str
    counter: str
    least: float
    most: float
    points: bool = False

    def error(self, case: Case, predicted: Mapping[str, float]) -> float:
        """Return the signed error of the counter in percent or points; `predicted` holds predicted values by name."""
        ours, theirs = predicted[self.counter], case.counters[self.counter]
        return ours - theirs if self.points else 100 * relative_error(ours, theirs)

    def is_there(self, error: float) -> bool:
        """Whether the deviation still exists: `error` lies in its range."""
        return self.least <= error <= self.most


@cache
def known_deviations(path: Path = PATH) -> tuple[Deviation, ...]:
    """Return the deviations in the order in which the file lists them."""
    return tuple(Deviation(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["deviation"])
