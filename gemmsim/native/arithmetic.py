"""Writes arithmetic on numbers in LLVM, as `gemmsim.native.kinds` defines it: conversions, operators, comparisons."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from gemmsim.native.kinds import BOOL, F64, I64, U64, Number

FAILED = "divided_by_zero"  # name of the module's flag
_LAST_SIGNED = (1 << 63) - 1


@dataclass(frozen=True)
class Value:
    """A value of the running program."""

    kind: Any
    llvm: Any


_REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def constant(value: Any) -> Value:
    """Return a number that is known when the function is compiled as a value."""
    import numpy as np

    from gemmsim.native.kinds import NUMBERS

    if isinstance(value, (bool, np.bool_)):
        return Value(BOOL, ir.Constant(BOOL.llvm, int(value)))
    if isinstance(value, np.generic):
        kind = NUMBERS[value.dtype.name]
    elif isinstance(value, float):
        kind = F64
    elif isinstance(value, int):
        kind = I64 if value <= _LAST_SIGNED else U64
    else:
        raise TypeError(f"{value!r} is not a number")
    return Value(kind, ir.Constant(kind.llvm, float(value) if kind.real else int(value)))


def converted(builder: Any, value: Value, kind: Number) -> Value:
    """Return a number as one of another kind, which cuts it where that has fewer bits."""
    if value.kind == kind:
        return value
    source, number, to = value.kind, value.llvm, kind.llvm
    if not isinstance(source, Number) or not isinstance(kind, Number):
        raise TypeError(f"{source} is no {kind}")
    if kind == BOOL:
        zero = ir.Constant(source.llvm, 0)
        same = builder.fcmp_unordered("!=", number, zero) if source.real else builder.icmp_signed("!=", number, zero)
        return Value(BOOL, same)
    if source.real and kind.real:
        done = builder.fpext(number, to) if kind.bits > source.bits else builder.fptrunc(number, to)
    elif source.real:
        done = builder.fptosi(number, to) if kind.signed else builder.fptoui(number, to)
    elif kind.real:
        done = builder.sitofp(number, to) if source.signed else builder.uitofp(number, to)
    elif kind.bits < source.bits:
        done = builder.trunc(number, to)
    elif kind.bits == source.bits:
        done = number
    else:
        done = builder.sext(number, to) if source.signed else builder.zext(number, to)
    return Value(kind, done)


def widened(builder: Any, value: Value) -> Value:
    """Return an integer or truth value as an integer of 64 bits."""
    return converted(builder, value, I64 if value.kind.signed or value.kind == BOOL else U64)


def binary(builder: Any, operator: ast.operator, a: Value, b: Value) -> Value:
    """Return what an operator gives."""
    which = type(operator)
    if a.kind == b.kind == BOOL and which in (ast.BitAnd, ast.BitOr, ast.BitXor):
        return Value(BOOL, getattr(builder, _WHOLE[which])(a.llvm, b.llvm))
    if which is ast.Div or a.kind.real or b.kind.real:
        kind = a.kind if a.kind == b.kind and a.kind.real else F64
        a, b = converted(builder, a, kind), converted(builder, b, kind)
        if which is ast.Div:
            zero = builder.fcmp_ordered("==", b.llvm, ir.Constant(kind.llvm, 0.0))
            b = Value(kind, _not_zero(builder, b.llvm, zero))
        return Value(kind, getattr(builder, _REAL[which])(a.llvm, b.llvm))
    a, b = widened(builder, a), widened(builder, b)
    if which is ast.LShift:
        return Value(a.kind, builder.shl(a.llvm, b.llvm))
    if which is ast.RShift:
        return Value(a.kind, (builder.ashr if a.kind.signed else builder.lshr)(a.llvm, b.llvm))
    kind = I64 if a.kind.signed or b.kind.signed else U64
    if which in (ast.FloorDiv, ast.Mod):
        return Value(kind, _divided(builder, kind, a.llvm, b.llvm, which is ast.Mod))
    if which not in _WHOLE:
        raise TypeError(f"no operator {which.__name__} in compiled code")
    return Value(kind, getattr(builder, _WHOLE[which])(a.llvm, b.llvm))


def _not_zero(builder: Any, divisor: Any, zero: Any) -> Any:
    """Return the divisor, or 1 in the place of `zero`, which is noted."""
    if isinstance(divisor, ir.Constant) and divisor.constant:
        return divisor
    with builder.if_then(zero, likely=False):
        builder.store(ir.Constant(ir.IntType(32), 1), builder.module.globals[FAILED])
    return builder.select(zero, ir.Constant(divisor.type, 1), divisor)


def _divided(builder: Any, kind: Number, a: Any, b: Any, rest: bool) -> Any:
    """Return a // b, or where `rest` a % b, rounded down as in Python."""
    nothing = ir.Constant(kind.llvm, 0)
    b = _not_zero(builder, b, builder.icmp_signed("==", b, nothing))
    if not kind.signed:
        return builder.urem(a, b) if rest else builder.udiv(a, b)
    remainder = builder.srem(a, b)
    other_signs = builder.icmp_signed("<", builder.xor(remainder, b), nothing)
    mend = builder.and_(builder.icmp_signed("!=", remainder, nothing), other_signs)
    if rest:
        return builder.add(remainder, builder.select(mend, b, nothing))
    return builder.sub(builder.sdiv(a, b), builder.zext(mend, kind.llvm))


def unary(builder: Any, operator: ast.unaryop, value: Value) -> Value:
    """Return minus a number, or an integer with its bits inverted."""
    if value.kind.real:
        if not isinstance(operator, ast.USub):
            raise TypeError("only minus goes with real numbers")
        return Value(value.kind, builder.fneg(value.llvm))
    value = widened(builder, value)
    if isinstance(operator, ast.Invert):
        return Value(value.kind, builder.not_(value.llvm))
    if isinstance(operator, ast.USub):
        return Value(value.kind, builder.neg(value.llvm))
    raise TypeError(f"no operator {type(operator).__name__} in compiled code")


def compared(builder: Any, operator: ast.cmpop, a: Value, b: Value) -> Value:
    """Return whether a comparison of two numbers holds. Integers are compared as what they are, signed or not."""
    if type(operator) not in _COMPARISONS:
        raise TypeError(f"no comparison {type(operator).__name__} in compiled code")
    sign = _COMPARISONS[type(operator)]
    if a.kind.real or b.kind.real:
        a, b = converted(builder, a, F64), converted(builder, b, F64)
        compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        return Value(BOOL, compare(sign, a.llvm, b.llvm))
    if a.kind == b.kind and sign in ("==", "!="):
        return Value(BOOL, builder.icmp_unsigned(sign, a.llvm, b.llvm))
    narrow = all(v.kind.signed or v.kind.bits < 64 for v in (a, b))  # all values fit into a signed word
    if narrow:
        a, b = converted(builder, a, I64), converted(builder, b, I64)
        return Value(BOOL, builder.icmp_signed(sign, a.llvm, b.llvm))
    signed = [v for v in (a, b) if v.kind.signed]
    wide = [widened(builder, v).llvm for v in (a, b)]
    same = builder.icmp_unsigned(sign, *wide)
    if not signed or all(isinstance(v.llvm, ir.Constant) and v.llvm.constant >= 0 for v in signed):
        return Value(BOOL, same)
    # A negative number is below every unsigned one.
    negative = builder.icmp_signed("<", widened(builder, signed[0]).llvm, ir.Constant(I64.llvm, 0))
    holds = sign == "!=" or ((sign in ("<", "<=")) == a.kind.signed and sign != "==")
    return Value(BOOL, builder.select(negative, ir.Constant(BOOL.llvm, int(holds)), same))
