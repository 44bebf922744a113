"""Lowers single and double precision instructions: arithmetic, choices, transcendentals and rounding."""

from __future__ import annotations

from gemmsim.isa.semantics.conversion import CEIL, FLOOR, NEAREST, TRUNC
from gemmsim.trace.lower.context import Context

ROUNDINGS = {"FLOOR": FLOOR, "CEIL": CEIL, "TRUNC": TRUNC}
DIRECTIONS = {"RM": FLOOR, "RP": CEIL, "RZ": TRUNC}


def float32(context: Context) -> None:
    """Lower FADD, FMUL and FFMA."""
    operation = context.operation
    directions = DIRECTIONS if operation == "ffma" else {}
    modifiers = context.modifiers("FTZ", "SAT", *directions)
    d, *s = context.instruction.operands
    sources = tuple(context.single(o) for o in s)
    direction = next((directions[m] for m in directions if m in modifiers), NEAREST)
    if direction != NEAREST:
        if modifiers & {"FTZ", "SAT"}:
            raise context.unsupported("rounding with .FTZ or .SAT")
        context.write(d, "ffma_directed", sources, (direction,))
        return
    operation += "_ftz" if "FTZ" in modifiers else ""
    if "SAT" in modifiers:
        context.write(d, "saturate", (context.compute(0, operation, sources),))
    else:
        context.write(d, operation, sources)


def float64(context: Context) -> None:
    """Lower DADD, DMUL and DFMA."""
    context.modifiers()
    d, *s = context.instruction.operands
    context.write(d, context.operation, tuple(context.double(o) for o in s))


def choice(context: Context) -> None:
    """Lower FMNMX and FSEL."""
    modifiers = context.modifiers("FTZ")
    d, a, b, p = context.instruction.operands
    sources = (context.single(a), context.single(b), context.predicate(p))
    context.write(d, context.operation, sources, (int("FTZ" in modifiers),))


def mufu(context: Context) -> None:
    functions = ("RCP", "RSQ", "SQRT", "EX2", "LG2")
    modifiers = context.modifiers(*functions, "FTZ")
    function = next((m for m in functions if m in modifiers), None)
    if function is None:
        raise context.unsupported("MUFU function")
    d, a = context.instruction.operands
    context.write(d, f"mufu_{function.lower()}", (context.single(a),))


def fchk(context: Context) -> None:
    context.modifiers()
    p, a, b = context.instruction.operands
    context.write(p, "fchk", (context.single(a), context.single(b)))


def frnd(context: Context) -> None:
    modifiers = context.modifiers(*ROUNDINGS)
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    context.write(d, "frnd", (context.single(a),), (mode,))
