"""Loads, stores, asynchronous copies and atomics of global, shared, local and generic memory."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate
from gemmsim.trace.micro import GENERIC, GLOBAL, LOCAL, SHARED

_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16}
# Cache policies, scopes and orders: they change timing at most, not what one kernel alone computes.
_HINTS = {
    *("E", "SYS", "GPU", "CTA", "SM", "VC", "STRONG", "WEAK", "CONSTANT", "RELAXED", "PRIVATE", "U", "BYPASS"),
    *("EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B", "ENL2"),
}
_OPERATIONS = {
    **{"ADD": micro.ADD, "MIN": micro.MIN, "MAX": micro.MAX, "AND": micro.AND, "OR": micro.OR, "XOR": micro.XOR},
    **{"EXCH": micro.EXCHANGE, "CAS": micro.COMPARE, "INC": micro.INCREMENT, "DEC": micro.DECREMENT},
    "CAST": micro.COMPARE_FLAG,
}
_TYPES = {  # bytes, type
    **{"U32": (4, micro.UNSIGNED), "S32": (4, micro.SIGNED), "F32": (4, micro.FLOAT), "64": (8, micro.UNSIGNED)},
    **{"U64": (8, micro.UNSIGNED), "S64": (8, micro.SIGNED), "F64": (8, micro.FLOAT)},
}
_INTEGERS_32 = {micro.INCREMENT, micro.DECREMENT}
_ADDRESS, _DATA, _LEFT_OUT, _GUARD, _TO = 0, 2, 6, 7, 8  # temporaries: pairs of address rows, up to four words of data


def access_of(context: Context, space: int, kind: int, extra: frozenset[str] = frozenset()) -> int:
    """The ACCESS word: bytes a lane, sign extension, space and kind."""
    size, signed = 4, 0
    for modifier in context.instruction.modifiers:
        if modifier in _SIZES:
            size, signed = _SIZES[modifier], micro.SIGNED_BIT if modifier in ("S8", "S16") else 0
        elif modifier not in _HINTS and modifier not in extra:
            raise context.unsupported(f"modifier .{modifier}")
    return size | signed | space << micro.SPACE_SHIFT | kind << micro.KIND_SHIFT


def address(context: Context, operand: Operand, space: int, to: int = _ADDRESS) -> Source:
    """Emit the address computation; returns the pair of rows where the address is."""
    result = context.scratch(to)
    register = Operand(OperandKind.REGISTER, operand.index)
    uniform = Operand(OperandKind.UNIFORM_REGISTER, operand.uniform)
    if space in (SHARED, LOCAL):
        if operand.suffix or operand.wide or operand.name:
            raise context.unsupported("address form")
        sources = (Source(context.row(register)), Source(context.row(uniform)))
        context.emit("address32", (result.row,), sources, (operand.scale, operand.value), uniform=True)
        return result
    if "E" not in context.instruction.modifiers or operand.scale != 1 or operand.suffix not in ("", "U32"):
        raise context.unsupported("address form")
    if operand.name and operand.uniform != ZERO:
        raise context.unsupported("address with a descriptor and a uniform register")
    # [R.64 + UR] and [R.U32 + UR]: the uniform register is a 64-bit pair, R a pair or one word that is zero-extended.
    base = context.wide(register)
    if operand.suffix == "U32":
        context.emit("extend", (result.row,), (context.bits(register),), (0,), uniform=True)
        base = result
    context.emit("address64", (result.row,), (base, context.wide(uniform)), (operand.value,), uniform=True)
    return result


def load(space: int) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        how = access_of(context, space, micro.LOAD)
        d, where = context.instruction.operands
        context.emit("access", (context.result(d),), (address(context, where, space),), access=how)

    return emit


def store(space: int) -> Callable[[Context], None]:
    def emit(context: Context) -> None:
        how = access_of(context, space, micro.STORE)
        to, value = context.instruction.operands
        where = address(context, to, space)
        context.emit("access", (), (where, Source(context.row(value))), access=how)

    return emit


def copy_async(context: Context) -> None:
    """LDGSTS [shared], [global][, P]: a load and a store, executed at once; where P is false zeros are stored instead.

    .ZFILL: the low bits of the global address say how many bytes at the end of the item are zeros; the rest is copied
    from the address with these bits cleared.
    """
    fill = frozenset(("ZFILL",))
    load_how = access_of(context, GLOBAL, micro.LOAD, fill)
    store_how = access_of(context, SHARED, micro.STORE, fill)
    size, partial = load_how & micro.SIZE_MASK, "ZFILL" in context.instruction.modifiers
    to, source, *predicates = context.instruction.operands
    where = address(context, source, GLOBAL)
    data, left_out, guard = context.scratch(_DATA), context.scratch(_LEFT_OUT), context.scratch(_GUARD)
    only = None
    if predicates:
        instruction_guard = context.instruction.predicate
        given = context.predicate(instruction_guard) if instruction_guard else context.true
        both = (given, context.predicate(predicates[0]), context.true)
        context.emit("plop3", (guard.row,), both, (0x80, 0), uniform=True, only=context.true)
        only = guard
        for word in range(0, 4, 2):
            context.emit("mov64", (data.row + word,), (Source(context.zero),), uniform=True, only=context.true)
    if partial:
        low_bits = Source(context.literal(size - 1))
        context.emit("lop3_c0", (left_out.row,), (where, low_bits, Source(context.zero)), uniform=True)
        context.emit("lop3_30", (where.row,), (where, low_bits, Source(context.zero)), uniform=True)
        load_how |= micro.PARTIAL_BIT
    context.emit("access", (data.row,), (where,), access=load_how, only=only)
    if partial:
        for word in range(size // 4):
            row = Source(data.row + word)
            context.emit("first_bytes", (row.row,), (row, left_out), (size - 4 * word,), uniform=True)
    context.emit("access", (), (address(context, to, SHARED, _TO), data), access=store_how | micro.ASYNC_BIT)


def atomic(space: int) -> Callable[[Context], None]:
    """ATOMG/ATOMS [P,] [Rd,] [address], Ra[, Rb] and RED [address], Ra."""

    def emit(context: Context) -> None:
        modifiers = context.instruction.modifiers
        allowed = frozenset((*_OPERATIONS, *_TYPES, "FTZ", "RN", "SPIN", "POPC"))
        access_of(context, space, micro.ATOMIC, allowed)
        operation = next((_OPERATIONS[m] for m in modifiers if m in _OPERATIONS), None)
        size, kind = next((_TYPES[m] for m in modifiers if m in _TYPES), (4, micro.UNSIGNED))
        if operation is None or (kind == micro.FLOAT and operation != micro.ADD):
            raise context.unsupported("atomic operation")
        if operation in _INTEGERS_32 and (size, kind) != (4, micro.UNSIGNED):
            raise context.unsupported("atomic operation")
        operands = [o for o in context.instruction.operands if not is_predicate(o)]
        flags = [context.result(o) for o in context.instruction.operands if is_predicate(o)]
        if len(flags) > 1 or (operation != micro.COMPARE_FLAG and flags not in ([], [context.sink])):
            raise context.unsupported("predicate result")
        at = next(i for i, o in enumerate(operands) if o.kind == OperandKind.ADDRESS)
        result = context.result(operands[0]) if at == 1 else context.sink
        values = [Source(context.row(o)) for o in operands[at + 1 :]]
        if "POPC" in modifiers:  # ATOMS.POPC.INC adds one for each thread that executes it
            operation, values = micro.ADD, [Source(context.literal(1))]
        where = address(context, operands[at], space)
        detail = operation | kind << micro.TYPE_SHIFT | (micro.FLUSH_BIT if "FTZ" in modifiers else 0)
        how = size | space << micro.SPACE_SHIFT | micro.ATOMIC << micro.KIND_SHIFT
        context.emit("access", (result, *flags), (where, *values), access=how, detail=detail)

    return emit


TABLE = {
    "LDG": load(GLOBAL),
    "LDS": load(SHARED),
    "LDL": load(LOCAL),
    "LD": load(GENERIC),
    "STG": store(GLOBAL),
    "STS": store(SHARED),
    "STL": store(LOCAL),
    "ST": store(GENERIC),
    "LDGSTS": copy_async,
    "ATOM": atomic(GENERIC),
    "ATOMG": atomic(GLOBAL),
    "RED": atomic(GLOBAL),
    "REDG": atomic(GLOBAL),
    "ATOMS": atomic(SHARED),
}
