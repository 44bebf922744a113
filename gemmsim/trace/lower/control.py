"""Branches, convergence barriers, block barriers, and what has no effect on a functional run."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.program import OperandKind
from gemmsim.trace.lower.context import Context, is_predicate
from gemmsim.trace.lower.integer import check_modifiers


def nop(context: Context) -> None:
    """Scoreboard waits, fences and hints: the executor runs each warp's instructions in order, so nothing is left to do."""
    context.emit("nop")


def bra(context: Context) -> None:
    modifiers = check_modifiers(context, "U", "DIV", "CONV", "ANY")
    operands = list(context.instruction.operands)
    if "DIV" in modifiers or "CONV" in modifiers:
        # BRA.DIV leaves for the divergent copy of a warp-synchronous region where the warp is not whole.
        context.emit("bra_divergent", detail=int("CONV" in modifiers))
        return
    conditions = [o for o in operands if is_predicate(o)]
    if "ANY" in modifiers or len(conditions) > 1:
        raise context.unsupported("branch condition")
    condition = context.predicate(conditions[0]) if conditions else context.true
    context.emit("bra", (), (condition,))


def call(context: Context) -> None:
    """CALL.REL.NOINC keeps no return address (a callee that returns is given it in a register): a far branch."""
    check_modifiers(context, "REL", "NOINC")
    context.emit("bra", (), (context.true,))


def exit_(context: Context) -> None:
    check_modifiers(context)
    if context.instruction.operands:
        raise context.unsupported("operand form")
    context.emit("exit")


def with_barrier(name: str) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        check_modifiers(context, "RECONVERGENT", "RELIABLE")
        barrier = next(o for o in context.instruction.operands if o.kind == OperandKind.BARRIER)
        context.emit(name, detail=barrier.index)

    return emit


def warpsync(context: Context) -> None:
    check_modifiers(context, "ALL", "EXCLUSIVE")
    context.emit("warpsync")


def bar(context: Context) -> None:
    modifiers = check_modifiers(context, "SYNC", "DEFER_BLOCKING")
    operands = context.instruction.operands
    plain = operands[0].kind == OperandKind.IMMEDIATE and operands[0].value == 0 and len(operands) == 1
    if "SYNC" not in modifiers or not plain:
        raise context.unsupported("barrier form")
    context.emit("bar")


_NO_EFFECT = ("NOP", "YIELD", "NANOSLEEP", "DEPBAR", "LDGDEPBAR", "MEMBAR", "ERRBAR", "CCTL", "FENCE", "ACQBULK")

TABLE = {
    **dict.fromkeys(_NO_EFFECT, nop),
    "BRA": bra,
    "CALL": call,
    "EXIT": exit_,
    "BSSY": with_barrier("bssy"),
    "BSYNC": with_barrier("bsync"),
    "BREAK": with_barrier("break"),
    "WARPSYNC": warpsync,
    "BAR": bar,
}
