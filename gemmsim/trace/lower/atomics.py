"""Lowers atomics of global, shared and generic memory, to which belong arrivals at mbarriers up to sm_89."""

from __future__ import annotations

from contextlib import nullcontext

from gemmsim.isa.program import OperandKind
from gemmsim.trace import micro, words
from gemmsim.trace.lower.context import Context, Source, is_predicate
from gemmsim.trace.lower.memory import access_word, address, space_of
from gemmsim.trace.micro import GENERIC, GLOBAL

_OPERATIONS = {
    **{"ADD": micro.ADD, "MIN": micro.MIN, "MAX": micro.MAX, "AND": micro.AND, "OR": micro.OR, "XOR": micro.XOR},
    **{"EXCH": micro.EXCHANGE, "CAS": micro.COMPARE, "INC": micro.INCREMENT, "DEC": micro.DECREMENT},
    **{"CAST": micro.COMPARE_FLAG, "ARRIVE": micro.ARRIVAL},
}
_TYPES = {  # bytes, type, whether each word holds elements of its own
    **{"U32": (4, micro.UNSIGNED, 0), "S32": (4, micro.SIGNED, 0), "F32": (4, micro.FLOAT, 0)},
    **{"U64": (8, micro.UNSIGNED, 0), "S64": (8, micro.SIGNED, 0), "F64": (8, micro.FLOAT, 0)},
    **{"64": (8, micro.UNSIGNED, 0), "128": (16, micro.UNSIGNED, 0)},
    **{"F32x2": (8, micro.FLOAT, micro.WORDWISE_BIT), "F32x4": (16, micro.FLOAT, micro.WORDWISE_BIT)},
    **{f"F16x{n}": (2 * n, micro.HALF, micro.WORDWISE_BIT) for n in (2, 4, 8)},
    **{f"BF16x{n}": (2 * n, micro.BRAIN, micro.WORDWISE_BIT) for n in (2, 4, 8)},
}
_ALLOWED = frozenset((*_OPERATIONS, *_TYPES, "FTZ", "RN", "SPIN", "POPC"))
# Operations that a type allows. Others of 16 bytes or of floats are not known.
_OF_FLOATS, _OF_HALVES = {micro.ADD}, {micro.ADD, micro.MIN, micro.MAX}
_OF_128_BITS, _OF_32_BITS = {micro.EXCHANGE, micro.COMPARE}, {micro.INCREMENT, micro.DECREMENT}
_ADDRESS_IS_GLOBAL, _GUARD, _RANK = 8, 9, 10  # temporary rows


def atomic(context: Context) -> None:
    """Lower ATOMG and ATOMS [P,] [Rd,] [address], Ra[, Rb], and RED [address], Ra.

    The predicate of ATOMS.CAST says whether the exchange was made. That of ATOM (generic addresses) says whether the
    address is of global memory: elsewhere nothing is done, and the code that follows does it.
    """
    space, modifiers = space_of(context), context.instruction.modifiers
    size, operation, detail = operation_of(context, space)
    operands = [o for o in context.instruction.operands if not is_predicate(o)]
    flags = [o for o in context.instruction.operands if is_predicate(o)]
    rows = [context.result(o) for o in flags]
    tells_space = space == GENERIC and rows not in ([], [context.sink])
    if len(rows) > 1 or (operation != micro.COMPARE_FLAG and not tells_space and rows not in ([], [context.sink])):
        raise context.unsupported("predicate result")
    at = next(i for i, o in enumerate(operands) if o.kind == OperandKind.ADDRESS)
    result = context.result(operands[0]) if at == 1 else context.sink
    values = [Source(context.row(o)) for o in operands[at + 1 :]]
    if "POPC" in modifiers:  # ATOMS.POPC.INC adds one for each thread that executes it
        detail, values = detail - operation + micro.ADD, [Source(context.literal(1))]
    where = address(context, operands[at], space)
    guard = None
    if tells_space:
        space, guard = GLOBAL, _global_lanes(context, where)
        context.write(flags[0], "mov", (context.scratch(_ADDRESS_IS_GLOBAL),))
        rows = []
    how = size | space << micro.SPACE_SHIFT | micro.ATOMIC << micro.KIND_SHIFT
    with context.guarded(guard) if guard else nullcontext():
        context.emit("access", (result, *rows), (where, *values), access=how, detail=detail)


def operation_of(context: Context, space: int) -> tuple[int, int, int]:
    """Return the bytes of an atomic's value, its operation, and its DETAIL, of which the operation is a part."""
    modifiers = context.instruction.modifiers
    access_word(context, space, micro.ATOMIC, _ALLOWED)
    operation = next((_OPERATIONS[m] for m in modifiers if m in _OPERATIONS), None)
    size, kind, wordwise = next((_TYPES[m] for m in modifiers if m in _TYPES), (4, micro.UNSIGNED, 0))
    if operation is None or not _known(operation, size, kind):
        raise context.unsupported("atomic operation")
    flushes = micro.FLUSH_BIT if "FTZ" in modifiers else 0
    return size, operation, operation | kind << micro.TYPE_SHIFT | wordwise | flushes


def _known(operation: int, size: int, kind: int) -> bool:
    if kind in (micro.HALF, micro.BRAIN):
        return operation in _OF_HALVES
    if kind == micro.FLOAT:
        return operation in _OF_FLOATS
    if operation == micro.ARRIVAL:
        return size == 8
    if size == 16:
        return operation in _OF_128_BITS
    return operation not in _OF_32_BITS or (size, kind) == (4, micro.UNSIGNED)


def _global_lanes(context: Context, where: Source) -> Source:
    """Emit the computation of where generic addresses are of global memory; return a guard that holds only there."""
    high = Source(where.row + 1)
    given = context.predicate(context.instruction.predicate) if context.instruction.predicate else context.true
    with context.guarded(context.true):
        for number, window in ((_GUARD, words.SHARED_WINDOW), (_ADDRESS_IS_GLOBAL, words.LOCAL_WINDOW)):
            other = Source(context.literal(window))
            before = context.true if number == _GUARD else context.scratch(_GUARD)
            context.compute(number, "setp_eq_u32", (high, other, before), (1, 0))
        both = (given, context.scratch(_ADDRESS_IS_GLOBAL), context.true)
        return context.compute(_GUARD, "plop3", both, (0x80, 0))


def qspc(context: Context) -> None:
    """QSPC.E.S P, RZ, [address] says whether a generic address is of the block's shared memory, QSPC.E.D whether of
    that of any block of its cluster, its own among them, QSPC.E.L whether of local memory."""
    modifiers = context.modifiers("E", "S", "L", "G", "D")
    flag, _, operand = context.instruction.operands
    where = address(context, operand, GENERIC)
    if "G" in modifiers:
        _global_lanes(context, where)
        context.write(flag, "mov", (context.scratch(_ADDRESS_IS_GLOBAL),))
        return
    here = context.true
    if "S" in modifiers:
        rank = context.compute(_RANK, "bit_field", (where,), (words.RANK_SHIFT, 8, 0))
        own = Source(context.special("SR_CgaCtaId"))
        here = context.compute(_RANK, "setp_eq_u32", (rank, own, context.true), (0, 0))
    window = context.literal(words.LOCAL_WINDOW if "L" in modifiers else words.SHARED_WINDOW)
    context.emit(
        "setp_eq_u32",
        (context.result(flag), context.sink),
        (Source(where.row + 1), Source(window), here),
        (0, 0),
    )
