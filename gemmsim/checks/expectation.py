"""Reads and evaluates expectations: `bank_conflicts == 0`, `sectors_per_request at 31 <= 4`, `time_us < 50`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from gemmsim.analysis.code.source_lines import LineTraffic
from gemmsim.checks.outcome import Outcome
from gemmsim.checks.quantities import Reading, read
from gemmsim.checks.selection import everything, select
from gemmsim.report.access_drawing import WIDTH
from gemmsim.report.hazards import shown_path
from gemmsim.report.layout.words import number
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*)(\s+at\s+(?P<where>.+?))?\s*(?P<compare>==|!=|<=|>=|<|>)\s*"
    r"(?P<limit>[-+]?[0-9][0-9_]*\.?[0-9]*([eE][-+]?[0-9]+)?)\s*%?\s*"
)
MOST_OTHERS = 5  # further places that are named where an expectation does not hold
_SHOULD_BE = "expected NAME == NUMBER or NAME at LINE-OR-TEXT <= NUMBER, with ==, !=, <=, >=, < or >"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A comparison of one quantity with a limit. `where` names source lines; None means the whole launch."""

    name: str
    where: str | None
    compare: str
    limit: float

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return f"{self.name}{at} {self.compare} {number(self.limit)}"


def parse(text: str) -> Expectation:
    """Read an expectation. Raises GemmsimError where the text is not `NAME [at LINE] COMPARISON NUMBER`."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise GemmsimError(f"'{text}' is not an expectation: {_SHOULD_BE}")
    where = match["where"]
    if where and len(where) > 1 and where[0] == where[-1] and where[0] in "'\"`":
        where = where[1:-1]
    limit = float(match["limit"])
    if not math.isfinite(limit):
        raise GemmsimError(f"'{text}' is not an expectation: its number is too large")
    return Expectation(match["name"], where, match["compare"], limit)


def evaluate(expectation: Expectation, report: Report) -> Outcome:
    """Say whether the report meets the expectation. Raises GemmsimError for unknown names and lines."""
    selection = select(report, expectation.where) if expectation.where else everything(report)
    reading = read(selection, expectation.name)
    limit = expectation.limit
    ok = _COMPARE[expectation.compare](reading.value, limit)
    line = reading.row.line if reading.row else None
    message = f"{expectation}: it is {number(reading.value)}"
    if not ok and reading.row:
        message += f", {'worst' if reading.each else 'most of it'} at {place(reading)}"
        broken = [(row, value) for row, value in reading.each if not _COMPARE[expectation.compare](value, limit)]
        others = [f"{number(value)} at {_place(reading, row)}" for row, value in broken if row is not reading.row]
        message += f"; also {', '.join(others[:MOST_OTHERS])}" if others else ""
        message += f" and {len(others) - MOST_OTHERS} more" if len(others) > MOST_OTHERS else ""
    return Outcome(expectation.name, ok, message, () if ok else explain(reading), line if not ok else None)


def place(reading: Reading) -> str:
    """Name the source line that contributes most to a reading, and its instruction: `kernels/tiled.py:35 (LDS.128)`.

    The result is "" where no line contributes.
    """
    return "" if reading.row is None else _place(reading, reading.row)


def _place(reading: Reading, row: LineTraffic) -> str:
    arrays = reading.selection.arrays(row)
    what = f"{row.mnemonic} of {arrays}" if arrays else row.mnemonic
    return f"{shown_path(row.line.file)}:{row.line.line} ({what})" if row.line else what


def explain(reading: Reading) -> tuple[str, ...]:
    """Show the source line that contributes most to a reading, and draw this line's worst access, lane by lane.

    The result is lines of text. It is () where no line contributes, for example to a quantity of the whole launch.
    """
    row = reading.row
    if row is None:
        return ()
    text = [place(reading), f"    {row.text}"[:WIDTH]] if row.line else []
    return (*text, *reading.selection.drawing(row))
