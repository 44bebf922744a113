"""Records and words at addresses, for compiled code: what numba's arrays cost in reference counts is saved.

A record that numba sees is the address of one, so functions hand them on for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype

from gemmsim.native.numba_parts import DOUBLE, INDEX, NOTHING, instruction

_WORD = ir.IntType(64)


def records(dtype: np.dtype[Any]) -> Callable[[int, int], Any]:
    """A function (address, index) -> the record of `dtype` there."""
    kind = from_dtype(dtype)

    @instruction(kind, INDEX, INDEX)
    def at(builder: Any, address: Any, index: Any) -> Any:
        place = builder.add(address, builder.mul(index, ir.Constant(_WORD, dtype.itemsize)))
        return builder.inttoptr(place, ir.ArrayType(ir.IntType(8), dtype.itemsize).as_pointer())

    return at


def _pointer(builder: Any, address: Any, index: Any, kind: Any, size: int) -> Any:
    return builder.inttoptr(builder.add(address, builder.mul(index, ir.Constant(_WORD, size))), kind.as_pointer())


@instruction(INDEX, INDEX, INDEX)
def integer(builder: Any, address: Any, index: Any) -> Any:
    """The `index`-th int64 from `address` on."""
    return builder.load(_pointer(builder, address, index, _WORD, 8))


@instruction(INDEX, INDEX, INDEX)
def short(builder: Any, address: Any, index: Any) -> Any:
    """The `index`-th int32."""
    return builder.sext(builder.load(_pointer(builder, address, index, ir.IntType(32), 4)), _WORD)


@instruction(DOUBLE, INDEX, INDEX)
def real(builder: Any, address: Any, index: Any) -> Any:
    """The `index`-th float64."""
    return builder.load(_pointer(builder, address, index, ir.DoubleType(), 8))


@instruction(NOTHING, INDEX, INDEX, INDEX)
def put_integer(builder: Any, address: Any, index: Any, value: Any) -> None:
    builder.store(value, _pointer(builder, address, index, _WORD, 8))


@instruction(NOTHING, INDEX, INDEX, DOUBLE)
def put_real(builder: Any, address: Any, index: Any, value: Any) -> None:
    builder.store(value, _pointer(builder, address, index, ir.DoubleType(), 8))


@instruction(NOTHING, INDEX, INDEX, DOUBLE)
def add_real(builder: Any, address: Any, index: Any, value: Any) -> None:
    place = _pointer(builder, address, index, ir.DoubleType(), 8)
    builder.store(builder.fadd(builder.load(place), value), place)
