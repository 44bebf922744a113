"""The kinds of values that compiled functions work with, and how LLVM holds them.

Arithmetic on integers is done in 64 bits. A narrower integer is widened first, by its sign or by zeros; the result is
signed where either operand is. So `np.uint32(x)` cuts a value to 32 bits, and a sum of two such values has 33.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llvmlite import ir

from gemmsim.native.records import Ints, Reals, Record, Rows, Shorts, fields_of, size_of

_WORD = ir.IntType(64)


@dataclass(frozen=True)
class Number:
    """A number or truth value: the name of its NumPy type, how many bits it has, and whether it is signed or real."""

    name: str
    bits: int
    signed: bool = False
    real: bool = False

    @cached_property
    def llvm(self) -> Any:
        if self.real:
            return ir.DoubleType() if self.bits == 64 else ir.FloatType()
        return ir.IntType(self.bits)

    @property
    def size_bytes(self) -> int:
        return max(self.bits, 8) // 8

    @property
    def integer(self) -> bool:
        return not self.real and self.bits > 1


I64, I32, I16, I8 = (Number(f"int{bits}", bits, signed=True) for bits in (64, 32, 16, 8))
U64, U32, U16, U8 = (Number(f"uint{bits}", bits) for bits in (64, 32, 16, 8))
F64, F32 = Number("float64", 64, signed=True, real=True), Number("float32", 32, signed=True, real=True)
BOOL = Number("bool", 1)
NUMBERS = {kind.name: kind for kind in (I64, I32, I16, I8, U64, U32, U16, U8, F64, F32, BOOL)}


@dataclass(frozen=True)
class Nothing:
    """What a function returns that returns nothing."""

    llvm = ir.VoidType()


NOTHING = Nothing()


@dataclass(frozen=True)
class Array:
    """A NumPy array. LLVM holds its address, its shape, and its strides in bytes."""

    element: Number
    dimensions: int
    dense: bool  # whether its elements lie in memory without gaps, the last index fastest

    @cached_property
    def llvm(self) -> Any:
        return ir.LiteralStructType([_WORD] * (1 + 2 * self.dimensions))


@dataclass(frozen=True)
class Struct:
    """A dataclass: its fields by name."""

    fields: tuple[tuple[str, Any], ...]

    @cached_property
    def llvm(self) -> Any:
        return ir.LiteralStructType([kind.llvm for _, kind in self.fields])


@dataclass(frozen=True)
class OneRecord:
    """The address of a record (`gemmsim.native.records`)."""

    record: type[Record]
    llvm = _WORD

    def field(self, name: str) -> tuple[int, Any]:
        """Return the offset of a field in bytes, and its kind."""
        field = fields_of(self.record)[name]
        if field.kind is Rows:
            return field.offset, Several(None, field.target)
        return field.offset, kind_of(field.target or field.kind)


@dataclass(frozen=True)
class Several:
    """The address of numbers of one kind, or of records, that lie one after another."""

    element: Number | None
    record: type[Record] | None = None
    llvm = _WORD

    @property
    def number(self) -> Number:
        """The kind of the numbers. Raises TypeError where these are records."""
        if self.element is None:
            raise TypeError("a record is no number")
        return self.element

    @property
    def size_bytes(self) -> int:
        return size_of(self.record) if self.record else self.number.size_bytes


_OF_ANNOTATION: dict[Any, Any] = {
    int: I64,
    float: F64,
    bool: BOOL,
    type(None): NOTHING,
    Ints: Several(I64),
    Reals: Several(F64),
    Shorts: Several(I32),
}


def kind_of(annotation: Any) -> Any:
    """Return the kind of a field, an argument or a result with this annotation."""
    return _OF_ANNOTATION.get(annotation) or OneRecord(annotation)


def of_argument(described: Any) -> Any:
    """Return the kind of an argument from its type in the words of `arguments.describe`."""
    if not isinstance(described, str):
        return Struct(tuple((name, of_argument(kind)) for name, kind in described))
    name, *rest = described.split()
    if name == "record":
        from gemmsim.native.arguments import record_named

        return OneRecord(record_named(described))
    if not rest:
        return NUMBERS[name]
    return Array(NUMBERS[name], int(rest[0]), rest[1] == "C")


def joined(a: Any, b: Any) -> Any:
    """Return the kind that holds values of both kinds. Raises TypeError where there is none."""
    if a == b:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        if a.real or b.real:
            return F64
        if BOOL in (a, b):
            return I64
        if a.signed == b.signed:
            return a if a.bits >= b.bits else b
        if (a if b.signed else b).bits < 64:
            return I64
    raise TypeError(f"one variable cannot be {a} and {b}")
