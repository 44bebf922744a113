"""Defines what became of a kernel on an architecture, and keeps it in a file between runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from gemmsim.support.errors import GemmsimError

RIGHT, WRONG, REFUSED, NOT_COMPILED = "right", "wrong", "refused", "not compiled"
STATUSES = (RIGHT, WRONG, REFUSED, NOT_COMPILED)


@dataclass(frozen=True)
class Outcome:
    """What became of one pair of a case and an architecture.

    case          `Case.id`
    status        one of STATUSES; "not compiled" is a kernel that its own compiler does not make for the architecture
    reason        one line, "" where the result is right
    instructions  warp instructions that were executed, 0 where it did not run
    seconds       wall-clock time of compiling, executing and predicting
    """

    case: str
    arch: str
    status: str
    reason: str = ""
    instructions: int = 0
    seconds: float = 0.0


def merged(before: Iterable[Outcome], now: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes of both, those of `now` in place of older ones of the same pair, sorted by pair."""
    found = {(one.case, one.arch): one for one in [*before, *now]}
    return [found[key] for key in sorted(found)]


def load(path: Path) -> list[Outcome]:
    """Read outcomes. Raises GemmsimError for a file that holds something else."""
    try:
        return [Outcome(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise GemmsimError(f"cannot read outcomes from '{path}': {error}") from None


def save(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write outcomes as JSON, one a line."""
    rows = ",\n".join(json.dumps(asdict(one)) for one in outcomes)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
