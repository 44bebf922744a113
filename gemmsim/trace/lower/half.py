"""Lowers packed half precision instructions, which operate on the two halves in a register."""

from __future__ import annotations

from dataclasses import replace

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import ALL, Context, Source

_SIGNS = 0x80008000
# By the operand's suffix: which half of it goes to the low half and to the high half (0 the low one, 1 the high one).
_SWIZZLES = {"": (0, 1), "H1_H0": (0, 1), "H0_H0": (0, 0), "H1_H1": (1, 1), "H0_H1": (1, 0)}
_ONES = {"f16": 0x3C003C00, "bf16": 0x3F803F80}


def half_source(context: Context, operand: Operand, slot: int) -> Source:
    """Make the source of an operand's two halves, swizzled and with their signs.

    Where a swizzle must be computed, its result is in temporary row `slot`.
    """
    if operand.suffix not in _SWIZZLES:
        raise context.unsupported(f"half operand '.{operand.suffix}'")
    swizzle = _SWIZZLES[operand.suffix]
    keep, flip = ~_SIGNS if operand.absolute else ~0, _SIGNS if operand.negate else 0
    source = Source(context.row(operand), keep & ALL, flip)
    return source if swizzle == (0, 1) else context.compute(slot, "half_source", (source,), swizzle)


def arithmetic(context: Context) -> None:
    """Lower HADD2, HMUL2 and HFMA2 as HFMA2: a sum is a * 1 + b, and a product a * b + -0, signs of zeros included."""
    modifiers = context.modifiers("MMA", "BF16", "BF16_V2", "F32", "FTZ", "SAT", "RELU", "OOB")
    d, *s = context.instruction.operands
    kind = "bf16" if modifiers & {"BF16", "BF16_V2"} else "f16"
    if "F32" in modifiers:
        _widen(context, d, s, kind)
        return
    if _loads_constant(s):
        context.write(d, "mov", (Source(context.row(s[2])),))
        return
    sources = [half_source(context, o, i) for i, o in enumerate(s)]
    if context.operation == "hadd2":
        sources.insert(1, Source(context.literal(_ONES[kind])))
    elif context.operation == "hmul2":
        sources.append(Source(context.literal(_SIGNS)))
    if "FTZ" in modifiers and kind != "f16":
        raise context.unsupported("modifier .FTZ")
    operation = f"hfma2_{kind}{'_ftz' if 'FTZ' in modifiers else ''}"
    if modifiers & {"SAT", "RELU"}:
        last = f"{'saturate' if 'SAT' in modifiers else 'relu'}_{kind}"
        context.write(d, last, (context.compute(3, operation, tuple(sources)),))
    else:
        context.write(d, operation, tuple(sources))


def _is_zero(operand: Operand) -> bool:
    return operand.kind == OperandKind.REGISTER and operand.index == ZERO


def _loads_constant(s: list[Operand]) -> bool:
    """Whether the sources `s` are those of HFMA2 Rd, -RZ, RZ, x, y, which the compiler uses to load a constant."""
    return len(s) == 3 and _is_zero(s[0]) and _is_zero(s[1]) and s[0].negate and s[2].kind == OperandKind.IMMEDIATE


def _widen(context: Context, d: Operand, s: list[Operand], kind: str) -> None:
    """HADD2.F32 Rd, -RZ, Ra.H0_H0 widens a half to float32. Adding -0 changes nothing; no other sum is known."""
    values = [o for o in s if not (_is_zero(o) and o.negate)]
    if len(s) != 2 or len(values) != 1 or values[0].suffix not in ("H0_H0", "H1_H1"):
        raise context.unsupported("HADD2.F32 of two values")
    context.write(d, f"{kind}_to_f32_canonical", (half_source(context, values[0], 0),), (0,))


def hmnmx2(context: Context) -> None:
    modifiers = context.modifiers("BF16_V2", "FTZ", "NAN", "XORSIGN")
    kind = "bf16" if "BF16_V2" in modifiers else "f16"
    d, a, b, smaller = context.instruction.operands
    sources = [half_source(context, o, i) for i, o in enumerate((a, b))]
    if "FTZ" in modifiers:
        sources = [context.compute(i, "flush_f16", (source,)) for i, source in enumerate(sources)]
    how = (0, int("NAN" in modifiers))
    results = []
    for half in (1, 0):
        wide = [context.compute(2 + i, f"{kind}_to_f32", (source,), (half,)) for i, source in enumerate(sources)]
        results.append(context.compute(4 + half, "fmnmx", (*wide, context.predicate(smaller)), how))
    if "XORSIGN" not in modifiers:
        context.write(d, f"pack_{kind}", tuple(results))
        return
    value = context.compute(4, f"pack_{kind}", tuple(results))
    signs = [half_source(context, replace(o, absolute=False, negate=False), i) for i, o in enumerate((a, b))]
    context.write(d, f"xor_signs_{kind}", (value, *signs))
