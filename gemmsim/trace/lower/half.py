"""Packed halves: HADD2, HMUL2, HFMA2, HMNMX2."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.integer import check_modifiers

_SIGNS = 0x80008000
# Halves that an operand's suffix picks for the low and the high result.
_SWIZZLES = {"": (0, 1), "H1_H0": (0, 1), "H0_H0": (0, 0), "H1_H1": (1, 1), "H0_H1": (1, 0)}
_ONES = {"f16": 0x3C003C00, "bf16": 0x3F803F80}


def half_source(context: Context, operand: Operand, slot: int) -> Source:
    """A row with the operand's two halves, swizzled and with their signs: temporary `slot` where it is computed."""
    if operand.suffix not in _SWIZZLES:
        raise context.unsupported(f"half operand '.{operand.suffix}'")
    low, high = _SWIZZLES[operand.suffix]
    keep, flip = ~_SIGNS if operand.absolute else ~0, _SIGNS if operand.negate else 0
    source = Source(context.row(operand), keep & 0xFFFFFFFF, flip)
    if (low, high) == (0, 1):
        return source
    context.emit("half_source", (context.scratch(slot).row,), (source,), (low, high), uniform=True)
    return context.scratch(slot)


def arithmetic(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        modifiers = check_modifiers(context, "MMA", "BF16", "BF16_V2", "F32")
        d, *s = context.instruction.operands
        kind = "bf16" if modifiers & {"BF16", "BF16_V2"} else "f16"
        if "F32" in modifiers:
            _widen(context, d, s, kind)
        elif _materialises_constant(s):
            context.emit("mov", (context.result(d),), (Source(context.row(s[2])),))
        else:
            sources = [half_source(context, o, i) for i, o in enumerate(s)]
            if name == "HADD2":
                sources.insert(1, Source(context.literal(_ONES[kind])))
            elif name == "HMUL2":
                sources.append(Source(context.literal(_SIGNS)))
            context.emit(f"hfma2_{kind}", (context.result(d),), tuple(sources))

    return emit


def _is_zero(operand: Operand) -> bool:
    return operand.kind == OperandKind.REGISTER and operand.index == ZERO


def _materialises_constant(s: list[Operand]) -> bool:
    """HFMA2 Rd, -RZ, RZ, x, y: the compiler's way to load a constant on the half pipe."""
    return len(s) == 3 and _is_zero(s[0]) and _is_zero(s[1]) and s[0].negate and s[2].kind == OperandKind.IMMEDIATE


def _widen(context: Context, d: Operand, s: list[Operand], kind: str) -> None:
    """HADD2.F32 Rd, -RZ, Ra.H0_H0: half to float32. Adding -0 changes nothing; any other sum is not known."""
    values = [o for o in s if not (_is_zero(o) and o.negate)]
    if len(s) != 2 or len(values) != 1 or values[0].suffix not in ("H0_H0", "H1_H1"):
        raise context.unsupported("HADD2.F32 of two values")
    source = half_source(context, values[0], 0)
    context.emit(f"{kind}_to_f32", (context.result(d),), (source,), (0,))


def hmnmx2(context: Context) -> None:
    modifiers = check_modifiers(context, "BF16_V2")
    kind = "bf16" if "BF16_V2" in modifiers else "f16"
    d, a, b, smaller = context.instruction.operands
    sources = [half_source(context, o, i) for i, o in enumerate((a, b))]
    results = []
    for half in (1, 0):
        for i, source in enumerate(sources):
            context.emit(f"{kind}_to_f32", (context.scratch(2 + i).row,), (source,), (half,), uniform=True)
        row = context.scratch(4 + half)
        operands = (context.scratch(2), context.scratch(3), context.predicate(smaller))
        context.emit("fmnmx", (row.row,), operands, (0,), uniform=True)
        results.append(row)
    context.emit(f"pack_{kind}", (context.result(d),), tuple(results))


TABLE = {
    **{name: arithmetic(name) for name in ("HADD2", "HMUL2", "HFMA2")},
    "HMNMX2": hmnmx2,
}
