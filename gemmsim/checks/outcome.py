"""Defines `Outcome`, the result of checking one expectation."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import SourceLine


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one expectation holds.

    rule     the kind of expectation: "bank_conflicts", "race", "baseline", "verified"
    ok       whether it holds
    message  one line that says what was expected and what was found
    details  more lines for people, such as a drawing
    line     the source line that the outcome concerns; None where it is no line in particular
    related  other source lines that the outcome concerns, each with a text that says why
    """

    rule: str
    ok: bool
    message: str
    details: tuple[str, ...] = ()
    line: SourceLine | None = None
    related: tuple[tuple[SourceLine, str], ...] = ()
