"""Reads how an array lies in memory: column-major, pitched, shifted."""

from __future__ import annotations

import re

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError

_COUNT = re.compile(r"\s*[0-9]{1,18}\s*")  # what fits 64 bits


def parse_layout(text: str, dtype: str, shape: tuple[int, ...], what: str) -> tuple[tuple[int, ...] | None, int]:
    """Read `col, ld=260, offset=4` or `strides=1/260`, what stands behind the `;` in an array's brackets.

    col      columns are contiguous, and not rows
    ld       elements from the start of one row (column) to the start of the next
    offset   elements of the array's memory that lie before the first one
    strides  for each dimension the elements from one index to the next

    dtype, shape  of the array, the shape in items
    what          how messages begin

    Returns (strides in bytes, None where the array is C-contiguous; offset in bytes). Raises GemmsimError for anything
    else.
    """
    item, packed = DTYPES[dtype].item_bytes, DTYPES[dtype].packed
    leading, offset, column, strides = 0, 0, False, None
    for word in text.split(",") if text.strip() else ():
        key, _, value = (part.strip() for part in word.partition("="))
        if key == "col" and not value:
            column = True
        elif key in ("ld", "offset") and _COUNT.fullmatch(value):
            if int(value) % packed:
                raise GemmsimError(f"{what}: {key}={value} must be even: a byte holds two elements of {dtype}")
            leading, offset = (int(value), offset) if key == "ld" else (leading, int(value))
        elif key == "strides" and all(map(_COUNT.fullmatch, value.split("/"))):
            strides = tuple(map(int, value.split("/")))
        else:
            forms = "col, ld=260, offset=4 or strides=260/1, in elements"
            raise GemmsimError(f"{what}: layout '{word.strip()}' is not known: expected {forms}")
    if packed > 1 and (column or strides):
        raise GemmsimError(f"{what}: {dtype} is packed along its last dimension: write the transposed shape")
    if strides is not None:
        if column or leading or len(strides) != len(shape):
            raise GemmsimError(f"{what}: strides need one number for each dimension, and neither col nor ld")
        return tuple(item * stride for stride in strides), offset * item // packed
    if not (column or leading):
        return None, offset * item // packed
    if len(shape) < 2:
        raise GemmsimError(f"{what}: col and ld are for arrays of two or more dimensions")
    pitch = leading // packed
    length = shape[-2] if column else shape[-1]
    if 0 < pitch < length:
        raise GemmsimError(f"{what}: ld={leading} is less than the {length * packed} elements of a line")
    return tuple(item * step for step in _steps(shape, column, pitch or length)), offset * item // packed


def _steps(shape: tuple[int, ...], column: bool, pitch: int) -> tuple[int, ...]:
    """Return for each dimension the items from one index to the next; matrices of a batch follow one another.

    column  whether columns are contiguous, else rows
    pitch   items from the start of one column (row) to the start of the next
    """
    *batch, rows, columns = shape
    steps = [1, pitch] if column else [pitch, 1]
    step = pitch * (columns if column else rows)
    for count in reversed(batch):
        steps.insert(0, step)
        step *= count
    return tuple(steps)
