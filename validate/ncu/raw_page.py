"""Reads the CSV of Nsight Compute's raw page, which `ncu --csv --page raw --print-units base` prints."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

from gemmsim.support.errors import GemmsimError

_KERNEL = "Kernel Name"
# Factors to base units, for files that were written without --print-units base.
_UNITS = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9, "ns": 1.0, "nsecond": 1.0,
    "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9, "cycle/usecond": 1e6, "cycle/nsecond": 1e9,
}  # fmt: skip
_PER_SECOND = {"Kbyte/second": 1e3, "Mbyte/second": 1e6, "Gbyte/second": 1e9, "Tbyte/second": 1e12,
               "Kbyte/s": 1e3, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12}  # fmt: skip
# ncu appends these to a unit, as in "Kbyte/block".
_PER = ("/block", "/thread", "/SM", "/sm")


@dataclass(frozen=True)
class ProfiledLaunch:
    """One launch that Nsight Compute profiled.

    grid, block  the sizes of grid and block; empty where the file does not state them
    device       the GPU's name; empty where the file does not state it
    metrics      metric -> value in base units: bytes, nanoseconds, Hz
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    device: str
    metrics: dict[str, float]


def parse_raw_page(text: str) -> list[ProfiledLaunch]:
    """Return the launches, in the order of the file. Raises GemmsimError where the text is no raw page.

    Lines before the table, which are ncu's own `==PROF==` messages and the program's output, are skipped. Values that
    are no numbers are left out.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"') and _KERNEL in line), None)
    if start is None:
        raise GemmsimError(
            "this is no raw page of Nsight Compute: write it with ncu --csv --page raw --print-units base"
        )
    rows = list(csv.reader(io.StringIO("\n".join(lines[start:]))))
    header, units = rows[0], rows[1] if len(rows) > 1 else []
    if len(units) != len(header) or units[0].strip():
        raise GemmsimError("the raw page has no line of units below its header: is it the --page details form?")
    return [_row(header, units, row) for row in rows[2:] if len(row) == len(header)]


def _row(header: list[str], units: list[str], row: list[str]) -> ProfiledLaunch:
    cells = dict(zip(header, row, strict=True))
    metrics = {}
    for name, unit, value in zip(header, units, row, strict=True):
        number = _number(value)
        if "__" in name and number is not None:
            metrics[name] = number * unit_factor(unit)
    return ProfiledLaunch(
        kernel=cells[_KERNEL],
        grid=_dims(cells.get("Grid Size", "")),
        block=_dims(cells.get("Block Size", "")),
        device=cells.get("Device", cells.get("device__attribute_display_name", "")),
        metrics=metrics,
    )


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unit_factor(unit: str) -> float:
    """Return the factor from a unit, as Nsight Compute writes it, to its base unit: bytes, nanoseconds or Hz."""
    unit = unit.strip()
    if unit in _PER_SECOND:
        return _PER_SECOND[unit]
    for per in _PER:
        if unit.endswith(per):
            unit = unit.removesuffix(per)
    return _UNITS.get(unit, 1.0)


def _dims(text: str) -> tuple[int, ...]:
    parts = text.strip(" ()").split(",")
    return tuple(int(part) for part in parts) if all(part.strip().isdigit() for part in parts) else ()
