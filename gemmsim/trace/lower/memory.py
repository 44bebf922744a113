"""Lowers loads, stores, asynchronous copies of global, shared, local and generic memory."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from gemmsim.isa.opcodes import ACCESS_BYTES, OPCODES
from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.micro import GENERIC, GLOBAL, LOCAL, SHARED

_SPACES = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "generic": GENERIC}
# Cache policies, scopes and orders. They may change timing, but not what one kernel alone computes.
_HINTS = {
    *("E", "SYS", "GPU", "CTA", "SM", "VC", "STRONG", "WEAK", "CONSTANT", "RELAXED", "PRIVATE", "U", "BYPASS"),
    *("EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B", "ENL2"),
}
_HALVES = frozenset(("256",))
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


def space_of(context: Context) -> int:
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
    space = space_of(context)
    if "256" in context.instruction.modifiers:
        *halves, where = context.instruction.operands
        how = access_word(context, space, micro.LOAD, _HALVES) & ~micro.SIZE_MASK | 16
        addresses = _both_halves(context, where)
        for half, at in zip(reversed(halves), addresses, strict=True):  # the upper half is named first
            context.emit("access", (context.result(half),), (at,), access=how)
        return
    how = access_word(context, space, micro.LOAD)
    d, where, *predicates = context.instruction.operands
    source, loading = address(context, where, space), None
    if predicates:
        loading = _zeros_unless(context, d, predicates, -(-(how & micro.SIZE_MASK) // 4))
    with context.guarded(loading) if loading else nullcontext():
        context.emit("access", (context.result(d),), (source,), access=how)


def _zeros_unless(context: Context, d: Operand, predicates: list[Operand], words: int) -> Source:
    """LDG Rd, [address], P, in cuBLAS, loads zeros where P is false: write zeros to `words` registers from `d` on.

    Returns the predicate of the threads that do load, those for which the instruction's guard and P hold.
    """
    (condition,) = predicates
    given = context.instruction.predicate
    with context.guarded(context.true):
        guard = context.predicate(given) if given else context.true
        loading = context.compute(_GUARD, "plop3", (guard, context.predicate(condition), context.true), (0x80, 0))
    for word in range(words):
        zeroed = context.result(replace(d, index=d.index + word)) if d.index != ZERO else context.sink
        context.emit("mov", (zeroed,), (context.false,))
    return loading


def store(context: Context) -> None:
    space = space_of(context)
    if "256" in context.instruction.modifiers:
        target, *halves = context.instruction.operands
        how = access_word(context, space, micro.STORE, _HALVES) & ~micro.SIZE_MASK | 16
        for half, at in zip(halves, _both_halves(context, target), strict=True):
            context.emit("access", (), (at, Source(context.row(half))), access=how)
        return
    how = access_word(context, space, micro.STORE)
    to, value = context.instruction.operands
    where = address(context, to, space)
    context.emit("access", (), (where, Source(context.row(value))), access=how)


def _both_halves(context: Context, operand: Operand) -> tuple[Source, Source]:
    """Emit the addresses of both halves of an access of 256 bits, which is executed and recorded as two of 128."""
    upper = replace(operand, value=operand.value + 16)
    return address(context, operand, GLOBAL), address(context, upper, GLOBAL, _TO)


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
