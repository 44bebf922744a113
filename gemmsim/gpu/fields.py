"""Lists the keys of a GPU, such as "l2.size_bytes" and "pipes.alu.latency_cycles", and converts values to their types.

A key names a field of a class of `spec.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from functools import cache
from typing import Any, get_type_hints

from gemmsim.gpu.spec import GpuSpec, Pipe
from gemmsim.gpu.units import convert, short
from gemmsim.support.errors import GemmsimError

# {"sm": Sm, ...}: the parts of a GpuSpec, but for its pipes
SECTIONS: dict[str, Any] = {
    name: kind for name, kind in get_type_hints(GpuSpec).items() if dataclasses.is_dataclass(kind)
}
PIPES = ("fmaheavy", "alu", "fp64", "xu", "uniform", "lsu", "adu", "cbu", "tensor")
OPTIONAL_PIPES = ("fmalite", "fp16")  # gemmsim/sm/pipes.py says what a GPU without these pipes does

Number = int | float
NEAREST = 4  # how many similar keys an error names


@cache
def types() -> dict[str, str]:
    """Return every key with the annotation of its field as text: {"l2.size_bytes": "int", ...}."""
    keys = {f"{name}.{f.name}": str(f.type) for name, part in SECTIONS.items() for f in dataclasses.fields(part)}
    keys |= {f"pipes.{pipe}.{f.name}": str(f.type) for pipe in PIPES + OPTIONAL_PIPES for f in dataclasses.fields(Pipe)}
    return keys


@cache
def _spellings() -> dict[str, str]:
    long = {key: key for key in types()}
    return {f"{key.rpartition('.')[0]}.{short(key.rpartition('.')[2])}": key for key in types()} | long


def resolve(key: str) -> str:
    """Return the full key "l2.size_bytes" for "l2.size" or "l2.size_bytes".

    Raises GemmsimError, which names similar keys, where there is no such key.
    """
    spellings = _spellings()
    if key not in spellings:
        raise GemmsimError(f"unknown GPU key '{key}'{_near(key)}")
    return spellings[key]


def _near(key: str) -> str:
    """Name the keys most like `key` for a message, those of its section first: ` (nearest: l2.size, l2.ways)`."""
    short_keys = [f"{full.rpartition('.')[0]}.{short(full.rpartition('.')[2])}" for full in types()]
    section = key.rpartition(".")[0]
    inside = [one for one in short_keys if one.rpartition(".")[0] == section]
    close = difflib.get_close_matches(key, inside, NEAREST) or difflib.get_close_matches(key, short_keys, NEAREST)
    if not close and inside:
        return f": {section} has {', '.join(one.rpartition('.')[2] for one in inside)}"
    return f" (nearest: {', '.join(close)})" if close else f": sections are {', '.join([*SECTIONS, 'pipes.NAME'])}"


def to_field(key: str, raw: object, unit: str) -> object:
    """Convert `raw`, a number or (where the field is a tuple) a list, to the unit and the Python type of the field."""
    kind = types()[key]
    if not kind.startswith("tuple"):
        return _scalar(key, kind, raw, unit)
    length = None if "..." in kind else kind.count(",") + 1
    if not isinstance(raw, (list, tuple)) or not raw or (length and len(raw) != length):
        raise GemmsimError(f"{key}: wants a list of {length or 'one or more'} numbers, not {raw!r}")
    return tuple(_scalar(key, "int" if "int" in kind else "float", item, unit) for item in raw)


def _scalar(key: str, kind: str, raw: object, unit: str) -> Number:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise GemmsimError(f"{key}: wants a number, not {raw!r}")
    value = convert(raw, unit, key.rpartition(".")[2], key)
    if kind == "float":
        return float(value)
    if kind == "bool":
        if value not in (0, 1):
            raise GemmsimError(f"{key}: wants 1 (yes) or 0 (no), not {value:g}")
        return bool(value)
    # 0.06291456 GB is 62914560 bytes, but for the last digit of a float
    whole = round(value) if math.isfinite(value) else 0
    if not math.isclose(value, whole, rel_tol=1e-12):
        raise GemmsimError(f"{key}: wants a whole number, not {value:g}")
    return whole
