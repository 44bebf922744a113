"""What references have in common: what they are computed from, and what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

from .formula import Names, evaluate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expected:
    """What an argument should hold afterwards.

    position  index among the manifest's arguments
    dtype     what the argument holds
    values    the values, of the argument's number of elements
    allowed   largest absolute error allowed for each, an array or one number
    """

    position: int
    dtype: str
    values: Array
    allowed: Array | float


@dataclass(frozen=True)
class Before:
    """What a reference is computed from.

    args   the arguments before the launch
    check  the table `check` of the manifest
    sizes  what its formulas may name
    """

    args: Sequence[Argument]
    check: Mapping[str, Any]
    sizes: Names

    def position(self, key: str) -> int:
        if key not in self.check:
            raise GemmsimError(f"manifest: check '{self.check['kind']}' needs '{key}'")
        return int(self.check[key])

    def array(self, key: str) -> Array:
        """The array argument that `key` names, as flat float64."""
        argument = self.args[self.position(key)]
        return decoded(np.asarray(argument.value), self.check.get(f"{key}_type", argument.dtype)).ravel()

    def dtype(self, key: str) -> str:
        return str(self.check.get(f"{key}_type", self.args[self.position(key)].dtype))

    def size(self, key: str, default: int | None = None) -> int:
        value = self.check.get(key, default)
        if value is None:
            raise GemmsimError(f"manifest: check '{self.check['kind']}' needs '{key}'")
        return evaluate(value, self.sizes)

    def number(self, key: str, default: float) -> float:
        return float(self.check.get(key, default))


def decoded(values: NDArray[Any], dtype: str) -> Array:
    """Return the numbers that an array of a type holds, as float64."""
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("fp8e4nv", "fp8e5"):
        return _fp8_values(dtype)[values.astype(np.uint8)]
    return values.astype(np.float64)


def _fp8_values(dtype: str) -> Array:
    """Return the value of each of the 256 bit patterns (OCP 8-bit Floating Point Specification, revision 1.0)."""
    mantissa_bits, bias = (3, 7) if dtype == "fp8e4nv" else (2, 15)
    bits = np.arange(256)
    exponent, mantissa = (bits & 0x7F) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    scale = 1 << mantissa_bits
    value = np.where(
        exponent == 0, mantissa / scale * 2.0 ** (1 - bias), (1 + mantissa / scale) * 2.0 ** (exponent - bias)
    )
    if dtype == "fp8e4nv":
        value[(bits & 0x7F) == 0x7F] = np.nan
    else:
        value[exponent == 31] = np.where(mantissa[exponent == 31] == 0, np.inf, np.nan)
    return np.where(bits & 0x80, -value, value)


def roundoff(dtype: str) -> float:
    own = {"fp8e4nv": 2.0**-4, "fp8e5": 2.0**-3}
    return own[dtype] if dtype in own else DTYPES[dtype].unit_roundoff


def smallest(dtype: str) -> float:
    """Return half the distance between the smallest numbers of a type, the error of rounding near 0."""
    return {"f16": 2.0**-25, "fp8e4nv": 2.0**-10, "fp8e5": 2.0**-17}.get(dtype, 0.0)
