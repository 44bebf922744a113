"""Defines `Outcome`, the result of checking one expectation, and `Checked`, all outcomes of a launch."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import SourceLine
from gemmsim.report.layout.words import moved


@dataclass(frozen=True, slots=True)
class Change:
    """How a quantity stands to its baseline.

    before, now  its value in the baseline, and that of this launch
    tolerance    share of `before` by which it may move, up or down
    """

    quantity: str
    before: float
    now: float
    tolerance: float

    @property
    def moved(self) -> str:
        """By how much the value moved, of `before`: "+2.0%"."""
        return moved(self.before, self.now)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one expectation holds.

    rule     the kind of expectation: "bank_conflicts", "race", "baseline", "verified"
    ok       whether it holds
    message  one line that says what was expected and what was found
    details  more lines for people, such as a drawing
    line     the source line that the outcome concerns; None where it is no line in particular
    related  other source lines that the outcome concerns, each with a text that says why
    change   how the quantity stands to its baseline; None where the expectation is of another kind
    """

    rule: str
    ok: bool
    message: str
    details: tuple[str, ...] = ()
    line: SourceLine | None = None
    related: tuple[tuple[SourceLine, str], ...] = ()
    change: Change | None = None

    @property
    def expected(self) -> str:
        """What was expected, without what was found, which changes from run to run."""
        text, found, _ = self.message.partition(": it is ")
        return text if found else self.rule


@dataclass(frozen=True, slots=True)
class Checked:
    """All outcomes of one launch.

    launch  the name of the launch in reports: "tiled, M=256 N=256 K=256, tile=32 on a100-80gb"
    home    the line where the kernel begins: the place of outcomes that concern no line in particular
    """

    launch: str
    home: SourceLine
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    @property
    def changes(self) -> tuple[tuple[Change, bool], ...]:
        """What is not as in the baseline, and whether it may be so."""
        return tuple(
            (one.change, one.ok) for one in self.outcomes if one.change and one.change.now != one.change.before
        )

    def line_of(self, outcome: Outcome) -> SourceLine:
        return outcome.line or self.home
