"""Loads, stores and atomics of global, shared and local memory."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import Context, Source, is_predicate

GLOBAL, SHARED, LOCAL = 0, 1, 2
SIZE_MASK, SIGNED_BIT, SPACE_SHIFT = 0x1F, 0x20, 8
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16}
# Cache policies, scopes and orders: they change timing at most, not what one kernel alone computes.
_HINTS = {
    *("E", "SYS", "GPU", "CTA", "SM", "VC", "STRONG", "WEAK", "CONSTANT", "RELAXED", "PRIVATE", "U"),
    *("EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B", "ENL2", "BYPASS"),
}
ATOMICS = {"ADD": 0, "MIN": 1, "MAX": 2, "AND": 3, "OR": 4, "XOR": 5, "EXCH": 6, "CAS": 7}
TYPES = {"U32": 0, "S32": 1, "F32": 2, "U64": 3, "S64": 4, "F64": 5}


def access_of(context: Context, space: int, extra: frozenset[str] = frozenset()) -> int:
    """Bytes a lane, sign extension and space, as one number."""
    size, signed = 4, 0
    for modifier in context.instruction.modifiers:
        if modifier in _SIZES:
            size, signed = _SIZES[modifier], SIGNED_BIT if modifier in ("S8", "S16") else 0
        elif modifier not in _HINTS and modifier not in extra:
            raise context.unsupported(f"modifier .{modifier}")
    return size | signed | space << SPACE_SHIFT


def address(context: Context, operand: Operand, space: int) -> Source:
    """Emit the address computation; returns where the address is (a pair of rows for global memory)."""
    row = context.temporary
    register = Operand(OperandKind.REGISTER, operand.index)
    uniform = Operand(OperandKind.UNIFORM_REGISTER, operand.uniform)
    if space != GLOBAL:
        sources = (Source(context.row(register)), Source(context.row(uniform)))
        context.emit("address32", (row,), sources, (operand.scale, operand.value), uniform=True)
        return Source(row)
    extended = "E" in context.instruction.modifiers
    if not extended or operand.scale != 1:
        raise context.unsupported("address form")
    if operand.uniform != ZERO:
        # [R.64+UR] adds a 32-bit uniform offset, [R.U32+UR.64] a 32-bit register to a 64-bit uniform base.
        raise context.unsupported("uniform register in a global address")
    sources = (context.wide(register), Source(context.zero))
    context.emit("address64", (row,), sources, (operand.value,), uniform=True)
    return Source(row)


def load(space: int):  # type: ignore[no-untyped-def]
    def emit(context: Context) -> None:
        access = access_of(context, space)
        d, *rest = [o for o in context.instruction.operands if not is_predicate(o)]
        if len(rest) != 1 or len(context.instruction.operands) != 2:
            raise context.unsupported("operand form")
        where = address(context, rest[0], space)
        context.emit("load", (context.result(d),), (where,), access=access)

    return emit


def store(space: int):  # type: ignore[no-untyped-def]
    def emit(context: Context) -> None:
        access = access_of(context, space)
        to, value = context.instruction.operands
        where = address(context, to, space)
        context.emit("store", (), (where, Source(context.row(value))), access=access)

    return emit


def atomic(space: int):  # type: ignore[no-untyped-def]
    """ATOMG/ATOMS [P,] Rd, [address], Ra[, Rb] and RED [address], Ra."""

    def emit(context: Context) -> None:
        allowed = frozenset((*ATOMICS, *TYPES, "FTZ", "RN", "CAS"))
        access = access_of(context, space, allowed)
        modifiers = context.instruction.modifiers
        kind = next((ATOMICS[m] for m in modifiers if m in ATOMICS), None)
        value_type = next((TYPES[m] for m in modifiers if m in TYPES), TYPES["U32"])
        if kind is None or (access & SIZE_MASK) != 4 or value_type > TYPES["F32"]:
            raise context.unsupported("atomic operation")
        operands = [o for o in context.instruction.operands if not is_predicate(o)]
        at = next(i for i, o in enumerate(operands) if o.kind == OperandKind.ADDRESS)
        result = context.result(operands[0]) if at == 1 else context.sink
        where = address(context, operands[at], space)
        first = Source(context.row(operands[at + 1]))
        second = Source(context.row(operands[at + 2])) if len(operands) > at + 2 else Source(context.zero)
        detail = kind | value_type << 4
        context.emit("atomic", (result,), (where, first, second), access=access, detail=detail)

    return emit


TABLE = {
    "LDG": load(GLOBAL),
    "LDS": load(SHARED),
    "LDL": load(LOCAL),
    "STG": store(GLOBAL),
    "STS": store(SHARED),
    "STL": store(LOCAL),
    "ATOMG": atomic(GLOBAL),
    "RED": atomic(GLOBAL),
    "ATOMS": atomic(SHARED),
}
