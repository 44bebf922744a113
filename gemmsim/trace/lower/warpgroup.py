"""Lowers Hopper's asynchronous matrix multiplication (wgmma): HGMMA, QGMMA, IGMMA and WARPGROUP; and USETMAXREG.

HGMMA.64xNxK.F32 Rd, gdesc[URa], Rc[, P][, gsb0] multiplies A and B, whose descriptors are in URa and URa+1, and in
URa+2 and URa+3. HGMMA.64xNxK.F32 Rd, Ra, gdesc[URb], Rc ... takes A from registers; B's descriptor is again in URb+2
and URb+3. Where P is false, Rc does not count. `gsb0` closes a group (wgmma.commit_group); WARPGROUP.DEPBAR.LE gsb0, n
waits until at most n groups are under way. A multiplication without destination only closes a group.

Each warp of the four executes its 16 rows when it comes to the instruction: whatever a correct program does before it
waits for the group, the operands are then those at the end, and the results are not looked at before. A wait for a
group also waits until the other warps have executed theirs (`gemmsim.trace.engine.warpgroup_order`). WARPGROUP.ARRIVE
with WARPGROUP.WAIT is a barrier of the four warps: kernels of cuBLAS that are made at run time (nvjet) order stores to
shared memory by it before TMA reads them.
"""

from __future__ import annotations

from gemmsim.isa.matrix import WARPGROUP_DEPTH_BYTES, MatrixMultiply, matrix_multiply
from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.trace.lower.context import Context, Source, is_predicate
from gemmsim.trace.lower.tensor import F32, FORMAT_SHIFT, HALF, S32, S32_SATURATED, cut
from gemmsim.trace.micro import (
    ARRIVE_WARP,
    AWAIT_GROUPS,
    AWAIT_WARPS,
    BF16,
    COMMIT_PRODUCTS,
    E4M3,
    E5M2,
    END_GROUP,
    F16,
    FENCE_PRODUCTS,
    MEET_WARPGROUP,
    S8,
    TF32,
    U8,
    WAIT_PRODUCTS,
)

# DETAIL of a multiplication: formats of A and B as those of a `multiply_matrix`, then these bits
A_IN_REGISTERS, A_TRANSPOSED, B_TRANSPOSED, CLOSES_GROUP = 0x100, 0x200, 0x400, 0x800
_FORMATS = {"S8": S8, "U8": U8, "E4M3": E4M3, "E5M2": E5M2}
_SIGNS = {TF32: 0x80000000, F16: 0x80008000, BF16: 0x80008000, E4M3: 0x80808080, E5M2: 0x80808080}
_ELEMENT_BYTES = {TF32: 4, F16: 2, BF16: 2}
_FLAGS = {"negA", "negB", "tnspA", "tnspB"}
_LARGEST_N = 256
# The limits that the PTX ISA gives to setmaxnreg
_FEWEST_REGISTERS, _MOST_REGISTERS, _REGISTERS_STEP = 24, 256, 8


def hgmma(context: Context) -> None:
    modifiers = _modifiers(context, "F32", "F16", "BF16", "TF32")
    format_ = BF16 if "BF16" in modifiers else TF32 if "TF32" in modifiers else F16
    _emit(context, format_, format_, F32 if "F32" in modifiers else HALF)


def qgmma(context: Context) -> None:
    modifiers = _modifiers(context, "F32", "F16", "E4M3", "E5M2")
    _emit(context, *_formats(context), F32 if "F32" in modifiers else HALF)


def igmma(context: Context) -> None:
    modifiers = _modifiers(context, "S8", "U8", "SAT")
    _emit(context, *_formats(context), S32_SATURATED if "SAT" in modifiers else S32)


def warpgroup(context: Context) -> None:
    """WARPGROUP.ARRIVE orders what follows behind accesses to registers, WARPGROUP.WAIT waits until all warps of the
    warpgroup have arrived so often; WARPGROUP.DEPBAR.LE gsb0, n waits for groups.
    """
    modifiers = context.modifiers("ARRIVE", "WAIT", "DEPBAR", "LE")
    if modifiers == {"ARRIVE"}:
        context.emit("nop", detail=FENCE_PRODUCTS)
        context.emit("order_groups", detail=ARRIVE_WARP)
    elif modifiers == {"WAIT"}:
        context.emit("nop")
        context.emit("order_groups", detail=AWAIT_WARPS)
        context.emit("nop", detail=MEET_WARPGROUP)
    elif modifiers == {"DEPBAR", "LE"}:
        _, left = context.instruction.operands
        context.emit("nop")  # so that a wait that goes on is counted once
        context.emit("order_groups", immediates=(left.value,), detail=AWAIT_GROUPS)
        context.emit("nop", immediates=(left.value,), detail=WAIT_PRODUCTS)
    else:
        raise context.unsupported("form of WARPGROUP")


def set_registers(context: Context) -> None:
    """USETMAXREG.DEALLOC.CTAPOOL n gives registers back, .TRY_ALLOC.CTAPOOL UP, n asks for more (setmaxnreg).

    The executor has registers for all: what is asked for is always there.
    """
    modifiers = context.modifiers("DEALLOC", "TRY_ALLOC", "CTAPOOL")
    *answers, count = context.instruction.operands
    if count.kind != OperandKind.IMMEDIATE or len(answers) != ("TRY_ALLOC" in modifiers):
        raise context.unsupported("operand form")
    if not _FEWEST_REGISTERS <= count.value <= _MOST_REGISTERS or count.value % _REGISTERS_STEP:
        raise context.unsupported(f"number of registers {count.value}")
    context.emit("nop")
    for answer in answers:
        context.write(answer, "plop3", (context.true, context.true, context.true), (0xFF, 0))


def _modifiers(context: Context, *allowed: str) -> set[str]:
    shape = _shape(context)
    return context.modifiers(*allowed, *([shape.shape] if shape else _shape_texts(context)))


def _shape_texts(context: Context) -> list[str]:
    return [modifier for modifier in context.instruction.modifiers if modifier.startswith("64x")]


def _shape(context: Context) -> MatrixMultiply | None:
    """Return what is multiplied; None where the result is dropped."""
    shape = matrix_multiply(context.instruction)
    if shape is not None and not (8 <= shape.columns <= _LARGEST_N and shape.columns % 8 == 0):
        raise context.unsupported("shape")
    return shape


def _formats(context: Context) -> tuple[int, int]:
    found = [_FORMATS[m] for m in context.instruction.modifiers if m in _FORMATS]
    if len(found) != 2:
        raise context.unsupported("format of the elements")
    return found[0], found[1]


def _emit(context: Context, format_a: int, format_b: int, accumulator: int) -> None:
    _multiply(context, format_a, format_b, accumulator)
    if any(operand.name == "gsb0" for operand in context.instruction.operands):
        context.emit("order_groups", detail=END_GROUP)


def _multiply(context: Context, format_a: int, format_b: int, accumulator: int) -> None:
    shape = _shape(context)
    closes = any(o.kind == OperandKind.SPECIAL for o in context.instruction.operands)  # gsb0
    if shape is None:
        context.emit("nop", detail=COMMIT_PRODUCTS if closes else 0)
        return
    if shape.depth * _ELEMENT_BYTES.get(format_a, 1) != WARPGROUP_DEPTH_BYTES:
        raise context.unsupported("shape")
    operands = [o for o in context.instruction.operands if o.kind != OperandKind.SPECIAL]
    condition = context.predicate(operands.pop()) if is_predicate(operands[-1]) else context.true
    d, *left, descriptors, c = operands
    flags = set(filter(None, descriptors.suffix.split(".")))
    plain = [d, c, *left]
    if descriptors.name != "gdesc" or not flags <= _FLAGS or any(o.kind != OperandKind.REGISTER for o in plain):
        raise context.unsupported("operand form")
    if d.negate or c.negate or (c.index not in (d.index, ZERO)):
        raise context.unsupported("operand form")
    if c.index == ZERO:
        c, condition = d, context.false
    pair = Operand(OperandKind.UNIFORM_REGISTER, descriptors.bank)
    second = Operand(OperandKind.UNIFORM_REGISTER, ZERO if pair.index == ZERO else pair.index + 2)
    flip_a = _SIGNS[format_a] if "negA" in flags or (left and left[0].negate) else 0
    flip_b = _SIGNS[format_b] if "negB" in flags else 0
    a = Source(context.row(left[0] if left else pair), flip=flip_a)
    detail = format_a | format_b << FORMAT_SHIFT | (A_IN_REGISTERS if left else 0)
    detail |= cut(context, shape) if accumulator in (F32, HALF) else 0
    detail |= CLOSES_GROUP if closes else 0
    detail |= (A_TRANSPOSED if "tnspA" in flags else 0) | (B_TRANSPOSED if "tnspB" in flags else 0)
    if flags & {"tnspA", "tnspB"} and format_a not in (F16, BF16):
        raise context.unsupported("transposed matrix of elements other than 16 bits")
    sources = (a, Source(context.row(second), flip=flip_b), Source(context.row(c)), condition)
    context.emit(
        "multiply_warpgroup",
        (context.result(d),),
        sources,
        (shape.depth, accumulator, shape.columns),
        detail=detail,
    )
