"""The glossary and the metrics, from gemmsim.report.glossary: the texts that `gemmsim explain` prints."""

from __future__ import annotations

import re
from itertools import groupby

from gemmsim.report.glossary.entries import GLOSSARY, Entry, Kind, lookup, of_kind
from gemmsim.report.metrics import METRICS


def target(entry: Entry) -> str:
    """The anchor of an entry."""
    kind = {Kind.METRIC: "metric", Kind.STALL: "stall", Kind.TERM: "term"}[entry.kind]
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', entry.name.lower()).strip('-')}"


def terms() -> str:
    return "\n".join(line for entry in of_kind(Kind.TERM) for line in _heading(entry))


def stalls() -> str:
    return "\n".join(line for entry in of_kind(Kind.STALL) for line in _heading(entry))


def metrics() -> str:
    """By section, each section's metrics in the order of the table."""
    lines: list[str] = []
    for section, group in groupby(METRICS, key=lambda name: METRICS[name].section):
        lines += [f"## {section[0].upper()}{section[1:]}", ""]
        for name in group:
            entry = GLOSSARY[name]
            unit = f" [{entry.unit}]" if entry.unit else ""
            lines += [f"({target(entry)})=", f"**{escaped(entry.title)}**{unit}", "", f"`{name}`", "", *_body(entry)]
    return "\n".join(lines)


def _heading(entry: Entry) -> list[str]:
    name = "" if entry.name.lower() == entry.title.lower() or entry.kind == Kind.TERM else f" (`{entry.name}`)"
    return [f"({target(entry)})=", f"## {escaped(entry.title)}{name}", "", *_body(entry)]


def _body(entry: Entry) -> list[str]:
    rows = [
        ("worked out", entry.formula),
        ("good", entry.good),
        ("what to do", entry.fix),
        ("also called", ", ".join(entry.aliases)),
    ]
    lines = [escaped(entry.definition), "", *(f"- {what}: {escaped(text)}" for what, text in rows if text)]
    if entry.see:
        lines.append(f"- see: {', '.join(_link(lookup(name)) for name in entry.see)}")
    if entry.sources:
        lines.append(f"- sources: {'; '.join(map(_source, entry.sources))}")
    return [*lines, ""]


def _link(entry: Entry) -> str:
    return f"[{escaped(entry.title)}](#{target(entry)})"


def _source(text: str) -> str:
    """With its addresses as links."""
    parts = re.split(r"(https?://\S+)", text)
    return "".join(f"<{part}>" if number % 2 else escaped(part) for number, part in enumerate(parts))


def escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\*_`[]<>|$" else c for c in text)
