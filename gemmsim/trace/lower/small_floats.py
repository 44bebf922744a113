"""Lowers F2FP, which packs and unpacks floats of 16 and fewer bits."""

from __future__ import annotations

from gemmsim.isa.semantics.small import FORMATS
from gemmsim.trace.lower import conversion
from gemmsim.trace.lower.context import Context, Source

_FORMATS = {name.upper(): name for name in FORMATS}
_PACK, _NARROW, _WIDEN = "PACK_AB_MERGE_C", "UNPACK_B_MERGE_C", "UNPACK_B"


def f2fp(context: Context) -> None:
    """Lower F2FP; where a float of 8 or 6 bits is packed or unpacked, here.

    F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C Rd, Ra, Rb, Rc packs Ra and Rb below the low half of Rc.
    F2FP.SATFINITE.E4M3.F16.UNPACK_B_MERGE_C Rd, Ra, Rc packs the two halves of Ra, likewise.
    F2FP.F16.E4M3.UNPACK_B Rd, Ra[.H1] makes two halves of two bytes.
    """
    found = [_FORMATS[m] for m in context.instruction.modifiers if m in _FORMATS]
    if not found:
        conversion.f2fp(context)
        return
    modifiers = context.modifiers(*_FORMATS, "SATFINITE", "RELU", "F32", "F16", "BF16", _PACK, _NARROW, _WIDEN)
    relu, operands = int("RELU" in modifiers), context.instruction.operands
    if _WIDEN in modifiers and modifiers <= {_WIDEN, "F16", "RELU", found[0].upper()}:
        d, a = operands
        if a.suffix not in ("", "H0", "H1") or a.negate:
            raise context.unsupported("operand form")
        context.write(d, f"unpack_{found[0]}", (Source(context.row(a)),), (16 * (a.suffix == "H1"), relu))
        return
    if "SATFINITE" not in modifiers or _WIDEN in modifiers:
        raise context.unsupported("conversion")
    if _PACK in modifiers:
        d, high, low, merged = operands
        sources = (context.single(high), context.single(low))
    else:
        d, pair, merged = operands
        kind = "bf16_to_f32" if "BF16" in modifiers else "f16_to_f32"
        halves = [context.compute(2 * n, kind, (context.bits(pair),), (n,)) for n in (1, 0)]
        sources = (halves[0], halves[1])
    context.write(d, f"pack_{found[0]}", (*sources, context.bits(merged)), (relu,))
