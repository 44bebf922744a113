"""I2F, F2I, F2F, F2FP: conversions and packing."""

from __future__ import annotations

from gemmsim.isa.program import Operand
from gemmsim.isa.semantics.conversion import CEIL, FLOOR, NEAREST, ODD, TRUNC
from gemmsim.trace.lower.context import Context, Source, is_uniform
from gemmsim.trace.lower.floating import ROUNDINGS
from gemmsim.trace.lower.half import half_source
from gemmsim.trace.lower.integer import check_modifiers

_DIRECTIONS = {"RM": FLOOR, "RP": CEIL, "RZ": TRUNC}
_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_FIELDS = {"": 0, "B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}  # first bit of a part of a register


def _integer_source(context: Context, operand: Operand, kind: str) -> Source:
    """The operand as 32 bits, or as a pair where its type has 64."""
    if kind.endswith("64"):
        return context.wide(operand)
    if operand.negate or operand.suffix not in _FIELDS:
        raise context.unsupported("operand form")
    bits = int(kind[1:])
    if bits == 32:
        return context.bits(operand)
    field = (_FIELDS[operand.suffix], bits, int(kind[0] == "S"))
    context.emit("bit_field", (context.scratch(0).row,), (Source(context.row(operand)),), field, uniform=True)
    return context.scratch(0)


def i2f(context: Context) -> None:
    modifiers = check_modifiers(context, *_INTEGERS, *_DIRECTIONS, "F64", "F32", "F16")
    d, a = context.instruction.operands
    kind = next((m for m in _INTEGERS if m in modifiers), "S32")
    mode = next((_DIRECTIONS[m] for m in _DIRECTIONS if m in modifiers), NEAREST)
    source, signed, uniform = _integer_source(context, a, kind), int(kind[0] == "S"), is_uniform(d)
    to_single = not modifiers & {"F64", "F16"}
    if to_single and mode == NEAREST and not kind.endswith("64"):
        context.emit(f"i2f_{kind[0].lower()}32", (context.result(d),), (source,), uniform=uniform)
        return
    if not kind.endswith("64"):
        context.emit("extend", (context.scratch(2).row,), (source,), (signed,), uniform=True)
        source = context.scratch(2)
    if to_single:
        context.emit("i2f_64", (context.result(d),), (source,), (signed, mode), uniform=uniform)
    elif mode != NEAREST:
        raise context.unsupported("rounding")
    elif "F64" in modifiers:
        context.emit("i2f_f64", (context.result(d),), (source,), (signed,), uniform=uniform)
    else:
        context.emit("i2f_64", (context.temporary,), (source,), (signed, ODD), uniform=True)
        narrow = (Source(context.zero), context.scratch(0))
        context.emit("pack_f16", (context.result(d),), narrow, uniform=uniform)


def f2i(context: Context) -> None:
    """NaN gives 0 with .NTZ, else the value whose top bit alone is set."""
    floats = ("F64", "F32", "F16")
    modifiers = check_modifiers(context, "FTZ", "NTZ", "U32", "S32", "U64", "S64", *floats, *ROUNDINGS)
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    kind = next((m for m in ("U32", "U64", "S64") if m in modifiers), "S32")
    signed, uniform, source = int(kind[0] == "S"), is_uniform(d), None
    if "F64" in modifiers:
        source = context.double(a)
    elif "F16" in modifiers:
        halves = half_source(context, a, 2)
        context.emit("f16_to_f32", (context.scratch(2).row,), (halves,), (0,), uniform=True)
        source = context.scratch(2)
    else:
        source = context.single(a)
    if "F64" not in modifiers:
        if "FTZ" in modifiers:
            context.emit("flush_f32", (context.scratch(2).row,), (source,), uniform=True)
            source = context.scratch(2)
        context.emit("f32_to_f64", (context.temporary,), (source,), uniform=True)
        source = context.scratch(0)
    if kind.endswith("64"):
        if "NTZ" in modifiers:
            raise context.unsupported("modifier .NTZ")
        context.emit("f2i_64", (context.result(d),), (source,), (signed, mode), uniform=uniform)
    else:
        nan = 0 if "NTZ" in modifiers else 0x80000000
        context.emit("f2i_32", (context.result(d),), (source,), (signed, mode, nan), uniform=uniform)


def f2fp(context: Context) -> None:
    modifiers = check_modifiers(context, "F16", "BF16", "F32", "PACK_AB")
    d, high, low = context.instruction.operands
    name = "pack_bf16" if "BF16" in modifiers else "pack_f16"
    context.emit(name, (context.result(d),), (context.single(high), context.single(low)))


def f2f(context: Context) -> None:
    check_modifiers(context, "F64", "F32", "F16", "BF16")
    kinds = context.instruction.modifiers
    d, a = context.instruction.operands
    if kinds == ("F32", "F64"):
        context.emit("f64_to_f32", (context.result(d),), (context.double(a),))
    elif kinds == ("F64", "F32"):
        context.emit("f32_to_f64", (context.result(d),), (context.single(a),))
    elif kinds in (("F16", "F32"), ("BF16", "F32")):
        context.emit(f"pack_{kinds[0].lower()}", (context.result(d),), (Source(context.zero), context.single(a)))
    else:
        raise context.unsupported("conversion")


TABLE = {
    "I2F": i2f,
    "I2FP": i2f,
    "UI2F": i2f,
    "UI2FP": i2f,
    "F2I": f2i,
    "F2FP": f2fp,
    "F2F": f2f,
}
