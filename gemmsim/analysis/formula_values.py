"""Computes what a formula gives, in float64, and how far a kernel that computes it may be off.

The result is the values of some rows and columns, and a bound of the error of each. The bound of a K-term sum is
(K + 3) u sum|a b| (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1), u the unit roundoff of the
type in which the kernel adds up; every further operation adds its own rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.formula import Call, Leaf, Node, Number, Product, Transposed
from gemmsim.support.bit_patterns import tf32_values, to_numbers
from gemmsim.support.dtypes import DTYPES
from gemmsim.trace.types import Argument

Values = NDArray[np.float64]
Index = NDArray[np.int64] | slice
_EVERYTHING = slice(None)
_TF32_TRUNCATION = 2.0**-10  # tensor cores drop the bits that tf32 lacks

_erf = np.vectorize(math.erf, otypes=[np.float64])

# Functions of one argument: what they compute, how much an error of the argument grows at most, and the error of the
# fastest usual way to compute them, relative to the larger of argument and result: tanh.approx and ex2.approx of the
# PTX ISA ("maximum relative error 2^-11", "2^-22.5"), CUDA's erff and sqrt.
_ONE: dict[str, tuple[Callable[[Values], Values], float, float]] = {
    "relu": (lambda x: np.maximum(x, 0), 1.0, 0.0),
    "abs": (np.abs, 1.0, 0.0),
    "tanh": (np.tanh, 1.0, 2.0**-10),
    "sigmoid": (lambda x: 0.5 + 0.5 * np.tanh(x / 2), 0.25, 2.0**-10),
    "silu": (lambda x: x * (0.5 + 0.5 * np.tanh(x / 2)), 1.1, 2.0**-10),
    "gelu": (lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))), 1.13, 2.0**-20),
    "gelu_tanh": (lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), 1.13, 2.0**-10),
}


@dataclass(frozen=True)
class Evaluator:
    """Computes nodes of a formula.

    args      the launch's arguments, with their arrays as they were before the launch
    roundoff  unit roundoff of the type in which the kernel computes; 0 where it computes with integers
    """

    args: tuple[Argument, ...]
    roundoff: float

    def at(self, node: Node, batch: tuple[int, ...], rows: Index, columns: Index) -> tuple[Values, Values]:
        """Compute some rows and columns of one matrix of a node.

        batch          index of the matrix; its length is that of the output's outer dimensions
        rows, columns  which of the output's rows and columns

        Returns (values, error bounds), each float64 [rows or 1, columns or 1].
        """
        match node:
            case Number(value):
                return np.full((1, 1), value), np.zeros((1, 1))
            case Leaf(position, shape):
                return self._leaf(position, shape, batch, rows, columns)
            case Transposed(of):
                values, errors = self.at(of, batch, columns, rows)
                return values.T, errors.T
            case Product(left, right):
                return self._product(left, right, batch, rows, columns)
            case Call("column", (of,)):
                values, errors = self.at(of, (), _EVERYTHING, rows)
                return values.T, errors.T
            case Call(name, of):
                return self._call(name, [self.at(one, batch, rows, columns) for one in of])

    def _leaf(
        self, position: int, shape: tuple[int, ...], batch: tuple[int, ...], rows: Index, columns: Index
    ) -> tuple[Values, Values]:
        argument = self.args[position]
        array = np.asarray(argument.value).reshape(argument.shape)
        outer = (1,) * (2 - len(shape)) + shape
        outer, matrix = outer[:-2], outer[-2:]
        if outer:
            own = batch[len(batch) - len(outer) :]
            array = array[tuple(0 if size == 1 else index for size, index in zip(outer, own, strict=True))]
        if DTYPES[argument.dtype].packed > 1:
            array = to_numbers(argument.dtype, array)
        array = array.reshape(matrix)
        chosen_rows = _EVERYTHING if matrix[0] == 1 else rows
        chosen_columns = _EVERYTHING if matrix[1] == 1 else columns
        part = array[chosen_rows][:, chosen_columns]
        values = part if DTYPES[argument.dtype].packed > 1 else to_numbers(argument.dtype, part)
        errors = np.zeros(values.shape)
        if argument.dtype == "tf32":
            errors = np.where(tf32_values(values) == values, 0.0, np.abs(values) * _TF32_TRUNCATION)
        return values.astype(np.float64), errors

    def _product(
        self, left: Node, right: Node, batch: tuple[int, ...], rows: Index, columns: Index
    ) -> tuple[Values, Values]:
        (a, da), (b, db) = self.at(left, batch, rows, _EVERYTHING), self.at(right, batch, _EVERYTHING, columns)
        size_a, size_b = np.abs(a), np.abs(b)
        errors = np.zeros((len(a), b.shape[1]))
        if self.roundoff:
            errors += (a.shape[1] + 3) * self.roundoff * (size_a @ size_b)
        if da.any():
            errors += da @ (size_b + db)
        if db.any():
            errors += size_a @ db
        return a @ b, errors

    def _call(self, name: str, of: list[tuple[Values, Values]]) -> tuple[Values, Values]:
        (a, da), *rest = of
        if name in ("max", "min"):
            ((b, db),) = rest
            return (np.maximum if name == "max" else np.minimum)(a, b), np.maximum(da, db)
        if rest:
            ((b, db),) = rest
            values, errors = _arithmetic(name, a, da, b, db)
            return values, errors + self.roundoff * np.abs(values)
        if name in _ONE:
            function, growth, relative = _ONE[name]
            values = function(a)
            error = max(relative, 4 * self.roundoff) if relative else 0.0
            return values, growth * da + error * np.maximum(np.abs(a), np.abs(values))
        if name == "exp":
            values = np.exp(a)
            return values, values * (np.expm1(da) + 2.0**-20 + 4 * self.roundoff * np.abs(a))
        if name == "sqrt":
            values = np.sqrt(np.maximum(a, 0))
            return values, values - np.sqrt(np.maximum(a - da, 0)) + 4 * self.roundoff * values
        unit = DTYPES[name].unit_roundoff  # rounded to a type
        return a, da + unit * (np.abs(a) + da)


def _arithmetic(sign: str, a: Values, da: Values, b: Values, db: Values) -> tuple[Values, Values]:
    if sign == "+":
        return a + b, da + db
    if sign == "-":
        return a - b, da + db
    if sign == "*":
        return a * b, np.abs(a) * db + np.abs(b) * da + da * db
    with np.errstate(divide="ignore", invalid="ignore"):
        values, size = a / b, np.abs(b)
        return values, np.where(size > db, (da + np.abs(values) * db) / (size - db), np.inf)
