"""Lowers conversions between integers and floats, and the packing of two floats as halves."""

from __future__ import annotations

from gemmsim.isa.program import Operand
from gemmsim.isa.semantics.conversion import NEAREST, ODD
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.floating import DIRECTIONS, ROUNDINGS
from gemmsim.trace.lower.half import half_source

_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_FIELDS = {"": 0, "B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}  # first bit of a part of a register


def _integer_source(context: Context, operand: Operand, kind: str) -> Source:
    """Make the source of an integer of type `kind` ("S8"): 32 bits, or a register pair where the type has 64."""
    if kind.endswith("64"):
        return context.wide(operand)
    if operand.negate or operand.suffix not in _FIELDS:
        raise context.unsupported("operand form")
    bits = int(kind[1:])
    if bits == 32:
        return context.bits(operand)
    field = (_FIELDS[operand.suffix], bits, int(kind[0] == "S"))
    return context.compute(0, "bit_field", (Source(context.row(operand)),), field)


def i2f(context: Context) -> None:
    modifiers = context.modifiers(*_INTEGERS, *DIRECTIONS, "F64", "F32", "F16")
    d, a = context.instruction.operands
    kind = next((m for m in _INTEGERS if m in modifiers), "S32")
    mode = next((DIRECTIONS[m] for m in DIRECTIONS if m in modifiers), NEAREST)
    source, signed = _integer_source(context, a, kind), int(kind[0] == "S")
    to_single = not modifiers & {"F64", "F16"}
    if to_single and mode == NEAREST and not kind.endswith("64"):
        context.write(d, f"i2f_{kind[0].lower()}32", (source,))
        return
    if not kind.endswith("64"):
        source = context.compute(2, "extend", (source,), (signed,))
    if to_single:
        context.write(d, "i2f_64", (source,), (signed, mode))
    elif mode != NEAREST:
        raise context.unsupported("rounding")
    elif "F64" in modifiers:
        context.write(d, "i2f_f64", (source,), (signed,))
    else:
        single = context.compute(0, "i2f_64", (source,), (signed, ODD))
        context.write(d, "pack_f16", (context.false, single))


def f2i(context: Context) -> None:
    """F2I converts a float to an integer. NaN gives 0 with .NTZ and otherwise the value whose top bit alone is set."""
    floats = ("F64", "F32", "F16")
    modifiers = context.modifiers("FTZ", "NTZ", "U32", "S32", "U64", "S64", *floats, *ROUNDINGS)
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    kind = next((m for m in ("U32", "U64", "S64") if m in modifiers), "S32")
    signed = int(kind[0] == "S")
    if "F64" in modifiers:
        source = context.double(a)
    elif "F16" in modifiers:
        source = context.compute(2, "f16_to_f32", (half_source(context, a, 2),), (0,))
    else:
        source = context.single(a)
    if "F64" not in modifiers:
        if "FTZ" in modifiers:
            source = context.compute(2, "flush_f32", (source,))
        source = context.compute(0, "f32_to_f64", (source,))
    if kind.endswith("64"):
        if "NTZ" in modifiers:
            raise context.unsupported("modifier .NTZ")
        context.write(d, "f2i_64", (source,), (signed, mode))
    else:
        context.write(d, "f2i_32", (source,), (signed, mode, 0 if "NTZ" in modifiers else 0x80000000))


def f2fp(context: Context) -> None:
    modifiers = context.modifiers("F16", "BF16", "F32", "PACK_AB")
    d, high, low = context.instruction.operands
    name = "pack_bf16" if "BF16" in modifiers else "pack_f16"
    context.write(d, name, (context.single(high), context.single(low)))


def f2f(context: Context) -> None:
    context.modifiers("F64", "F32", "F16", "BF16")
    kinds = context.instruction.modifiers
    d, a = context.instruction.operands
    if kinds == ("F32", "F64"):
        context.write(d, "f64_to_f32", (context.double(a),))
    elif kinds == ("F64", "F32"):
        context.write(d, "f32_to_f64", (context.single(a),))
    elif kinds in (("F16", "F32"), ("BF16", "F32")):
        context.write(d, f"pack_{kinds[0].lower()}", (context.false, context.single(a)))
    else:
        raise context.unsupported("conversion")
