"""Writes GPU files, each of which extends a preset by values that were measured or fitted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmsim.gpu.units import UNITS, dimension

# dimension -> the unit of its fields
_UNITS = {quantity: unit for unit, (quantity, factor) in UNITS.items() if factor == 1}


@dataclass(frozen=True)
class Entry:
    """One value of a GPU file.

    key      as in GpuSpec, "l2.hit_latency_cycles"
    value    in the unit of that field
    status   as GPU files have it: "measured", "calibrated", ...
    """

    key: str
    value: float | int | list[float]
    source: str
    status: str = "measured"
    calibratable: bool = False


def gpu_file(title: str, extends: str, entries: Iterable[Entry], comment: str, records: Sequence[str] = ()) -> str:
    """The text of a GPU file that extends the preset or file `extends`.

    The lines of `comment` say how the file came about; `records` has the ids of what calibrated values were fitted to.
    """
    sections: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        section, _, field = entry.key.rpartition(".")
        unit = _UNITS[dimension(field)]
        more = ", calibratable = true" if entry.calibratable else ""
        value = [_rounded(v) for v in entry.value] if isinstance(entry.value, list) else _rounded(entry.value)
        sections[section].append(
            f"{field} = {{ value = {json.dumps(value)}, unit = {json.dumps(unit)}, "
            f'source = {json.dumps(entry.source)}, status = "{entry.status}"{more} }}'
        )
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"title = {json.dumps(title)}", f"extends = {json.dumps(extends)}"]
    if records:
        lines += ["records = [", *(f"  {json.dumps(record)}," for record in records), "]"]
    for section, rows in sorted(sections.items()):
        lines += ["", f"[{section}]", *rows]
    return "\n".join(lines) + "\n"


def _rounded(value: float | int) -> float | int:
    """Round to four significant digits, as no measurement here is better than that."""
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) >= 1000 else rounded
