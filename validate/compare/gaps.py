"""The known gaps that records can show: `deviations.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..records import Case
from .metrics import relative_error

PATH = Path(__file__).parents[1] / "deviations.toml"


@dataclass(frozen=True)
class Gap:
    """One counter of one record that is known to be predicted wrong; number: in deviations.md.

    least, most   between which the signed error lies while the gap is there: percent, or points of a percentage
    """

    number: int
    record: str
    counter: str
    least: float
    most: float
    points: bool = False

    def covers(self, case: Case, counter: str) -> bool:
        return counter == self.counter and self.record.split("/", 1)[1] == case.id

    def error(self, case: Case, predicted: Mapping[str, float]) -> float:
        """Percent or points, signed."""
        ours, theirs = predicted[self.counter], case.counters[self.counter]
        return ours - theirs if self.points else 100 * relative_error(ours, theirs)

    def is_there(self, error: float) -> bool:
        return self.least <= error <= self.most


def known_gaps(path: Path = PATH) -> tuple[Gap, ...]:
    return tuple(Gap(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["gap"])
