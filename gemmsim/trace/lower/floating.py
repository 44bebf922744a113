"""FFMA, FADD, FMUL, FMNMX, FSEL, MUFU, FCHK, FRND and doubles."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.semantics.conversion import CEIL, FLOOR, NEAREST, TRUNC
from gemmsim.trace.lower.context import Context, is_uniform
from gemmsim.trace.lower.integer import check_modifiers

ROUNDINGS = {"FLOOR": FLOOR, "CEIL": CEIL, "TRUNC": TRUNC}
_DIRECTIONS = {"RM": FLOOR, "RP": CEIL, "RZ": TRUNC}


def float32(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        directions = _DIRECTIONS if name == "ffma" else {}
        modifiers = check_modifiers(context, "FTZ", "SAT", *directions)
        d, *s = context.instruction.operands
        sources, uniform = tuple(context.single(o) for o in s), is_uniform(d)
        direction = next((directions[m] for m in directions if m in modifiers), NEAREST)
        if direction != NEAREST:
            if modifiers & {"FTZ", "SAT"}:
                raise context.unsupported("rounding with .FTZ or .SAT")
            context.emit("ffma_directed", (context.result(d),), sources, (direction,), uniform=uniform)
            return
        operation = name + ("_ftz" if "FTZ" in modifiers else "")
        if "SAT" not in modifiers:
            context.emit(operation, (context.result(d),), sources, uniform=uniform)
            return
        context.emit(operation, (context.temporary,), sources, uniform=True)
        context.emit("saturate", (context.result(d),), (context.scratch(0),), uniform=uniform)

    return emit


def float64(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        check_modifiers(context)
        d, *s = context.instruction.operands
        context.emit(name, (context.result(d),), tuple(context.double(o) for o in s))

    return emit


def choice(name: str) -> Callable[[Context], None]:
    """FMNMX and FSEL."""

    def emit(context: Context) -> None:
        modifiers = check_modifiers(context, "FTZ")
        d, a, b, p = context.instruction.operands
        sources = (context.single(a), context.single(b), context.predicate(p))
        context.emit(name, (context.result(d),), sources, (int("FTZ" in modifiers),), uniform=is_uniform(d))

    return emit


def mufu(context: Context) -> None:
    functions = ("RCP", "RSQ", "SQRT", "EX2", "LG2")
    modifiers = check_modifiers(context, *functions, "FTZ")
    function = next((m for m in functions if m in modifiers), None)
    if function is None:
        raise context.unsupported("MUFU function")
    d, a = context.instruction.operands
    context.emit(f"mufu_{function.lower()}", (context.result(d),), (context.single(a),))


def fchk(context: Context) -> None:
    check_modifiers(context)
    p, a, b = context.instruction.operands
    context.emit("fchk", (context.result(p),), (context.single(a), context.single(b)))


def frnd(context: Context) -> None:
    modifiers = check_modifiers(context, *ROUNDINGS)
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    context.emit("frnd", (context.result(d),), (context.single(a),), (mode,), uniform=is_uniform(d))


TABLE = {
    **{name: float32(name.lower()) for name in ("FADD", "FMUL", "FFMA")},
    **{"U" + name: float32(name.lower()) for name in ("FADD", "FMUL", "FFMA")},
    **{name: float64(name.lower()) for name in ("DADD", "DMUL", "DFMA")},
    "FMNMX": choice("fmnmx"),
    "FSEL": choice("fsel"),
    "MUFU": mufu,
    "FCHK": fchk,
    "FRND": frnd,
}
