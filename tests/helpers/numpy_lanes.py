"""The slow readable twin of the compiled lane arithmetic: semantic functions run on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.lanes import WIDTH_BITS, Lanes

_DTYPE = {
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
    "b": np.bool_,
}


class NumpyLanes(Lanes):
    """Values of all lanes in an array of shape [lanes]."""

    __slots__ = ("array",)

    def __init__(self, type_: str, array: Any) -> None:
        self.type = type_
        self.array: NDArray[Any] = np.asarray(array, dtype=_DTYPE[type_])

    def lift(self, value: int | float) -> Lanes:
        if self.type[0] in "us":
            value = int(value) & ((1 << WIDTH_BITS[self.type]) - 1)
            unsigned = _DTYPE["u" + self.type[1:]](value)
            return NumpyLanes(self.type, np.full(self.array.shape, unsigned).view(_DTYPE[self.type]))
        return NumpyLanes(self.type, np.full(self.array.shape, value))

    def _binary(self, op: str, other: Lanes) -> Lanes:
        assert isinstance(other, NumpyLanes) and (op in ("shl", "shr") or self.type == other.type), (op, self.type)
        a, b = self.array, other.array
        with np.errstate(all="ignore"):
            if op in ("shl", "shr"):
                b = b.astype(a.dtype)
                out = a << b if op == "shl" else a >> b
            elif op == "div":
                out = a / b
            else:
                ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply}.get(op)
                bitwise = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
                out = (ufunc or bitwise[op])(a, b)
        return NumpyLanes(self.type, out)

    def _compare(self, op: str, other: Lanes) -> Lanes:
        assert isinstance(other, NumpyLanes) and self.type == other.type, (op, self.type, other.type)
        a, b = self.array, other.array
        ordered = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
        return NumpyLanes("b", {**ordered, "==": np.equal, "!=": np.not_equal}[op](a, b))

    def invert(self) -> Lanes:
        return NumpyLanes(self.type, ~self.array)

    def bitcast(self, type_: str) -> Lanes:
        return NumpyLanes(type_, self.array.view(_DTYPE[type_]))

    def convert(self, type_: str) -> Lanes:
        with np.errstate(all="ignore"):
            return NumpyLanes(type_, self.array.astype(_DTYPE[type_]))

    def select(self, yes: Lanes, no: Lanes) -> Lanes:
        assert isinstance(yes, NumpyLanes) and isinstance(no, NumpyLanes) and yes.type == no.type
        return NumpyLanes(yes.type, np.where(self.array, yes.array, no.array))

    def fma(self, b: Lanes, c: Lanes) -> Lanes:
        assert isinstance(b, NumpyLanes) and isinstance(c, NumpyLanes)
        exact = [_exact_fma(self.type, *abc) for abc in zip(self.array, b.array, c.array, strict=True)]
        return NumpyLanes(self.type, exact)

    def function(self, name: str) -> Lanes:
        with np.errstate(all="ignore"):
            return NumpyLanes(self.type, getattr(np, name)(self.array))

    def count(self, name: str) -> Lanes:
        text = [format(int(v), "032b") for v in self.array]
        how = {
            "ctpop": lambda t: t.count("1"),
            "ctlz": lambda t: len(t) - len(t.lstrip("0")),
            "bitreverse": lambda t: int(t[::-1], 2),
        }
        return NumpyLanes("u32", [how[name](t) for t in text])


def _exact_fma(type_: str, a: Any, b: Any, c: Any) -> Any:
    """a*b + c with one rounding, by exact rational arithmetic (math.fma came only with Python 3.13)."""
    from fractions import Fraction

    dtype = _DTYPE[type_]
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        with np.errstate(all="ignore"):
            return dtype(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        with np.errstate(all="ignore"):
            return dtype(a * b + c)  # the sign of a zero follows IEEE-754's rules, which the hardware applies here
    return _round_fraction(exact, dtype)


def _round_fraction(exact: Any, dtype: Any) -> Any:
    """Round to nearest even: start from a float64 near the value and choose the closer of the neighbours."""
    with np.errstate(all="ignore"):
        try:
            near = dtype(exact.numerator / exact.denominator)
        except OverflowError:
            return dtype(np.inf if exact > 0 else -np.inf)
    if not np.isfinite(near):
        return near
    from fractions import Fraction

    with np.errstate(over="ignore"):
        candidates = [np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf))]
    finite = [v for v in candidates if np.isfinite(v)]
    unsigned = {np.float32: np.uint32, np.float64: np.uint64}[dtype]

    def distance(v: Any) -> tuple[Fraction, int]:
        return abs(Fraction(float(v)) - exact), int(np.array(v).view(unsigned)) & 1

    return min(finite, key=distance)
