"""The outcome of an expectation."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import SourceLine


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one expectation holds.

    rule     its kind: "bank_conflicts", "race", "baseline", "verified"
    message  one line
    details  more lines for people, such as a drawing
    line     of the source; None where it concerns no line in particular
    related  other source lines that it concerns, each with the reason
    """

    rule: str
    ok: bool
    message: str
    details: tuple[str, ...] = ()
    line: SourceLine | None = None
    related: tuple[tuple[SourceLine, str], ...] = ()
