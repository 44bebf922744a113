"""Converts the arguments of a call to what machine code takes, and describes their types in words."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from gemmsim.native.records import Record

_NUMBERS: dict[str, Any] = {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float64": ctypes.c_double}
RECORD = "record "  # how the type of a record begins
RESULTS: dict[str, Any] = {**_NUMBERS, "none": ctypes.c_int64}  # the result of a function that returns None is not read


# What `describe` returns: a type in words, or the (name, type) pairs of a dataclass's fields.
ArgumentType = str | tuple[tuple[str, Any], ...]


def describe(argument: Any) -> ArgumentType:
    """Return the type of an argument in words, such as "int64", "uint64" or "float64".

    That of an array names its dtype, the number of its dimensions and its layout: "uint8 2 C". That of a record names
    its class: "record module Class". A dataclass is described by its fields, each with its name. Integers and truth
    values of Python are int64. Raises TypeError for anything else.
    """
    if isinstance(argument, np.ndarray):
        return f"{_name_of(argument.dtype)} {argument.ndim} {'C' if argument.flags.c_contiguous else 'A'}"
    if isinstance(argument, (np.uint64, np.float64)):
        return _name_of(argument.dtype)
    if isinstance(argument, (int, np.integer)):
        return "int64"
    if isinstance(argument, float):
        return "float64"
    if is_dataclass(argument):
        return tuple((field.name, describe(getattr(argument, field.name))) for field in fields(argument))
    if isinstance(argument, Record):
        return f"{RECORD}{type(argument).__module__} {type(argument).__name__}"
    raise TypeError(
        f"machine code takes numbers, arrays, records and dataclasses of them, not {type(argument).__name__}"
    )


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name  # which NumPy makes anew each time, in a few microseconds


def record_named(kind: str) -> type[Record]:
    """Return the class of the record that `describe` put into words as `kind`."""
    _, module, name = kind.split()
    found: type[Record] = getattr(importlib.import_module(module), name)
    return found


def c_types(signature: Sequence[ArgumentType]) -> list[Any]:
    """Return the C types of what machine code takes, for arguments of these types.

    First comes the address of the place for what the function returns, and then each argument. An array is passed as
    its address, shape and strides, a record as its address, and a dataclass as its fields one by one.
    """
    return [ctypes.c_void_p, *_types_of(signature)]


def _types_of(signature: Sequence[ArgumentType]) -> list[Any]:
    found: list[Any] = []
    for kind in signature:
        if not isinstance(kind, str):
            found += _types_of([of_field for _, of_field in kind])
        elif kind in _NUMBERS:
            found.append(_NUMBERS[kind])
        elif kind.startswith(RECORD):
            found.append(ctypes.c_int64)
        else:
            dimensions = int(kind.split()[1])
            found += [ctypes.c_void_p] + [ctypes.c_int64] * 2 * dimensions
    return found


def c_values(arguments: Sequence[Any]) -> list[Any]:
    """Return `arguments` as values of the types that `c_types` gives, without its first. The caller keeps the
    arguments alive.
    """
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            found += [argument.ctypes.data, *argument.shape, *argument.strides]
        elif isinstance(argument, Record):
            found.append(argument.address)
        elif is_dataclass(argument):
            found += c_values([getattr(argument, field.name) for field in fields(argument)])
        else:
            found.append(float(argument) if isinstance(argument, float) else int(argument))
    return found
