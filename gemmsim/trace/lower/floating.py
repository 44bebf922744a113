"""FFMA, FADD, FMUL, FMNMX, FSEL, MUFU, packed halves, doubles and conversions."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import Context, Source, is_uniform
from gemmsim.trace.lower.integer import check_modifiers

_ROUNDING = {"FLOOR": 1, "CEIL": 2, "TRUNC": 3}


def float32(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        modifiers = check_modifiers(context, "FTZ", "SAT")
        d, *s = context.instruction.operands
        suffix = "".join("_" + m.lower() for m in ("FTZ", "SAT") if m in modifiers)
        context.emit(name + suffix, (context.result(d),), tuple(context.single(o) for o in s), uniform=is_uniform(d))

    return emit


def float64(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        check_modifiers(context)
        d, *s = context.instruction.operands
        context.emit(name, (context.result(d),), tuple(context.double(o) for o in s))

    return emit


def fmnmx(context: Context) -> None:
    modifiers = check_modifiers(context, "FTZ")
    d, a, b, p = context.instruction.operands
    sources = (context.single(a), context.single(b), context.predicate(p))
    context.emit("fmnmx", (context.result(d),), sources, (int("FTZ" in modifiers),), uniform=is_uniform(d))


def fsel(context: Context) -> None:
    modifiers = check_modifiers(context, "FTZ")
    d, a, b, p = context.instruction.operands
    sources = (context.single(a), context.single(b), context.predicate(p))
    context.emit("fsel", (context.result(d),), sources, (int("FTZ" in modifiers),), uniform=is_uniform(d))


def mufu(context: Context) -> None:
    functions = ("RCP", "RSQ", "SQRT", "EX2", "LG2")
    modifiers = check_modifiers(context, *functions, "FTZ")
    function = next((m for m in functions if m in modifiers), None)
    if function is None:
        raise context.unsupported("MUFU function")
    d, a = context.instruction.operands
    context.emit(f"mufu_{function.lower()}", (context.result(d),), (context.single(a),), (int("FTZ" in modifiers),))


def half2(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        modifiers = check_modifiers(context, "MMA", "BF16", "BF16_V2")
        kind = "bf16" if modifiers & {"BF16", "BF16_V2"} else "f16"
        d, *s = context.instruction.operands
        if _materialises_constant(s):
            context.emit("mov", (context.result(d),), (Source(context.row(s[2])),))
            return
        sources = tuple(_half_source(context, o, i) for i, o in enumerate(s))
        context.emit(f"{name}_{kind}", (context.result(d),), sources)

    return emit


def _materialises_constant(s: list[Operand]) -> bool:
    """HFMA2 Rd, -RZ, RZ, x, y: the compiler's way to load a constant on the half pipe."""
    zeros = all(o.kind == OperandKind.REGISTER and o.index == ZERO for o in s[:2])
    return len(s) == 3 and zeros and s[0].negate and s[2].kind == OperandKind.IMMEDIATE


def _half_source(context: Context, operand: Operand, slot: int) -> Source:
    halves = {"": (0, 1), "H1_H0": (0, 1), "H0_H0": (0, 0), "H1_H1": (1, 1), "H0_H1": (1, 0)}
    if operand.suffix not in halves or operand.absolute:
        raise context.unsupported(f"half operand '.{operand.suffix}'")
    low, high = halves[operand.suffix]
    source = Source(context.row(operand))
    if (low, high) == (0, 1):
        return Source(source.row, flip=0x80008000 if operand.negate else 0)
    row = context.temporary + slot
    context.emit("half_source", (row,), (source,), (low, high, 0x80008000 if operand.negate else 0), uniform=True)
    return Source(row)


def i2f(context: Context) -> None:
    modifiers = check_modifiers(context, "U32", "S32", "RP", "F64")
    d, a = context.instruction.operands
    if "RP" in modifiers:
        # Division's reciprocal estimate rounds up (I2F.U32.RP); the sequence corrects any estimate near enough.
        raise context.unsupported("rounding .RP")
    kind = "u32" if "U32" in modifiers else "s32"
    name = f"i2f_f64_{kind}" if "F64" in modifiers else f"i2f_{kind}"
    context.emit(name, (context.result(d),), (context.bits(a),), uniform=is_uniform(d))


def f2i(context: Context) -> None:
    modifiers = check_modifiers(context, "FTZ", "U32", "S32", "NTZ", *_ROUNDING)
    d, a = context.instruction.operands
    mode = next((_ROUNDING[m] for m in _ROUNDING if m in modifiers), 0)
    kind = "u32" if "U32" in modifiers else "s32"
    context.emit(f"f2i_{kind}", (context.result(d),), (context.single(a),), (mode,), uniform=is_uniform(d))


def f2fp(context: Context) -> None:
    modifiers = check_modifiers(context, "F16", "BF16", "F32", "PACK_AB", "RN", "PACK_B")
    d, high, low = context.instruction.operands
    name = "pack_bf16" if "BF16" in modifiers else "pack_f16"
    context.emit(name, (context.result(d),), (context.single(high), context.single(low)))


def f2f(context: Context) -> None:
    kinds = tuple(m for m in context.instruction.modifiers if m in ("F64", "F32", "F16"))
    check_modifiers(context, "F64", "F32", "F16")
    d, a = context.instruction.operands
    if kinds == ("F32", "F64"):
        context.emit("f64_to_f32", (context.result(d),), (context.double(a),))
    elif kinds == ("F64", "F32"):
        context.emit("f32_to_f64", (context.result(d),), (context.single(a),))
    elif kinds == ("F16", "F32"):
        context.emit("f32_to_f16", (context.result(d),), (context.single(a),))
    else:
        raise context.unsupported("conversion")


TABLE = {
    **{name: float32(name.lower()) for name in ("FADD", "FMUL", "FFMA")},
    **{"U" + name: float32(name.lower()) for name in ("FADD", "FMUL", "FFMA")},
    **{name: float64(name.lower()) for name in ("DADD", "DMUL", "DFMA")},
    **{name: half2(name.lower()) for name in ("HADD2", "HMUL2", "HFMA2")},
    "FMNMX": fmnmx,
    "FSEL": fsel,
    "MUFU": mufu,
    "I2F": i2f,
    "I2FP": i2f,
    "UI2FP": i2f,
    "F2I": f2i,
    "F2FP": f2fp,
    "F2F": f2f,
}
