"""Writes outcomes of checks as GitHub's workflow commands, which a job prints to mark lines of a pull request."""

from __future__ import annotations

from gemmsim.checks.outcome import Checked
from gemmsim.checks.places import within
from gemmsim.checks.render import render_text


def render(checked: Checked) -> str:
    """Write an `::error` for each outcome that does not hold, and the outcomes as text, for the log of the job.

    A file outside the current folder has no line there that could be marked, so its name goes into the title.
    """
    lines = []
    for outcome in checked.failed:
        line = checked.line_of(outcome)
        here = within(line)
        place = f"file={_property(here)},line={line.line}," if here is not None else ""
        title = f"gemmsim: {outcome.rule}" + ("" if here is not None else f" at {line.file}:{line.line}")
        text = "\n".join((outcome.message, *outcome.details))
        lines.append(f"::error {place}title={_property(title)}::{_data(text)}")
    log = [f" {line}" if line.startswith("::") else line for line in render_text(checked).splitlines()]
    return "\n".join([*lines, *log]) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
