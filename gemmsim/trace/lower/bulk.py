"""Lowers bulk copies (UBLKCP, UBLKRED) and TMA's copies of tiles (UTMALDG, UTMASTG, UTMAREDG), once for a warp."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind, Program
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.micro import COPY_LOAD, COPY_STORE, DIRECTION_MASK

_RANKS = {f"{n}D": n for n in range(1, 6)}
_REFUSED = {
    "IM2COL": "TMA's im2col mode",
    "GATHER4": "TMA's gather mode",
    "SCATTER4": "TMA's scatter mode",
}
_OPERATIONS = {
    **{"ADD": micro.ADD, "MIN": micro.MIN, "MAX": micro.MAX, "AND": micro.AND, "OR": micro.OR, "XOR": micro.XOR},
    **{"INC": micro.INCREMENT, "DEC": micro.DECREMENT},
}
_TYPES = {  # of UBLKRED: bytes of an element, type
    **{"U32": (4, micro.UNSIGNED), "S32": (4, micro.SIGNED), "U64": (8, micro.UNSIGNED), "S64": (8, micro.SIGNED)},
    **{"F16": (2, micro.HALF), "BF16": (2, micro.BRAIN), "F32": (4, micro.FLOAT), "F64": (8, micro.FLOAT)},
    **{"32": (4, micro.UNSIGNED), "64": (8, micro.UNSIGNED)},
}


def copies_in_bulk(program: Program) -> bool:
    return any(i.opcode.startswith(("UTMA", "UBLK")) for i in program.instructions)


def _modifiers(context: Context, *allowed: str) -> set[str]:
    for modifier in context.instruction.modifiers:
        if modifier in _REFUSED:
            raise context.unsupported(_REFUSED[modifier])
    return context.modifiers(*allowed)


def _uniform(context: Context, operand: Operand, plus: int = 0) -> Source:
    """Return uniform register `plus` behind that of an address such as [UR8]."""
    if operand.kind != OperandKind.ADDRESS or operand.uniform == ZERO or operand.index != ZERO or operand.value:
        raise context.unsupported("address form")
    return Source(context.row(Operand(OperandKind.UNIFORM_REGISTER, operand.uniform + plus)))


def _hint(context: Context, rest: list[Operand]) -> None:
    """A descriptor behind the operands is a cache policy, which changes nothing that a copy does."""
    if len(rest) > 1 or (rest and rest[0].kind != OperandKind.ADDRESS):
        raise context.unsupported("operand form")


def _tile(context: Context, direction: int, modifiers: set[str], combine: int = 0) -> None:
    """[URa], [URb]: shared address, for a load the mbarrier, and coordinates from URa on; the map's address in URb.

    .MULTICAST names a register whose upper half is a mask of the blocks of the cluster that get the tile, each at the
    same place.
    """
    place, tensor_map, *rest = context.instruction.operands
    several = "MULTICAST" in modifiers
    blocks = context.bits(rest.pop(0)) if several else context.false
    _hint(context, rest)
    (rank,) = (_RANKS[m] for m in modifiers if m in _RANKS)
    coordinates = _uniform(context, place, 2 if direction == COPY_LOAD else 1)
    barrier = _uniform(context, place, 1) if direction == COPY_LOAD else context.false
    sources = (_uniform(context, place), _uniform(context, tensor_map), blocks, barrier)
    context.emit("nop")
    detail = direction | rank << micro.RANK_SHIFT | several * micro.MULTICASTS
    context.emit("copy_in_bulk", (), (*sources, coordinates), (combine, 1), detail=detail)


def tile_load(context: Context) -> None:
    _tile(context, COPY_LOAD, _modifiers(context, "MULTICAST", *_RANKS))


def tile_store(context: Context) -> None:
    _tile(context, COPY_STORE, _modifiers(context, *_RANKS))


def tile_reduction(context: Context) -> None:
    """UTMAREDG combines with what the array holds; the type of its elements is the map's."""
    modifiers = _modifiers(context, *_RANKS, *_OPERATIONS)
    (operation,) = (_OPERATIONS[m] for m in modifiers if m in _OPERATIONS)
    _tile(context, COPY_STORE, modifiers, operation | micro.COMBINES)


def copy(context: Context) -> None:
    """UBLKCP.S.G [URa], [URb], URc copies 16 URc bytes to shared memory at URa, and tells the mbarrier at URa + 1.

    With .MULTICAST only the lower half of URc counts bytes; its upper half is a mask as that of a tile. UBLKCP.G.S
    [URb], [URa], URc copies them from there.
    """
    modifiers = context.instruction.modifiers
    to, source, size, *hint = context.instruction.operands
    _hint(context, hint)
    if modifiers in (("S", "G"), ("S", "G", "MULTICAST")):
        several = micro.MULTICASTS if "MULTICAST" in modifiers else 0
        _run_of_bytes(context, COPY_LOAD | several, to, source, size)
    elif modifiers == ("G", "S"):
        _run_of_bytes(context, COPY_STORE, source, to, size)
    else:
        raise context.unsupported("bulk copy")


def reduction(context: Context) -> None:
    """UBLKRED.G.S combines a run of bytes with what is in global memory."""
    modifiers = context.modifiers("G", "S", "RN", *_OPERATIONS, *_TYPES)
    to, source, size, *hint = context.instruction.operands
    _hint(context, hint)
    (operation,) = (_OPERATIONS[m] for m in modifiers if m in _OPERATIONS)
    item, kind = next((_TYPES[m] for m in modifiers if m in _TYPES), (4, micro.UNSIGNED))
    detail = operation | kind << micro.TYPE_SHIFT | micro.COMBINES
    _run_of_bytes(context, COPY_STORE, source, to, size, (detail, item))


def _run_of_bytes(
    context: Context,
    direction: int,
    shared: Operand,
    far: Operand,
    size: Operand,
    combine: tuple[int, int] = (0, 1),
) -> None:
    barrier = _uniform(context, shared, 1) if direction & DIRECTION_MASK == COPY_LOAD else context.false
    sources = (_uniform(context, shared), _uniform(context, far), context.bits(size), barrier, context.false)
    context.emit("nop")
    context.emit("copy_in_bulk", (), sources, combine, detail=direction)


def prefetch(context: Context) -> None:
    """UTMAPF and UBLKPF bring to L2 what nothing waits for; UTMACCTL.PF brings a tensor map."""
    _modifiers(context, "L2", "PF", *_RANKS)
    context.emit("nop")


def map_cache(context: Context) -> None:
    """UTMACCTL drops (IV) or brings (PF) a tensor map in its cache. Copies read maps as memory holds them here."""
    context.modifiers("IV", "PF", "IVALL")
    context.emit("nop")
