"""Lowers moves between registers, special registers and constants, and exchanges between the lanes of a warp."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform
from gemmsim.trace.micro import FIRST_LANE, MATCH_ALL, MATCH_ANY, REDUCTIONS, SHUFFLES, VOTES

_WORDS = {"": 1, "64": 2, "128": 4}
_NARROW_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}


def mov(context: Context) -> None:
    modifiers = context.modifiers("64")
    d, a, *mask = context.instruction.operands
    if mask and mask[0].value != 0xF:
        raise context.unsupported("lane mask")
    if "64" in modifiers:
        context.write(d, "mov64", (context.wide(a),))
    else:
        context.write(d, "mov", (context.bits(a),))


def s2r(context: Context) -> None:
    context.modifiers()
    d, a = context.instruction.operands
    row = context.zero if a.name == "SRZ" else context.special(a.name)
    context.write(d, "mov", (Source(row),))


def cs2r(context: Context) -> None:
    modifiers = context.modifiers("32")
    d, a = context.instruction.operands
    if a.name.startswith(("SR_CLOCK", "SR_GLOBALTIMER")):
        raise context.unsupported(f"special register {a.name}: a functional run has no time")
    if a.name != "SRZ":
        raise context.unsupported(f"special register {a.name}")
    context.write(d, "mov" if "32" in modifiers else "mov64", (context.false,))


def ldc(context: Context) -> None:
    modifiers = context.modifiers(*_WORDS, *_NARROW_BYTES)
    size = next(iter(modifiers), "")
    d, a = context.instruction.operands
    if a.name:
        raise context.unsupported("bindless constant")
    if a.index == ZERO and a.uniform == ZERO:
        if size in _NARROW_BYTES:
            row = Source(context.constant(a.bank, a.value & ~3, 1))
            field = (8 * (a.value & 3), 8 * _NARROW_BYTES[size], int(size[0] == "S"))
            context.write(d, "bit_field", (row,), field)
            return
        result = context.result(d)
        for word in range(_WORDS[size]):
            row = Source(context.constant(a.bank, a.value + 4 * word, 1))
            to = result if result == context.sink else result + word
            context.emit("mov", (to,), (row,), uniform=is_uniform(d))
        return
    if size in _NARROW_BYTES:
        raise context.unsupported(f"modifier .{size} with an index")
    register = Source(context.row(Operand(OperandKind.REGISTER, a.index)))
    other = Source(context.row(Operand(OperandKind.UNIFORM_REGISTER, a.uniform)))
    where = context.compute(0, "address32", (register, other), (1, a.value))
    how = 4 * _WORDS[size] | micro.CONSTANT << micro.SPACE_SHIFT
    context.emit("access", (context.result(d),), (where,), uniform=is_uniform(d), access=how, detail=a.bank)


def r2ur(context: Context) -> None:
    """R2UR URd, Ra gives the value of the first active lane. The compiler uses it where all lanes agree."""
    context.modifiers("FILL")
    *written, d, a = context.instruction.operands
    if any(context.result(p) != context.sink for p in written):
        raise context.unsupported("predicate result")
    context.emit("exchange", (context.result(d),), (context.bits(a),), uniform=True, detail=FIRST_LANE)


def shfl(context: Context) -> None:
    modifiers = context.modifiers(*SHUFFLES)
    p, d, a, lane, clamp = context.instruction.operands
    sources = (context.bits(a), context.bits(lane), context.bits(clamp))
    results = (context.result(d), context.result(p), context.temporary)
    context.emit("exchange", results, sources, detail=next(SHUFFLES[m] for m in modifiers))


def _value_and_flag(context: Context, results: list[Operand]) -> tuple[int, int]:
    """Return two rows: that of the register and that of the predicate among `results`.

    The row that drops what is written to it (the sink) stands for one that is not among them.
    """
    value = next((o for o in results if not is_predicate(o)), None)
    flag = next((o for o in results if is_predicate(o)), None)
    return context.result(value) if value else context.sink, context.result(flag) if flag else context.sink


def vote(context: Context) -> None:
    modifiers = context.modifiers(*VOTES)
    *results, a = context.instruction.operands
    uniform = any(is_uniform(o) for o in results)
    vote_ = next(VOTES[m] for m in modifiers)
    context.emit("exchange", _value_and_flag(context, results), (context.predicate(a),), uniform=uniform, detail=vote_)


def match(context: Context) -> None:
    """MATCH.ANY Rd, Ra gives each lane the mask of the lanes with its value. MATCH.ALL Pd, Rd, Ra gives the mask of all
    active lanes where all agree, else 0."""
    modifiers = context.modifiers("ANY", "ALL")
    *results, a = context.instruction.operands
    how = MATCH_ALL if "ALL" in modifiers else MATCH_ANY
    context.emit("exchange", _value_and_flag(context, results), (context.bits(a),), detail=how)


def redux(context: Context) -> None:
    """REDUX URd, Ra combines the values of all active lanes, by AND where no modifier says how."""
    modifiers = context.modifiers("SUM", "OR", "XOR", "MIN", "MAX", "S32")
    operation = next((m for m in context.instruction.modifiers if m in REDUCTIONS), "AND")
    if operation in ("MIN", "MAX") and "S32" in modifiers:
        operation += ".S32"
    d, a = context.instruction.operands
    detail = REDUCTIONS[operation]
    context.emit("exchange", (context.result(d),), (context.bits(a),), uniform=is_uniform(d), detail=detail)
