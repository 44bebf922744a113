"""Lowers operations on mbarriers, the barriers in shared memory of sm_90 and later (SYNCS, ARRIVES, STAS)."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.atomics import operation_of
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.memory import access_word, address
from gemmsim.trace.micro import SHARED
from gemmsim.trace.words import SHARED_WINDOW

# How many arrivals (A) and bytes (T) an instruction names: none, one, as many as its register says, or bytes that have
# come (TX). Without such a modifier it is one arrival, and the bytes that its register says are expected.
_COUNTS: dict[str, tuple[int | str, int | str]] = {
    **{"A1T0": (1, 0), "A0T1": (0, 1), "ART0": ("register", 0)},
    **{"A0TR": (0, "register"), "A0TX": (0, "register")},
}
_ADDRESS = 0  # the temporary rows of an address
_ONE_WITH_BYTES: tuple[int | str, int | str] = (1, "register")


def syncs(context: Context) -> None:
    """Lower SYNCS.EXCH (mbarrier.init), .ARRIVE (arrive, expect_tx, complete_tx), .PHASECHK (waits), .CCTL (inval).

    An instruction begins with a micro-operation that does nothing, so that a wait that goes on is counted once.
    """
    modifiers = context.instruction.modifiers
    context.emit("nop")
    if modifiers == ("EXCH", "64"):
        old, where, state = context.instruction.operands
        if old.index != ZERO:
            raise context.unsupported("the old state of an mbarrier")
        at = address(context, where, SHARED)
        low, high = context.wide(state), Source(context.wide(state).row + 1)
        context.emit("mbarrier", (), (at, low, high), detail=micro.INITIALISE)
    elif modifiers[:2] == ("ARRIVE", "TRANS64"):
        _arrive(context, modifiers[2:])
    elif modifiers[:2] == ("PHASECHK", "TRANS64"):
        _check(context, modifiers[2:])
    elif modifiers not in (("CCTL", "IV"), ("CCTL", "IVALL")):
        raise context.unsupported("operation on an mbarrier")


def _arrive(context: Context, modifiers: tuple[str, ...]) -> None:
    """SYNCS.ARRIVE.TRANS64 Rd, [address], Ra: Rd takes the state before; .RED has no result, .OPTOUT is arrive_drop."""
    if unknown := [m for m in modifiers if m not in _COUNTS and m not in ("RED", "OPTOUT")]:
        raise context.unsupported(f"modifier .{unknown[0]}")
    old, where, number = context.instruction.operands
    arrivals, expected = next((_COUNTS[m] for m in modifiers if m in _COUNTS), _ONE_WITH_BYTES)
    flags = (micro.DROPS if "OPTOUT" in modifiers else 0) | (micro.COMPLETES if "A0TX" in modifiers else 0)
    _emit_arrival(context, where, old, number, (arrivals, expected), flags)


def arrives(context: Context) -> None:
    """ARRIVES.LDGSTSBAR.64 [shared] arrives at an mbarrier once the thread's earlier asynchronous copies are complete.

    The executor completes a copy at once, so that this is an arrival. From sm_90 on .ARVCNT is one, too, and .TRANSCNT
    takes back the byte by which SYNCS.ARRIVE.A0T1 has kept the phase from ending.
    """
    modifiers = context.modifiers("LDGSTSBAR", "64", "ARVCNT", "TRANSCNT")
    (where,) = context.instruction.operands
    nothing = Operand(OperandKind.REGISTER)
    if modifiers == {"LDGSTSBAR", "64"}:  # up to sm_89
        how = 8 | SHARED << micro.SPACE_SHIFT | micro.ATOMIC << micro.KIND_SHIFT
        at = address(context, where, SHARED)
        context.emit("access", (context.sink,), (at, context.false), access=how, detail=micro.ARRIVAL)
    elif modifiers == {"LDGSTSBAR", "64", "ARVCNT"}:
        _emit_arrival(context, where, nothing, nothing, (1, 0), micro.AFTER_COPIES)
    elif modifiers == {"LDGSTSBAR", "64", "TRANSCNT"}:
        _emit_arrival(context, where, nothing, nothing, (0, 1), micro.COMPLETES | micro.AFTER_COPIES)
    else:
        raise context.unsupported("arrival")


def _emit_arrival(
    context: Context, where: Operand, old: Operand, number: Operand, counts: tuple[int | str, int | str], flags: int
) -> None:
    """Emit an arrival; `counts` are the arrivals and the bytes, as numbers or as what is in the operand `number`."""
    at = address(context, where, SHARED)
    arrivals, more = (
        context.bits(number) if one == "register" else Source(context.literal(int(one))) for one in counts
    )
    context.emit("mbarrier", (context.result(old),), (at, arrivals, more), (flags,), detail=micro.ARRIVE_AT)


def store_async(context: Context) -> None:
    """STAS [Ra.64], Rb is PTX's st.async: it stores Rb at the address in Ra, in the memory of any block of the cluster,
    and tells the mbarrier whose address is in the next register that so many bytes have come. [Ra.64+0x10] stores 16
    bytes behind that address, at the same mbarrier: code whose mbarrier the compiler put at a known distance shows it.

    The executor stores at once, so that the bytes have come when the mbarrier is told.
    """
    _send(context, access_word(context, micro.GENERIC, micro.STORE), 0)


def reduce_async(context: Context) -> None:
    """REDAS.op [Ra.64], Rb is PTX's red.async: as STAS, but it combines Rb with what is there."""
    if context.instruction.operands[0].value:  # not seen in any code
        raise context.unsupported("address form")
    size, _, detail = operation_of(context, micro.GENERIC)
    _send(context, size | micro.GENERIC << micro.SPACE_SHIFT | micro.ATOMIC << micro.KIND_SHIFT, detail)


def _send(context: Context, how: int, detail: int) -> None:
    """Emit an access to the memory of a block of the cluster, and the bytes that come to an mbarrier there.

    how, detail  the access's ACCESS and DETAIL
    """
    to, value = context.instruction.operands
    if not to.wide or to.uniform != ZERO or to.suffix:
        raise context.unsupported("address form")
    nothing = Source(context.row(Operand(OperandKind.UNIFORM_REGISTER, ZERO)))
    where, barrier = (Source(context.row(Operand(OperandKind.REGISTER, to.index + one))) for one in (0, 1))
    at = context.compute(_ADDRESS, "address32", (where, nothing), (1, to.value))
    context.compute(_ADDRESS + 1, "mov", (Source(context.literal(SHARED_WINDOW)),))
    context.emit("access", (context.sink,), (at, Source(context.row(value))), access=how, detail=detail)
    at = context.compute(_ADDRESS, "address32", (barrier, nothing), (1, 0))
    counts = Source(context.literal(0)), Source(context.literal(how & micro.SIZE_MASK))
    context.emit("mbarrier", (context.sink,), (at, *counts), (micro.COMPLETES,), detail=micro.ARRIVE_AT)


def _check(context: Context, modifiers: tuple[str, ...]) -> None:
    """SYNCS.PHASECHK.TRANS64[.TRYWAIT] P, [address], Ra: whether the phase of which Ra has the parity is complete."""
    if modifiers not in ((), ("TRYWAIT",)):
        raise context.unsupported(f"modifier .{modifiers[-1]}")
    flag, where, parity = context.instruction.operands
    begin = len(context.code)
    at = address(context, where, SHARED)
    back = len(context.code) - begin  # other paths of the warp may use the temporary rows meanwhile
    how = micro.TRY if modifiers else micro.TEST
    context.emit("mbarrier", (context.result(flag),), (at, context.bits(parity), context.false), (0, back), detail=how)
