"""Units of values in GPU files and of --set, and conversion to the unit that the name of a field ends with."""

from __future__ import annotations

import re

from gemmsim.support.errors import GemmsimError, nearest

# unit -> (dimension, factor to the unit of the field)
UNITS: dict[str, tuple[str, float]] = {
    "1": ("number", 1.0),
    "%": ("number", 0.01),
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "B/s": ("bytes_per_s", 1.0),
    "GB/s": ("bytes_per_s", 1e9),
    "TB/s": ("bytes_per_s", 1e12),
    "B/cycle": ("bytes_per_cycle", 1.0),
    "Hz": ("hz", 1.0),
    "kHz": ("hz", 1e3),
    "MHz": ("hz", 1e6),
    "GHz": ("hz", 1e9),
    "cycle": ("cycles", 1.0),
    "cycles": ("cycles", 1.0),
    "ns": ("us", 1e-3),
    "us": ("us", 1.0),
    "ms": ("us", 1e3),
    "FLOP/s": ("flops", 1.0),
    "GFLOP/s": ("flops", 1e9),
    "TFLOP/s": ("flops", 1e12),
    "OP/s": ("ops", 1.0),
    "TOP/s": ("ops", 1e12),
}

# Longest first: `peak_bytes_per_s` is a rate, not bytes.
_SUFFIXES = ("bytes_per_cycle", "bytes_per_s", "bytes", "hz", "cycles", "us", "flops", "ops")


def dimension(field: str) -> str:
    """Dimension of a field of `GpuSpec` by its name: "bytes" for "size_bytes", "number" where it has no unit."""
    if re.search(r"bytes_per_(sm|block)$", field):  # a limit of that thing, not a rate
        return "bytes"
    return next((suffix for suffix in _SUFFIXES if field.endswith("_" + suffix)), "number")


def short(field: str) -> str:
    """The field's name without its unit, as GPU files and --set may write it: "size" for "size_bytes"."""
    suffix = dimension(field)
    return field.replace("_bytes", "") if suffix == "bytes" else field.removesuffix("_" + suffix)


def convert(number: float, unit: str, field: str, key: str) -> float:
    """Convert `number` from `unit` to the unit of the field. An empty `unit` means that it is in that unit already.

    Raises GemmsimError for an unknown unit and for one of another dimension.
    """
    wanted = dimension(field)
    usable = [name for name, (dim, _) in UNITS.items() if dim == wanted]
    if not unit:
        return number
    if unit not in UNITS:
        raise GemmsimError(f"{key}: unknown unit '{unit}'{nearest(unit, usable)}; use one of {', '.join(usable)}")
    dim, factor = UNITS[unit]
    if dim != wanted:
        raise GemmsimError(f"{key}: '{unit}' does not fit; use one of {', '.join(usable)}")
    return number * factor
