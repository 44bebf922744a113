"""Defines `Lanes`, the values on which opcode semantics are written: one value in each of a warp's 32 lanes.

A semantic function (see `gemmsim.isa.semantics`) is plain Python over `Lanes` values, and it runs on two kinds of them.
The LLVM values of `gemmsim.trace.llvm.lane_operations` turn one call of the function into vector code. The tests have a
slow readable class of `Lanes` on NumPy arrays, and check that both kinds give equal results.

Types are "u32", "s32", "u64", "s64", "f32", "f64" and "b" (a truth value). Arithmetic wraps around. `>>` is arithmetic
on signed types. Comparisons follow the type. Shift amounts must be below the width. Python integers and floats are
lifted to the type of the other operand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

WIDTH_BITS = {"u32": 32, "s32": 32, "u64": 64, "s64": 64, "f32": 32, "f64": 64, "b": 1}


class Lanes(ABC):
    """32 values of one type, one for each lane. An operator makes a new `Lanes` of its operands."""

    __slots__ = ("type",)
    type: str

    @abstractmethod
    def _binary(self, op: str, other: Lanes) -> Lanes: ...

    @abstractmethod
    def _compare(self, op: str, other: Lanes) -> Lanes: ...

    @abstractmethod
    def lift(self, value: int | float) -> Lanes:
        """Return the constant `value` in every lane, with the type of `self`."""

    @abstractmethod
    def invert(self) -> Lanes: ...

    @abstractmethod
    def bitcast(self, type_: str) -> Lanes:
        """Return the bits of these values, read as another type of the same width."""

    @abstractmethod
    def convert(self, type_: str) -> Lanes:
        """Return these values converted to another type.

        Signed integers are extended by their sign and unsigned ones by zeros, or truncated; floats are rounded.
        """

    @abstractmethod
    def select(self, yes: Lanes, no: Lanes) -> Lanes:
        """Return `yes` in the lanes where `self`, a truth value, holds, else `no`."""

    @abstractmethod
    def fma(self, b: Lanes, c: Lanes) -> Lanes:
        """Return self * b + c, rounded once."""

    @abstractmethod
    def function(self, name: str) -> Lanes:
        """Apply a function to a float: sqrt, exp2, log2, sin, cos, floor, ceil, trunc or rint."""

    @abstractmethod
    def count(self, name: str) -> Lanes:
        """Apply a bit operation to a u32: ctpop (ones), ctlz (leading zeros) or bitreverse."""

    def _lifted(self, other: Any) -> Lanes:
        return other if isinstance(other, Lanes) else self.lift(other)

    def __add__(self, other: Any) -> Lanes:
        return self._binary("add", self._lifted(other))

    def __sub__(self, other: Any) -> Lanes:
        return self._binary("sub", self._lifted(other))

    def __mul__(self, other: Any) -> Lanes:
        return self._binary("mul", self._lifted(other))

    def __truediv__(self, other: Any) -> Lanes:
        return self._binary("div", self._lifted(other))

    def __and__(self, other: Any) -> Lanes:
        return self._binary("and", self._lifted(other))

    def __or__(self, other: Any) -> Lanes:
        return self._binary("or", self._lifted(other))

    def __xor__(self, other: Any) -> Lanes:
        return self._binary("xor", self._lifted(other))

    def __lshift__(self, other: Any) -> Lanes:
        return self._binary("shl", self._lifted(other))

    def __rshift__(self, other: Any) -> Lanes:
        return self._binary("shr", self._lifted(other))

    def __invert__(self) -> Lanes:
        return self.invert()

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", self._lifted(other))

    def __le__(self, other: Any) -> Lanes:
        return self._compare("<=", self._lifted(other))

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", self._lifted(other))

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", self._lifted(other))

    def eq(self, other: Any) -> Lanes:
        return self._compare("==", self._lifted(other))

    def ne(self, other: Any) -> Lanes:
        """Return whether the values are not equal; true where either is NaN."""
        return self._compare("!=", self._lifted(other))
