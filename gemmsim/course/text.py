"""Writes the steps of the course as text, in the parts in which a terminal shows them."""

from __future__ import annotations

import re
import textwrap

from gemmsim.course.steps import Question, Step
from gemmsim.report.layout.text import INDENT, body, indented_table, width
from gemmsim.report.layout.words import number


def opening(step: Step, place: str) -> str:
    """What stands before the questions: the rung, the story, and its source."""
    lines = [f"STEP {place}, {step.kernel.upper()}", f"{INDENT}{step.title}", "", *_wrapped(step.story)]
    if step.source:
        lines += ["", *(f"{line:>5}  {text}"[: body()].rstrip() for line, text in step.source)]
    return "\n".join(lines) + "\n"


def asked(question: Question) -> str:
    return "\n".join(_wrapped(f"PREDICT: {question.ask}")) + "\n"


def answered(question: Question, guess: float | None) -> str:
    """What the run says, and whether the guess is near enough; without a guess, only the answer."""
    said = f"The run says {shown(question.answer, question.unit)}."
    if guess is not None:
        verdict = "Right." if question.right(guess) else "Not quite."
        said = (
            f"{verdict} You said {shown(guess, question.unit)}; the run says {shown(question.answer, question.unit)}."
        )
    return "\n".join(_wrapped(f"{said} {question.because}")) + "\n"


def closing(step: Step) -> str:
    """What the run shows: time, bottleneck, counters against the step before; the explanation, and what comes next."""
    rows = [
        (name, "" if old is None else number(old), number(new), change(old, new)) for name, old, new in step.counters
    ]
    lines = ["LOOK", f"{INDENT}{step.time_us:,.1f} us; {step.verdict}"]
    lines = [lines[0], *_wrapped(lines[1].strip())]
    lines += ["", *indented_table(("counter", "before", "now", ""), rows, "<>>>")]
    if step.why:
        lines += ["", *_wrapped(f"why: {step.why}")]
    lines += [f"{INDENT}more: {step.command}", "", "EXPLAIN", *_wrapped(step.teaches), "", "NEXT", *_wrapped(step.next)]
    return "\n".join(lines) + "\n"


def guess_of(text: str) -> float | None:
    """Read a guess: "32", "1,024", "0.2x", "90 %", "1/5"; None where it is no number."""
    found = re.fullmatch(r"\s*([-+]?\d[\d,_]*\.?\d*|\.\d+)\s*(?:/\s*(\d+\.?\d*))?\D*", text)
    if not found or (found[2] and not float(found[2])):
        return None
    return float(re.sub("[,_]", "", found[1])) / float(found[2] or 1)


def shown(value: float, unit: str) -> str:
    text = number(value) if float(value).is_integer() else f"{value:,.3g}"
    return f"{text} {unit}"


def change(before: float | None, now: float) -> str:
    """How a counter moved: "20.0x less", "+5 %"; "" where it did not, or there is nothing to compare with."""
    if before is None or before == now:
        return ""
    if not before or not now:
        return "new" if now else "gone"
    ratio = now / before
    if 0.5 < ratio < 2:
        return f"{100 * (ratio - 1):+.0f} %"
    return f"{ratio:,.1f}x more" if ratio > 1 else f"{1 / ratio:,.1f}x less"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width(), initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)
