"""Moves: MOV, S2R, CS2R, LDC, R2UR, SHFL, VOTE."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform
from gemmsim.trace.lower.integer import check_modifiers

_WORDS = {"": 1, "64": 2, "128": 4}
SHUFFLES = {"IDX": 0, "UP": 1, "DOWN": 2, "BFLY": 3}
VOTES = {"ALL": 0, "ANY": 1, "EQ": 2}


def _shifted(row: int, sink: int, words: int) -> int:
    return row if row == sink else row + words


def mov(context: Context) -> None:
    modifiers = check_modifiers(context, "64")
    d, a, *mask = context.instruction.operands
    if mask and mask[0].value != 0xF:
        raise context.unsupported("lane mask")
    if "64" in modifiers:
        context.emit("mov64", (context.result(d),), (context.wide(a),), uniform=is_uniform(d))
    else:
        context.emit("mov", (context.result(d),), (context.bits(a),), uniform=is_uniform(d))


def s2r(context: Context) -> None:
    check_modifiers(context)
    d, a = context.instruction.operands
    row = context.zero if a.name == "SRZ" else context.special(a.name)
    context.emit("mov", (context.result(d),), (Source(row),), uniform=is_uniform(d))


def cs2r(context: Context) -> None:
    modifiers = check_modifiers(context, "32")
    d, a = context.instruction.operands
    if a.name.startswith("SR_CLOCK") or a.name.startswith("SR_GLOBALTIMER"):
        raise context.unsupported(f"special register {a.name}: a functional run has no time")
    if a.name != "SRZ":
        raise context.unsupported(f"special register {a.name}")
    context.emit("mov" if "32" in modifiers else "mov64", (context.result(d),), (Source(context.zero),))


def ldc(context: Context) -> None:
    modifiers = check_modifiers(context, "64", "128")
    size = next(iter(modifiers), "")
    d, a = context.instruction.operands
    uniform, result = is_uniform(d), context.result(d)
    if a.index == ZERO and a.uniform == ZERO:
        for word in range(_WORDS[size]):
            row = context.constant(a.bank, a.value + 4 * word, 1)
            context.emit("mov", (_shifted(result, context.sink, word),), (Source(row),), uniform=uniform)
        return
    register = Source(context.row(Operand(OperandKind.REGISTER, a.index)))
    other = Source(context.row(Operand(OperandKind.UNIFORM_REGISTER, a.uniform)))
    context.emit("address32", (context.temporary,), (register, other), (1, a.value), uniform=uniform)
    sources = (Source(context.temporary),)
    context.emit("load_constant", (result,), sources, uniform=uniform, access=4 * _WORDS[size], detail=a.bank)


def r2ur(context: Context) -> None:
    """R2UR URd, Ra: the value of the first active lane (the compiler uses it where all lanes agree)."""
    check_modifiers(context, "FILL")
    *written, d, a = context.instruction.operands
    if any(context.result(p) != context.sink for p in written):
        raise context.unsupported("predicate result")
    context.emit("first_lane", (context.result(d),), (context.bits(a),))


def shfl(context: Context) -> None:
    modifiers = check_modifiers(context, *SHUFFLES)
    p, d, a, lane, clamp = context.instruction.operands
    sources = (context.bits(a), context.bits(lane), context.bits(clamp))
    kind = next(SHUFFLES[m] for m in modifiers)
    context.emit("shuffle", (context.result(d), context.result(p)), sources, detail=kind)


def vote(context: Context) -> None:
    modifiers = check_modifiers(context, *VOTES)
    *results, a = context.instruction.operands
    value = next((o for o in results if not is_predicate(o)), None)
    flag = next((o for o in results if is_predicate(o)), None)
    rows = (context.result(value) if value else context.sink, context.result(flag) if flag else context.sink)
    uniform = int(any(is_uniform(o) for o in results))
    kind = next(VOTES[m] for m in modifiers)
    context.emit("vote", rows, (context.predicate(a),), (uniform,), detail=kind)


TABLE = {
    "MOV": mov,
    "UMOV": mov,
    "S2R": s2r,
    "S2UR": s2r,
    "CS2R": cs2r,
    "LDC": ldc,
    "ULDC": ldc,
    "LDCU": ldc,
    "R2UR": r2ur,
    "SHFL": shfl,
    "VOTE": vote,
    "VOTEU": vote,
}
