"""Converts values of GPU files and --set to the unit with which the name of their field ends."""

from __future__ import annotations

import re
from functools import cache

from gemmsim.support.errors import GemmsimError, nearest

# dimension: {unit: factor to the unit of the field}
_FACTORS: dict[str, dict[str, float]] = {
    "number": {"1": 1.0, "%": 0.01},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "bytes_per_s": {"B/s": 1.0, "GB/s": 1e9, "TB/s": 1e12},
    "bytes_per_cycle": {"B/cycle": 1.0},
    "hz": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "cycles": {"cycle": 1.0, "cycles": 1.0},
    "us": {"ns": 1e-3, "us": 1.0, "ms": 1e3},
    "flops": {"FLOP/s": 1.0, "GFLOP/s": 1e9, "TFLOP/s": 1e12},
    "ops": {"OP/s": 1.0, "TOP/s": 1e12},
    "watts": {"W": 1.0},
    "joules": {"J": 1.0, "nJ": 1e-9, "pJ": 1e-12},
}
# unit: (dimension, factor)
UNITS = {unit: (name, factor) for name, units in _FACTORS.items() for unit, factor in units.items()}

_SUFFIXES = sorted(_FACTORS, key=len, reverse=True)  # longest first: `peak_bytes_per_s` is a rate, not bytes


@cache
def dimension(field: str) -> str:
    """Return the dimension of a GPU's field by its name: "bytes" for "size_bytes", "number" where it has no unit."""
    if re.search(r"bytes_per_(sm|block)$", field):  # a size for each SM or block, not a rate
        return "bytes"
    return next((suffix for suffix in _SUFFIXES if field.endswith("_" + suffix)), "number")


def short(field: str) -> str:
    """Return the field's name without its unit, as GPU files and --set may write it: "size" for "size_bytes"."""
    suffix = dimension(field)
    return field.replace("_bytes", "") if suffix == "bytes" else field.removesuffix("_" + suffix)


def convert(number: float, unit: str, field: str, key: str) -> float:
    """Convert `number` from `unit` to the unit of the field. An empty `unit` stands for the unit of the field.

    Raises GemmsimError, which names `key`, for an unknown unit and for a unit of another dimension.
    """
    wanted = dimension(field)
    usable = list(_FACTORS[wanted])
    if not unit:
        return number
    if unit not in UNITS:
        raise GemmsimError(f"{key}: unknown unit '{unit}'{nearest(unit, usable)}; use one of {', '.join(usable)}")
    dim, factor = UNITS[unit]
    if dim != wanted:
        raise GemmsimError(f"{key}: '{unit}' does not fit; use one of {', '.join(usable)}")
    return number * factor


# dimension: (unit in which a number is shown, factor from that of the field); others are shown in the field's own
_SHOWN = {
    "bytes": ("KiB", 2.0**-10),
    "bytes_per_s": ("GB/s", 1e-9),
    "bytes_per_cycle": ("B/cycle", 1.0),
    "hz": ("MHz", 1e-6),
    "flops": ("TFLOP/s", 1e-12),
    "ops": ("TOP/s", 1e-12),
    "watts": ("W", 1.0),
    "joules": ("pJ", 1e12),
}


def shown(key: str, value: object) -> str:
    """Return a field's value, one number or several, as people read it: "2520 MHz", "24, 24, 26 cycles"."""
    kind = dimension(key.rpartition(".")[2])
    unit, factor = _SHOWN.get(kind, ("" if kind == "number" else kind, 1.0))
    numbers = value if isinstance(value, tuple) else (value,)
    if kind == "bytes" and all(number % 2**20 == 0 for number in numbers):
        unit, factor = "MiB", 2.0**-20
    return f"{', '.join(f'{number * factor:.6g}' for number in numbers)} {unit}".strip()
