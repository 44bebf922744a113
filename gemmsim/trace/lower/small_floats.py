"""Lowers F2FP, which packs and unpacks floats of 16 and fewer bits."""

from __future__ import annotations

from gemmsim.isa.program import Operand
from gemmsim.isa.semantics.small import FORMATS
from gemmsim.trace.lower import conversion
from gemmsim.trace.lower.context import Context, Source

_FORMATS = {**{name.upper(): name for name in FORMATS}, "E8": "e8"}
_PACK, _NARROW, _WIDEN = _FORMS = "PACK_AB_MERGE_C", "UNPACK_B_MERGE_C", "UNPACK_B"
_BYTES, _HALVES = ("", "B0", "B1", "B2", "B3"), ("", "H0", "H1")


def f2fp(context: Context) -> None:
    """Lower F2FP; where a float of 8 or fewer bits is packed or unpacked, here.

    F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C Rd, Ra, Rb, Rc packs Ra and Rb below the low half of Rc.
    F2FP.SATFINITE.E4M3.F16.UNPACK_B_MERGE_C Rd, Ra, Rc packs the two halves of Ra, likewise.
    F2FP.F16.E4M3.UNPACK_B Rd, Ra[.H1] makes two halves of two bytes.
    E2M1 takes four bits: two of them are packed below 24 bits of Rc, and those of a byte (Ra.B1) are unpacked.
    F2FP[.SATFINITE].E8.F32.PACK_AB_MERGE_C.RP packs powers of two, and F2FP.BF16.E8.UNPACK_B unpacks them.
    """
    found = [_FORMATS[m] for m in context.instruction.modifiers if m in _FORMATS]
    if not found:
        conversion.f2fp(context)
        return
    modifiers = context.modifiers(*_FORMATS, "SATFINITE", "RELU", "F32", "F16", "BF16", "RZ", "RP", *_FORMS)
    if len(found) > 1:
        raise context.unsupported("conversion")
    (format_,) = found
    if _WIDEN in modifiers:
        _unpack(context, modifiers, format_)
        return
    relu, directions = int("RELU" in modifiers), modifiers & {"RZ", "RP"}
    if format_ == "e8":
        if relu or len(directions) != 1:
            raise context.unsupported("conversion")
        how: tuple[int, ...] = (int("RP" in directions), int("SATFINITE" in modifiers))
    elif "SATFINITE" not in modifiers or directions:
        raise context.unsupported("conversion")
    else:
        how = (relu,)
    d, *operands, merged = context.instruction.operands
    context.write(d, f"pack_{format_}", (*_pair(context, modifiers, operands), context.bits(merged)), how)


def _pair(context: Context, modifiers: set[str], operands: list[Operand]) -> tuple[Source, Source]:
    """Return the two numbers to pack as float32, the upper one first."""
    if _PACK in modifiers:
        high, low = operands
        return context.single(high), context.single(low)
    (pair,) = operands
    kind = "bf16_to_f32" if "BF16" in modifiers else "f16_to_f32"
    upper, lower = (context.compute(2 * n, kind, (context.bits(pair),), (n,)) for n in (1, 0))
    return upper, lower


def _unpack(context: Context, modifiers: set[str], format_: str) -> None:
    d, a = context.instruction.operands
    to, relu = ("BF16", ()) if format_ == "e8" else ("F16", (int("RELU" in modifiers),))
    if not modifiers <= {_WIDEN, to, format_.upper(), *(["RELU"] if relu else [])}:
        raise context.unsupported("conversion")
    if a.suffix not in (_BYTES if format_ == "e2m1" else _HALVES) or a.negate:
        raise context.unsupported("operand form")
    context.write(d, f"unpack_{format_}", (Source(context.row(a)),), (conversion.FIELDS[a.suffix], *relu))
