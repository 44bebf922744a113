"""Lowers single and double precision instructions: arithmetic, choices, transcendentals and rounding."""

from __future__ import annotations

from dataclasses import replace

from gemmsim.isa.program import Operand
from gemmsim.isa.semantics.rounding import CEIL, FLOOR, NEAREST, TRUNC
from gemmsim.trace.lower.context import Context, Source, is_predicate

ROUNDINGS = {"FLOOR": FLOOR, "CEIL": CEIL, "TRUNC": TRUNC}
DIRECTIONS = {"RM": FLOOR, "RP": CEIL, "RZ": TRUNC}
_SIGN = 0x80000000
_ONE, _ONE_HIGH = 0x3F800000, 0x3FF00000  # 1.0, and the high word of a double's 1.0
_HALVES = ("F16", "BF16", "BF16_V2")


def float32(context: Context) -> None:
    """Lower FADD, FMUL and FFMA."""
    operation = context.operation
    modifiers = context.modifiers("FTZ", "SAT", "RN", *DIRECTIONS)
    d, *s = context.instruction.operands
    sources = [context.single(o) for o in s]
    direction = next((DIRECTIONS[m] for m in DIRECTIONS if m in modifiers), NEAREST)
    immediates: tuple[int, ...] = ()
    if direction != NEAREST:
        immediates = (direction, int("FTZ" in modifiers))
        if operation == "fadd":
            operation, sources = "ffma", [sources[0], Source(context.literal(_ONE)), sources[1]]
        operation += "_directed"
    elif "FTZ" in modifiers:
        operation += "_ftz"
    if "SAT" in modifiers:
        context.write(d, "saturate", (context.compute(0, operation, tuple(sources), immediates),))
    else:
        context.write(d, operation, tuple(sources), immediates)


def float64(context: Context) -> None:
    """Lower DADD, DMUL and DFMA."""
    modifiers = context.modifiers("RN", *DIRECTIONS)
    d, *s = context.instruction.operands
    sources = [_double_or_nan(context, o, 2 * number) for number, o in enumerate(s)]
    direction = next((DIRECTIONS[m] for m in DIRECTIONS if m in modifiers), NEAREST)
    operation = context.operation
    negated = [int(o.negate) for o in s]
    if direction != NEAREST and operation == "dadd":
        operation, sources = "dfma", [sources[0], Source(context.literal(0, _ONE_HIGH)), sources[1]]
        negated.insert(1, 0)
    flags = sum(flag << number for number, flag in enumerate(negated))
    if direction == NEAREST:
        context.write(d, operation, tuple(sources), (flags,))
    else:
        context.write(d, f"{operation}_directed", tuple(sources), (direction, flags))


def _double_or_nan(context: Context, operand: Operand, slot: int) -> Source:
    """Make the source of a double. Where its absolute value is wanted, it is computed into temporary row `slot`."""
    if not operand.absolute:
        return context.double(operand)
    given = context.double(replace(operand, absolute=False, negate=False))
    return replace(context.compute(slot, "dabs", (given,)), flip=_SIGN if operand.negate else 0)


def fsel(context: Context) -> None:
    modifiers = context.modifiers("FTZ")
    d, a, b, p = context.instruction.operands
    sources = (context.single(a), context.single(b), context.predicate(p))
    context.write(d, "fsel", sources, (int("FTZ" in modifiers),))


def fmnmx(context: Context) -> None:
    """Lower FMNMX, and from sm_100 on FMNMX3 with a third operand."""
    modifiers = context.modifiers("FTZ", "NAN", "XORSIGN")
    d, *rest = context.instruction.operands
    sources = [o for o in rest if not is_predicate(o)]
    predicates = [context.predicate(o) for o in rest if is_predicate(o)]
    how = (int("FTZ" in modifiers), int("NAN" in modifiers))
    value = context.single(sources[0])
    if len(sources) == 2 and "XORSIGN" not in modifiers:
        context.write(d, "fmnmx", (value, context.single(sources[1]), predicates[0]), how)
        return
    for number, source in enumerate(sources[1:]):
        smaller = predicates[min(number, len(predicates) - 1)]
        value = context.compute(0, "fmnmx", (value, context.single(source), smaller), how)
    if "XORSIGN" in modifiers:
        if len(sources) != 2:
            raise context.unsupported(".XORSIGN of three values")
        signs = [Source(context.row(o)) for o in sources]
        context.write(d, "xor_signs", (value, *signs))
    else:
        context.write(d, "mov", (value,))


def mufu(context: Context) -> None:
    functions = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H")
    modifiers = context.modifiers(*functions, *_HALVES, "FTZ")
    function = next((m for m in functions if m in modifiers), None)
    if function is None:
        raise context.unsupported("MUFU function")
    d, a = context.instruction.operands
    kind = next((m for m in _HALVES if m in modifiers), None)
    if kind is not None:
        if function not in ("EX2", "TANH"):
            raise context.unsupported(f"modifier .{kind}")
        source, high = half_of(context, a)
        context.write(d, f"mufu_{function.lower()}_{kind.partition('_')[0].lower()}", (source,), (high,))
    elif function.endswith("64H"):
        context.write(d, f"mufu_{function.lower()}", (context.single(a),))
    else:
        context.write(d, f"mufu_{function.lower()}", (context.single(a),))


def half_of(context: Context, operand: Operand) -> tuple[Source, int]:
    """Make the source of a conversion's or MUFU's half operand. Returns it, and 1 where its high half is meant.

    The signs of both halves are changed as the operand's `-x` and `|x|` say.
    """
    suffixes = {"": 0, "H0": 0, "H0_H0": 0, "H1": 1, "H1_H1": 1}
    if operand.suffix not in suffixes:
        raise context.unsupported(f"half operand '.{operand.suffix}'")
    keep, flip = 0x7FFF7FFF if operand.absolute else 0xFFFFFFFF, 0x80008000 if operand.negate else 0
    return Source(context.row(operand), keep, flip), suffixes[operand.suffix]


def fchk(context: Context) -> None:
    context.modifiers("DIVIDE")
    p, a, b = context.instruction.operands
    context.write(p, "fchk", (context.single(a), context.single(b)))


def frnd(context: Context) -> None:
    modifiers = context.modifiers(*ROUNDINGS, *_HALVES, "F32", "F64", "FTZ")
    d, a = context.instruction.operands
    mode = next((ROUNDINGS[m] for m in ROUNDINGS if m in modifiers), NEAREST)
    kind = next((m.partition("_")[0].lower() for m in _HALVES if m in modifiers), None)
    if "F64" in modifiers:
        context.write(d, "frnd_f64", (context.double(a),), (mode,))
        return
    if kind is None:
        source = context.single(a)
        if "FTZ" in modifiers:
            source = context.compute(0, "flush_f32", (source,))
        context.write(d, "frnd", (source,), (mode,))
        return
    half, high = half_of(context, a)
    whole = context.compute(0, "frnd", (context.compute(0, f"{kind}_to_f32", (half,), (high,)),), (mode,))
    context.write(d, f"pack_{kind}", (context.false, whole))
