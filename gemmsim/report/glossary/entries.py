"""Says what each metric, stall reason and term means, how it is worked out, which values are good and what to do.

`gemmsim explain`, the HTML report and the documentation take their texts from here; the words are in the TOML files.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from gemmsim.isa.opcodes import OPCODES
from gemmsim.report.metrics import FAMILIES, METRICS, variants
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.errors import GemmsimError, nearest

_STALL_METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
SHOWN_CANDIDATES = 6


class Kind(StrEnum):
    METRIC = "metric"
    STALL = "stall reason"
    TERM = "term"


@dataclass(frozen=True, slots=True)
class Entry:
    """The explanation of one metric, stall reason or term.

    name        a metric's full name, a stall reason or a term
    title       a name for people
    unit        unit of the value, "" for a count and where there is no value
    definition  what the metric, stall reason or term is
    formula     how the value is calculated, in words
    worked      lines with the formula, in which `<name>` stands for a number of the run: see `values.fill`
    good        which values are good, and which are a reason to act
    fix         what to change where the value is bad
    see         names of other entries
    sources     where to read more
    aliases     other names under which `lookup` finds the entry
    """

    name: str
    kind: Kind
    title: str
    unit: str
    definition: str
    formula: str
    worked: tuple[str, ...]
    good: str
    fix: str
    see: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def value_name(self) -> str:
        """The name of the metric whose value in a run this entry explains; "" for a term, which has none."""
        return {Kind.METRIC: self.name, Kind.STALL: _STALL_METRIC.format(self.name), Kind.TERM: ""}[self.kind]


def lookup(name: str) -> Entry:
    """Find the entry of a metric, stall reason or term by its name or an alias.

    Case, a plural s, spaces and hyphens do not matter. An opcode that has no entry of its own gets one from the table
    of opcodes, whatever its modifiers (LDS.128). Another name may be cut short, with or without dots at its end, where
    only one entry begins so. Raises GemmsimError for an unknown name and for a beginning that several entries share.
    The error names the nearest entries, or those that share the beginning.
    """
    wanted = _plain(name)
    if wanted in _INDEX:
        return GLOSSARY[_INDEX[wanted]]
    if opcode := opcode_of(name):
        return _opcode_entry(opcode)
    beginning = wanted.rstrip("._")
    begin = sorted({entry for plain, entry in _INDEX.items() if beginning and plain.startswith(beginning)})
    if len(begin) == 1:
        return GLOSSARY[begin[0]]
    if begin:
        more = f" and {len(begin) - SHOWN_CANDIDATES} more" if len(begin) > SHOWN_CANDIDATES else ""
        raise GemmsimError(f"'{name}' begins {len(begin)} names: {', '.join(begin[:SHOWN_CANDIDATES])}{more}")
    raise GemmsimError(
        f"nothing is known of '{name}'{nearest(wanted, _INDEX)}: gemmsim explain lists stall reasons and terms, "
        "gemmsim list metrics the metrics"
    )


def opcode_of(name: str) -> str:
    """Return the opcode that a name begins with: "LDS" of "LDS.128"; "" where it is none of the table."""
    first = name.strip().partition(".")[0]
    return first if first in OPCODES else ""


def _opcode_entry(opcode: str) -> Entry:
    """Make the entry of an opcode from its row: its class, the pipe that it goes to, the memory that it accesses."""
    row = OPCODES[opcode]
    memory = f" It accesses {row.memory.space} memory ({row.memory.operation})." if row.memory else ""
    pipe = f"It issues to {row.port}." if row.port else "It needs no pipe."
    runs = "" if row.lowering else " gemmsim decodes it and does not execute it."
    return Entry(
        name=opcode,
        kind=Kind.TERM,
        title=f"{opcode}, a machine instruction",
        unit="",
        definition=f"An instruction of the class '{row.mix}' in the instruction mix. {pipe}{memory}{runs}",
        formula="counted by warp: 32 lanes that execute it together count once",
        worked=(),
        good="Few beside the multiply-adds.",
        fix="Look in the report's source view at which line the compiler made it from.",
        see=("SASS", "instruction mix"),
        sources=(_SOURCES["huerta"],),
    )


def of_kind(kind: Kind) -> tuple[Entry, ...]:
    return tuple(entry for entry in GLOSSARY.values() if entry.kind == kind)


def _plain(name: str) -> str:
    """Return the spelling by which names are compared: `Bank conflicts` and `bank-conflict` become `bank_conflict`.

    Metric names, which have double underscores, keep a final s.
    """
    text = re.sub(r"[ -]+", "_", name.strip().lower().replace("…", "..."))
    return text if "__" in text else re.sub(r"(?<=[^s_])s$", "", text)


def _read(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


def _entry(name: str, kind: Kind, row: dict[str, Any], words: dict[str, str], **own: str) -> Entry:
    texts = {
        field: str(row[field]) for field in ("title", "unit", "definition", "formula", "good", "fix") if field in row
    }
    # Only metrics have word lists; braces in the texts of others stand for themselves.
    filled = {field: text.format(**words) if words else text for field, text in texts.items()} | own
    return Entry(
        name=name,
        kind=kind,
        title=filled["title"],
        unit=filled.get("unit", ""),
        definition=filled["definition"],
        formula=filled["formula"],
        worked=tuple(line.format(**words) if words else line for line in row.get("worked", ())),
        good=filled["good"],
        fix=filled["fix"],
        see=tuple(row.get("see", ())),
        sources=tuple(_SOURCES[key] for key in row.get("sources", ())),
        aliases=tuple(row.get("aliases", ())),
    )


def _metrics() -> dict[str, Entry]:
    found = {}
    for family, row in _read("metrics").items():
        for name, words in variants(family, FAMILIES[family]):
            metric = METRICS[name]
            own = {"title": metric.label, "unit": metric.unit, "definition": metric.meaning}
            found[name] = _entry(name, Kind.METRIC, row, words, **own)
    return found


def _stalls() -> dict[str, Entry]:
    """Make the entries of the stall reasons and of each reason's metric; reason and metric share their texts."""
    rows = _read("stalls")
    shared = rows.pop("every")
    found = {}
    for reason in STALL_REASONS:
        row = shared | rows[reason]
        words = {"reason": reason}
        found[reason] = _entry(reason, Kind.STALL, row, words)
        metric = _STALL_METRIC.format(reason)
        found[metric] = _entry(metric, Kind.METRIC, row, words, title=METRICS[metric].label, unit=METRICS[metric].unit)
    return found


def _terms() -> dict[str, Entry]:
    return {name: _entry(name, Kind.TERM, row, {}) for name, row in _read("terms").items()}


_SOURCES: dict[str, str] = {key: row["text"] for key, row in _read("sources").items()}
GLOSSARY: dict[str, Entry] = _metrics() | _stalls() | _terms()
# Each name and alias of an entry, as `_plain` spells it -> name of that entry.
_INDEX: dict[str, str] = {
    _plain(spelling): entry.name for entry in GLOSSARY.values() for spelling in (*entry.aliases, entry.name)
}
