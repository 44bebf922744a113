"""Lowers conversions between integers and floats, and the packing of two floats as halves."""

from __future__ import annotations

from collections.abc import Collection

from gemmsim.isa.program import Operand
from gemmsim.isa.semantics.rounding import NEAREST, ODD
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.floating import DIRECTIONS, ROUNDINGS, half_of

_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_HALVES = ("F16", "BF16")
FIELDS = {"": 0, "B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16}  # first bit of a part of a register


def _integer_source(context: Context, operand: Operand, kind: str) -> Source:
    """Make the source of an integer of type `kind` ("S8"): 32 bits, or a register pair where the type has 64."""
    if kind.endswith("64"):
        return context.wide(operand)
    if operand.negate or operand.suffix not in FIELDS:
        raise context.unsupported("operand form")
    bits = int(kind[1:])
    if bits == 32:
        return context.bits(operand)
    field = (FIELDS[operand.suffix], bits, int(kind[0] == "S"))
    return context.compute(0, "bit_field", (Source(context.row(operand)),), field)


def _pack(context: Context, d: Operand, kind: str, single: Source, mode: int) -> None:
    """Write a float32 to `d`, rounded to a half of type `kind` ("f16", "bf16") in its low half."""
    if mode == NEAREST:
        context.write(d, f"pack_{kind}", (context.false, single))
    else:
        context.write(d, f"pack_{kind}_directed", (context.false, single), (mode,))


def _half_kind(modifiers: Collection[str]) -> str | None:
    return next((m.lower() for m in _HALVES if m in modifiers), None)


def _direction(modifiers: Collection[str]) -> int:
    return next((DIRECTIONS[m] for m in DIRECTIONS if m in modifiers), NEAREST)


def i2f(context: Context) -> None:
    modifiers = context.modifiers(*_INTEGERS, *DIRECTIONS, "F64", "F32", *_HALVES)
    d, a = context.instruction.operands
    kind = next((m for m in _INTEGERS if m in modifiers), "S32")
    mode, half = _direction(modifiers), _half_kind(modifiers)
    source, signed = _integer_source(context, a, kind), int(kind[0] == "S")
    to_single = half is None and "F64" not in modifiers
    if to_single and mode == NEAREST and not kind.endswith("64"):
        context.write(d, f"i2f_{kind[0].lower()}32", (source,))
        return
    if not kind.endswith("64"):
        source = context.compute(2, "extend", (source,), (signed,))
    if to_single:
        context.write(d, "i2f_64", (source,), (signed, mode))
    elif half is not None:
        _pack(context, d, half, context.compute(0, "i2f_64", (source,), (signed, ODD)), mode)
    elif mode == NEAREST:
        context.write(d, "i2f_f64", (source,), (signed,))
    else:
        context.write(d, "i2f_f64_directed", (source,), (signed, mode))


def f2i(context: Context) -> None:
    """F2I converts a float to an integer. NaN gives 0 with .NTZ and otherwise the value whose top bit alone is set."""
    modifiers = context.modifiers("FTZ", "NTZ", *_INTEGERS, "F64", "F32", *_HALVES, *ROUNDINGS)
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    kind = next((m for m in _INTEGERS if m in modifiers), "S32")
    source = _double_source(context, a, modifiers)
    signed, bits = int(kind[0] == "S"), int(kind[1:])
    if bits == 64:
        if "NTZ" in modifiers:
            raise context.unsupported("modifier .NTZ")
        context.write(d, "f2i_64", (source,), (signed, mode))
        return
    nan = 0 if "NTZ" in modifiers else 0x80000000
    if bits == 32:
        context.write(d, "f2i_32", (source,), (signed, mode, nan))
    else:
        context.write(d, "saturate_integer", (_whole(context, source, mode, nan),), (bits, signed, 1))


def _double_source(context: Context, operand: Operand, modifiers: Collection[str]) -> Source:
    """Make a float64 of the operand of F2I, whose type `modifiers` names."""
    if "F64" in modifiers:
        return context.double(operand)
    half = _half_kind(modifiers)
    if half is not None:
        given, high = half_of(context, operand)
        source = context.compute(2, f"{half}_to_f32", (given,), (high,))
    else:
        source = context.single(operand)
    if "FTZ" in modifiers:
        source = context.compute(2, "flush_f32", (source,))
    return context.compute(0, "f32_to_f64", (source,))


def _whole(context: Context, double: Source, mode: int, nan: int) -> Source:
    return context.compute(0, "f2i_32", (double,), (1, mode, nan))


def f2ip(context: Context) -> None:
    """F2IP.U8.F32.NTZ Rd, Ra, Rb, Rc packs two floats as integers, Ra above Rb, below the low half of Rc."""
    modifiers = context.modifiers("U8", "S8", "F32", "NTZ", "FTZ", *ROUNDINGS)
    d, *s, c = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    signed, nan = int("S8" in modifiers), 0 if "NTZ" in modifiers else 0x80000000
    parts = []
    for number, operand in enumerate(s):
        whole = _whole(context, _double_source(context, operand, modifiers), mode, nan)
        parts.append(context.compute(4 + number, "saturate_integer", (whole,), (8, signed, 1)))
    context.write(d, "insert_pair", (*parts, context.bits(c)), (8,))


def _narrow(context: Context) -> tuple[int, int, int]:
    """Return of an I2I or I2IP: bits of the result, whether it is signed, and whether the source is."""
    context.modifiers(*_INTEGERS, "SAT")
    kinds = [m for m in context.instruction.modifiers if m in _INTEGERS]
    if "SAT" not in context.instruction.modifiers or len(kinds) != 2 or not kinds[1].endswith("32"):
        raise context.unsupported("conversion")
    return int(kinds[0][1:]), int(kinds[0][0] == "S"), int(kinds[1][0] == "S")


def i2i(context: Context) -> None:
    """I2I.U8.S32.SAT Rd, Ra clamps an integer to the range of a narrower type."""
    d, a = context.instruction.operands
    context.write(d, "saturate_integer", (context.bits(a),), _narrow(context))


def i2ip(context: Context) -> None:
    """I2IP.U8.S32.SAT Rd, Ra, Rb, Rc clamps two integers and packs them, Ra above Rb and, if bytes, below Rc's half."""
    d, a, b, c = context.instruction.operands
    how = _narrow(context)
    parts = [context.compute(i, "saturate_integer", (context.bits(o),), how) for i, o in enumerate((a, b))]
    context.write(d, "insert_pair", (*parts, context.bits(c)), (how[0],))


def f2fp(context: Context) -> None:
    """F2FP.F16.F32.PACK_AB Rd, Ra, Rb packs two floats as halves; .MERGE_C rounds one, above the high half of Rb;
    .TF32.F32.PACK_B rounds one to TF32."""
    modifiers = context.modifiers("F16", "BF16", "TF32", "F32", "PACK_AB", "PACK_B", "MERGE_C", "RELU", "RZ")
    d, *s = context.instruction.operands
    mode, relu = _direction(modifiers), "RELU" in modifiers
    if "TF32" in modifiers:
        (a,) = s
        context.write(d, "to_tf32", (context.single(a),), (mode, int(relu)))
        return
    a, b = s
    kind = "bf16" if "BF16" in modifiers else "f16"
    if "MERGE_C" in modifiers:
        pair = (context.false, context.single(a))
    else:
        pair = (context.single(a), context.single(b))
    name, immediates = (f"pack_{kind}", ()) if mode == NEAREST else (f"pack_{kind}_directed", (mode,))
    if not relu and "MERGE_C" not in modifiers:
        context.write(d, name, pair, immediates)
        return
    value = context.compute(0, name, pair, immediates)
    if "MERGE_C" not in modifiers:
        context.write(d, f"relu_{kind}", (value,))
        return
    if relu:
        value = context.compute(0, f"relu_{kind}", (value,))
    context.write(d, "prmt", (value, Source(context.literal(0x7610)), context.bits(b)))


def f2f(context: Context) -> None:
    modifiers = context.modifiers("F64", "F32", *_HALVES, "FTZ", *DIRECTIONS)
    to, *source = (m for m in context.instruction.modifiers if m in ("F64", "F32", *_HALVES))
    d, a = context.instruction.operands
    mode, kinds = _direction(modifiers), (to, *source)
    if "FTZ" in modifiers and kinds != ("F64", "F32"):
        raise context.unsupported("modifier .FTZ")
    if kinds == ("F32", "F64"):
        _to_single(context, d, context.double(a), mode)
    elif kinds == ("F64", "F32"):
        single = context.single(a)
        if "FTZ" in modifiers:
            single = context.compute(0, "flush_f32", (single,))
        context.write(d, "f32_to_f64", (single,))
    elif kinds in (("F16", "F32"), ("BF16", "F32")):
        _pack(context, d, to.lower(), context.single(a), mode)
    elif kinds in (("F16", "F64"), ("BF16", "F64")):
        double = context.double(a)
        odd = context.compute(0, "f64_to_f32_directed", (double,), (ODD,))
        if to != "F16":
            _pack(context, d, to.lower(), odd, mode)
            return
        half = context.compute(0, "pack_f16_directed", (context.false, odd), (mode,))
        context.write(d, "nan_to_half", (half, double))
    elif kinds in (("F64", "F16"), ("F64", "BF16"), ("F32", "F16"), ("F32", "BF16")):
        half, high = half_of(context, a)
        name = f"{kinds[1].lower()}_to_f32"
        if to == "F32":
            context.write(d, name, (half,), (high,))
        else:
            context.write(d, "f32_to_f64", (context.compute(0, name, (half,), (high,)),))
    else:
        raise context.unsupported("conversion")


def _to_single(context: Context, d: Operand, double: Source, mode: int) -> None:
    if mode == NEAREST:
        context.write(d, "f64_to_f32", (double,))
    else:
        context.write(d, "f64_to_f32_directed", (double,), (mode,))
