"""Writes GPU files, each of which extends a preset by values that were measured or fitted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmsim.gpu.units import UNITS, dimension

# dimension of a field of GpuSpec -> the unit of its value
_UNITS = {quantity: unit for unit, (quantity, factor) in UNITS.items() if factor == 1}


@dataclass(frozen=True)
class Entry:
    """One value of a GPU file.

    key           section and field of GpuSpec, such as "l2.hit_latency_cycles"
    value         the value, in the unit of that field
    source        where the value comes from, in words
    status        how well the value is known, as GPU files say it: "measured", "calibrated", ...
    calibratable  whether the file marks the value as a parameter that `gemmsim-validate calibrate` may fit
    """

    key: str
    value: float | int | list[float]
    source: str
    status: str = "measured"
    calibratable: bool = False


def gpu_file(title: str, extends: str, entries: Iterable[Entry], comment: str, records: Sequence[str] = ()) -> str:
    """Return the text of a GPU file that extends the preset or file `extends` by `entries`.

    comment  lines that say how the file came about
    records  ids of the records that calibrated values were fitted to
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
    """Round to four significant digits, as no measurement of this package is more precise."""
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) >= 1000 else rounded
