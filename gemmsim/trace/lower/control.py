"""Branches, calls, convergence barriers, block barriers, and what has no effect on a functional run."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.program import INSTRUCTION_BYTES, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate
from gemmsim.trace.lower.integer import check_modifiers

ALL_THREADS = 0xFFFFFFFF


def nop(context: Context) -> None:
    """Scoreboard waits, fences and hints: the executor runs each warp's instructions in order and completes each, also
    asynchronous copies, so nothing is left to do."""
    context.emit("nop")


def _condition(context: Context) -> Source:
    """The predicate operand of a branch or BREAK; true where it has none."""
    conditions = [o for o in context.instruction.operands if is_predicate(o)]
    if len(conditions) > 1:
        raise context.unsupported("branch condition")
    return context.predicate(conditions[0]) if conditions else context.true


def bra(context: Context) -> None:
    modifiers = check_modifiers(context, "U", "DIV", "CONV")
    if not modifiers & {"DIV", "CONV"}:
        context.emit("branch", (), (_condition(context),))
        return
    # BRA.DIV leaves for the divergent copy of a warp-synchronous region where not all threads that the mask names (all
    # of the warp on sm_75) are together; BRA.CONV branches where they are.
    named = [o for o in context.instruction.operands if o.kind != OperandKind.TARGET]
    mask = context.bits(named[0]) if named else Source(context.literal(ALL_THREADS))
    context.emit("branch_divergent", (), (mask,), detail=int("CONV" in modifiers))


def brx(context: Context) -> None:
    """BRX Ra -d: to Ra - d from the next instruction."""
    check_modifiers(context)
    register, displacement = context.instruction.operands[:2]
    base = context.instruction.offset + INSTRUCTION_BYTES + displacement.value
    context.emit("jump", (), (context.bits(register),), (base,))


def call(context: Context) -> None:
    """CALL.REL.NOINC: a jump; the code before it has put the return address into a register. A register holds the
    callee's offset from the function that the label names."""
    modifiers = check_modifiers(context, "REL", "NOINC")
    *registers, target = context.instruction.operands
    if "REL" not in modifiers or target.kind != OperandKind.TARGET:
        raise context.unsupported("call form")
    if registers:
        context.emit("jump", (), (context.bits(registers[0]),), (target.value,))
    else:
        context.emit("branch", (), (context.true,))


def ret(context: Context) -> None:
    """RET.REL.NODEC Ra `(f): to the offset Ra from the function f."""
    modifiers = check_modifiers(context, "REL", "NODEC")
    register, target = context.instruction.operands
    if "REL" not in modifiers or target.kind != OperandKind.TARGET:
        raise context.unsupported("return form")
    context.emit("jump", (), (context.bits(register),), (target.value,))


def exit_(context: Context) -> None:
    check_modifiers(context)
    if context.instruction.operands:
        raise context.unsupported("operand form")
    context.emit("exit")


def convergence(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        check_modifiers(context, "RECONVERGENT", "RELIABLE")
        barrier = next(o for o in context.instruction.operands if o.kind == OperandKind.BARRIER)
        context.emit(name, (context.result(barrier),), (_condition(context),))

    return emit


def bmov(context: Context) -> None:
    """Save and restore of convergence barriers around calls."""
    modifiers = check_modifiers(context, "32", "CLEAR")
    d, a = context.instruction.operands
    context.emit("mov", (context.result(d),), (context.bits(a),))
    if "CLEAR" in modifiers:
        context.emit("mov", (context.result(a),), (Source(context.zero),))


def warpsync(context: Context) -> None:
    """WARPSYNC mask | .ALL waits for the named threads. WARPSYNC.COLLECTIVE mask, label: all of them execute what
    follows together, wherever they come from; ENDCOLLECTIVE sends each on to its own label."""
    modifiers = check_modifiers(context, "ALL", "COLLECTIVE")
    operands = list(context.instruction.operands)
    if "COLLECTIVE" in modifiers:
        mask, label = operands
        context.emit("mov", (context.resume,), (Source(context.literal(label.value)),))
        context.emit("warpsync", (), (context.bits(mask),), detail=1)
        return
    mask_row = context.literal(ALL_THREADS) if not operands else context.row(operands[0])
    context.emit("warpsync", (), (Source(mask_row),))


def end_collective(context: Context) -> None:
    check_modifiers(context)
    context.emit("jump", (), (Source(context.resume),), (0,))


_REDUCTIONS = {"AND": micro.REDUCE_AND, "OR": micro.REDUCE_OR, "POPC": micro.REDUCE_POPC}


def bar(context: Context) -> None:
    """BAR.SYNC, .ARV and .RED: barrier, number of threads (none: all of the block), predicate to reduce."""
    modifiers = check_modifiers(context, "SYNC", "ARV", "RED", "DEFER_BLOCKING", *_REDUCTIONS)
    operands = list(context.instruction.operands)
    predicate = context.predicate(operands.pop()) if is_predicate(operands[-1]) else context.true
    if "RED" in modifiers:
        how = next(_REDUCTIONS[m] for m in _REDUCTIONS if m in modifiers)
    elif "ARV" in modifiers or "SYNC" in modifiers:
        how = micro.ARRIVE if "ARV" in modifiers else micro.SYNC
    else:
        raise context.unsupported("barrier form")
    number, count = [*operands, Operand(OperandKind.REGISTER)][:2]
    context.emit("barrier", (), (context.bits(number), context.bits(count), predicate), detail=how)


def b2r(context: Context) -> None:
    """B2R.RESULT Rd[, Pd]: outcome of the last BAR.RED."""
    check_modifiers(context, "RESULT")
    d, *predicates = context.instruction.operands
    flag = context.result(predicates[0]) if predicates else context.sink + 1
    context.emit("barrier_outcome", (context.result(d), flag))


def bpt(context: Context) -> None:
    """BPT.TRAP: a failed assertion."""
    modifiers = check_modifiers(context, "TRAP")
    if "TRAP" not in modifiers:
        raise context.unsupported("breakpoint")
    context.emit("trap")


def commit_copies(context: Context) -> None:
    """LDGDEPBAR: copies since the last one form a group that scoreboard SB0 counts. Nothing to do, but to watch."""
    context.emit("nop", detail=micro.COMMIT)


def wait_copies(context: Context) -> None:
    """DEPBAR.LE SB0, n: at most n groups are still under way."""
    operands = context.instruction.operands
    if "LE" in context.instruction.modifiers and len(operands) >= 2 and operands[0].name == "SB0":
        context.emit("nop", immediates=(operands[1].value,), detail=micro.WAIT)
    else:
        context.emit("nop")


_NO_EFFECT = ("NOP", "YIELD", "NANOSLEEP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "FENCE")

TABLE = {
    **dict.fromkeys(_NO_EFFECT, nop),
    "LDGDEPBAR": commit_copies,
    "DEPBAR": wait_copies,
    "BRA": bra,
    "BRX": brx,
    "CALL": call,
    "RET": ret,
    "EXIT": exit_,
    "BSSY": convergence("begin"),
    "BSYNC": convergence("converge"),
    "BREAK": convergence("leave"),
    "BMOV": bmov,
    "WARPSYNC": warpsync,
    "ENDCOLLECTIVE": end_collective,
    "BAR": bar,
    "B2R": b2r,
    "BPT": bpt,
}
