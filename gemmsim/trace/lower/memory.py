"""Lowers loads, stores, asynchronous copies and atomics of global, shared, local and generic memory."""

from __future__ import annotations

from contextlib import nullcontext

from gemmsim.isa.opcodes import ACCESS_BYTES, OPCODES
from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate
from gemmsim.trace.micro import GENERIC, GLOBAL, LOCAL, SHARED

_SPACES = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "generic": GENERIC}
# Cache policies, scopes and orders. They may change timing, but not what one kernel alone computes.
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
# Temporary rows of an asynchronous copy; an address takes two of them, the data up to four.
_ADDRESS, _DATA, _LEFT_OUT, _GUARD, _TO = 0, 2, 6, 7, 8


def access_word(context: Context, space: int, kind: int, extra: frozenset[str] = frozenset()) -> int:
    """Make the word for column ACCESS of a micro-operation: bytes of a lane, sign extension, space and kind.

    Raises GemmsimError for a modifier that is neither known nor in `extra`.
    """
    size, signed = 4, 0
    for modifier in context.instruction.modifiers:
        if modifier in ACCESS_BYTES:
            size, signed = ACCESS_BYTES[modifier], micro.SIGNED_BIT if modifier in ("S8", "S16") else 0
        elif modifier not in _HINTS and modifier not in extra:
            raise context.unsupported(f"modifier .{modifier}")
    return size | signed | space << micro.SPACE_SHIFT | kind << micro.KIND_SHIFT


def _space(context: Context) -> int:
    memory = OPCODES[context.instruction.opcode].memory
    assert memory is not None, "only opcodes that access memory are lowered here"
    return _SPACES[memory.space]


def address(context: Context, operand: Operand, space: int, to: int = _ADDRESS) -> Source:
    """Emit the computation of an address into the two temporary rows from `to` on, and return them as a source."""
    register = Operand(OperandKind.REGISTER, operand.index)
    uniform = Operand(OperandKind.UNIFORM_REGISTER, operand.uniform)
    if space in (SHARED, LOCAL):
        if operand.suffix or operand.wide or operand.name:
            raise context.unsupported("address form")
        sources = (Source(context.row(register)), Source(context.row(uniform)))
        return context.compute(to, "address32", sources, (operand.scale, operand.value))
    if "E" not in context.instruction.modifiers or operand.scale != 1 or operand.suffix not in ("", "U32"):
        raise context.unsupported("address form")
    if operand.name and operand.uniform != ZERO:
        raise context.unsupported("address with a descriptor and a uniform register")
    # [R.64 + UR] and [R.U32 + UR]: the uniform register is a 64-bit pair, R a pair or one word that is zero-extended.
    base = context.wide(register)
    if operand.suffix == "U32":
        base = context.compute(to, "extend", (context.bits(register),), (0,))
    return context.compute(to, "address64", (base, context.wide(uniform)), (operand.value,))


def load(context: Context) -> None:
    space = _space(context)
    how = access_word(context, space, micro.LOAD)
    d, where = context.instruction.operands
    context.emit("access", (context.result(d),), (address(context, where, space),), access=how)


def store(context: Context) -> None:
    space = _space(context)
    how = access_word(context, space, micro.STORE)
    to, value = context.instruction.operands
    where = address(context, to, space)
    context.emit("access", (), (where, Source(context.row(value))), access=how)


def copy_async(context: Context) -> None:
    """LDGSTS [shared], [global][, P] becomes a load and a store. Where P is false, zeros are stored.

    With .ZFILL the low bits of the global address say how many bytes at the end of the item are zeros. The rest is
    copied from the address with these bits cleared.
    """
    fill = frozenset(("ZFILL",))
    load_word = access_word(context, GLOBAL, micro.LOAD, fill)
    store_word = access_word(context, SHARED, micro.STORE, fill)
    size, partial = load_word & micro.SIZE_MASK, "ZFILL" in context.instruction.modifiers
    to, source, *predicates = context.instruction.operands
    where = address(context, source, GLOBAL)
    data, loading = context.scratch(_DATA), None
    if predicates:
        instruction_guard = context.instruction.predicate
        given = context.predicate(instruction_guard) if instruction_guard else context.true
        with context.guarded(context.true):
            both = (given, context.predicate(predicates[0]), context.true)
            loading = context.compute(_GUARD, "plop3", both, (0x80, 0))
            for word in range(0, 4, 2):
                context.compute(_DATA + word, "mov64", (context.false,))
    if partial:
        low_bits = (where, Source(context.literal(size - 1)), context.false)
        left_out = context.compute(_LEFT_OUT, "lop3_c0", low_bits)
        context.compute(_ADDRESS, "lop3_30", low_bits)
        load_word |= micro.PARTIAL_BIT
    with context.guarded(loading) if loading else nullcontext():
        context.emit("access", (data.row,), (where,), access=load_word)
    if partial:
        for word in range(size // 4):
            part = (context.scratch(_DATA + word), left_out)
            context.compute(_DATA + word, "first_bytes", part, (size - 4 * word,))
    context.emit("access", (), (address(context, to, SHARED, _TO), data), access=store_word | micro.ASYNC_BIT)


def atomic(context: Context) -> None:
    """Lower ATOMG and ATOMS [P,] [Rd,] [address], Ra[, Rb], and RED [address], Ra."""
    space, modifiers = _space(context), context.instruction.modifiers
    allowed = frozenset((*_OPERATIONS, *_TYPES, "FTZ", "RN", "SPIN", "POPC"))
    access_word(context, space, micro.ATOMIC, allowed)
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
