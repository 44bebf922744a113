"""What became of an expectation."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import SourceLine


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one expectation.

    rule: what kind of expectation, "bank_conflicts", "race", "baseline", "verified"; message: one line;
    details: more lines for people, a drawing for one; line: where in the source, None where nowhere in particular;
    related: other lines of the source that it concerns, each with what it has to do with it.
    """

    rule: str
    ok: bool
    message: str
    details: tuple[str, ...] = ()
    line: SourceLine | None = None
    related: tuple[tuple[SourceLine, str], ...] = ()
