"""What references have in common: what they are computed from, and what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.bit_patterns import to_numbers
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
        return decoded(np.asarray(argument.value), argument.dtype).ravel()

    def dtype(self, key: str) -> str:
        return self.args[self.position(key)].dtype

    def size(self, key: str, default: int | None = None) -> int:
        value = self.check.get(key, default)
        if value is None:
            raise GemmsimError(f"manifest: check '{self.check['kind']}' needs '{key}'")
        return evaluate(value, self.sizes)

    def number(self, key: str, default: float) -> float:
        return float(self.check.get(key, default))


def decoded(values: NDArray[Any], dtype: str) -> Array:
    """Return the numbers that an array of a type holds, as float64."""
    return to_numbers(dtype, values).astype(np.float64)


def roundoff(dtype: str) -> float:
    return DTYPES[dtype].unit_roundoff


def smallest(dtype: str) -> float:
    """Return half the distance between the smallest numbers of a type, the error of rounding near 0."""
    return {"f16": 2.0**-25, "e4m3": 2.0**-10, "e5m2": 2.0**-17}.get(dtype, 0.0)
