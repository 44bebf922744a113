"""Turns the sanitizer's findings, and the check of C, into `Outcome`s, so that they are shown as expectations are."""

from __future__ import annotations

from gemmsim.analysis.findings import Verification
from gemmsim.checks.outcome import Outcome
from gemmsim.report.access_drawing import WIDTH
from gemmsim.report.hazards import lines, one_line, summary
from gemmsim.trace.sanitizer.findings import Finding, Sanitized


def sanitizer_outcomes(outcome: Sanitized) -> list[Outcome]:
    """Return one outcome for each finding of the sanitizer, or a single outcome that says that it found nothing; and
    what was not looked for."""
    if outcome.clean:
        return [Outcome("sanitizer", True, "; ".join([summary(outcome), *outcome.notes]))]
    noted = [Outcome("sanitizer", True, note) for note in outcome.notes]
    return [*(_outcome(finding) for finding in outcome.findings), *noted]


def _outcome(finding: Finding) -> Outcome:
    other = finding.other
    related = ((other.line, f"thread {other.thread} {other.does}"),) if other and other.line else ()
    return Outcome(
        str(finding.defect), False, one_line(finding), tuple(lines(finding, WIDTH)), finding.at.line, related
    )


def verified_outcome(verified: Verification) -> list[Outcome]:
    """Return one outcome, which says whether the result is right; [] where it was not checked."""
    return [] if verified.ok is None else [Outcome("verified", verified.ok, _said(verified))]


def _said(verified: Verification) -> str:
    """Say what was found: "the result is right, relative error 1e-07, ..." or "the result is wrong: ..."."""
    if verified.ok:
        return f"the result is right{verified.text.removeprefix('yes')}"
    return f"the result is wrong: {verified.text.removeprefix('NO').lstrip(',: ')}"
