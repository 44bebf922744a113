"""Lowers matrix instructions, each to one micro-operation on all lanes that `gemmsim.trace.engine.matrix` executes."""

from __future__ import annotations

from gemmsim.isa.matrix import MATRIX_ROW_BYTES, MatrixMultiply, matrix_count, matrix_multiply
from gemmsim.isa.program import OperandKind
from gemmsim.isa.tensor_sums import tensor_sum
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.memory import address
from gemmsim.trace.micro import B1, BF16, E4M3, E5M2, F16, S4, S8, SHARED, TF32, U4, U8

F32, F64, HALF, S32, S32_SATURATED = range(5)  # formats of the accumulator
# DETAIL of a multiplication: formats of A and B, then whether A is sparse and bits are combined by exclusive or, then
# which lanes of four hold the metadata. For floats whose sums are cut: how many places below the largest exponent, and
# the registers of A of a row that make one step; for a sparse A, as many as there were if it were dense.
FORMAT_SHIFT, FORMAT_MASK, SPARSE_BIT, XOR_BIT, SELECTOR_SHIFT, SELECTOR_MASK = 4, 15, 0x100, 0x200, 12, 15
CUT_SHIFT, CUT_MASK, STEP_SHIFT = 16, 63, 24
_REGISTER_BYTES = 16  # of a row of A, or a column of B, that a register holds in its four lanes
TRANSPOSED = 8
_FORMATS = {"S8": S8, "U8": U8, "S4": S4, "U4": U4, "E4M3": E4M3, "E5M2": E5M2}


def ldsm(context: Context) -> None:
    """LDSM.16.M88[.2|.4] Rd, [address] loads one, two or four matrices; .MT88 transposes them."""
    d, where = context.instruction.operands
    access, detail = _rows(context, micro.LOAD)
    source = address(context, where, SHARED)
    context.emit("move_matrix", (context.result(d),), (source,), access=access, detail=detail)


def stsm(context: Context) -> None:
    """STSM.16.M88[.2|.4] [address], Rs stores one, two or four matrices; .MT88 transposes them."""
    where, value = context.instruction.operands
    access, detail = _rows(context, micro.STORE)
    sources = (address(context, where, SHARED), Source(context.row(value)))
    context.emit("move_matrix", (), sources, access=access, detail=detail)


def movm(context: Context) -> None:
    """MOVM.16.MT88 Rd, Ra transposes an 8 x 8 matrix of 16-bit elements, of which each lane holds two of a row."""
    if context.modifiers("16", "MT88") != {"16", "MT88"}:
        raise context.unsupported("matrix of elements other than 16 bits")
    d, a = context.instruction.operands
    context.emit("exchange", (context.result(d),), (context.bits(a),), detail=micro.TRANSPOSE)


def _rows(context: Context, kind: int) -> tuple[int, int]:
    """Return the words ACCESS and DETAIL of an LDSM or STSM."""
    modifiers = context.modifiers("16", "M88", "MT88", "2", "4")
    if "16" not in modifiers:
        raise context.unsupported("matrix of elements other than 16 bits")
    how = MATRIX_ROW_BYTES | kind << micro.KIND_SHIFT | SHARED << micro.SPACE_SHIFT
    detail = matrix_count(context.instruction.modifiers) | TRANSPOSED * ("MT88" in modifiers)
    return how, detail


def hmma(context: Context) -> None:
    shape = _shape(context)
    modifiers = context.modifiers("F32", "F16", "BF16", "TF32", "SP", shape.shape)
    format_ = BF16 if "BF16" in modifiers else TF32 if "TF32" in modifiers else F16
    _emit(context, shape, format_, format_, F32 if "F32" in modifiers else HALF)


def imma(context: Context) -> None:
    shape = _shape(context)
    modifiers = context.modifiers("S8", "U8", "S4", "U4", "SAT", "SP", shape.shape)
    _emit(context, shape, *_formats(context), S32_SATURATED if "SAT" in modifiers else S32)


def qmma(context: Context) -> None:
    shape = _shape(context)
    modifiers = context.modifiers("F32", "F16", "E4M3", "E5M2", "SP", shape.shape)
    _emit(context, shape, *_formats(context), F32 if "F32" in modifiers else HALF)


def bmma(context: Context) -> None:
    """BMMA counts, for each element of C, the bits that are set in a row of A combined with a column of B."""
    shape = _shape(context)
    modifiers = context.modifiers("XOR", "AND", "POPC", shape.shape)
    if "POPC" not in modifiers:
        raise context.unsupported("combination of bits")
    _emit(context, shape, B1, B1, S32, XOR_BIT if "XOR" in modifiers else 0)


def dmma(context: Context) -> None:
    shape = _shape(context)
    context.modifiers(shape.shape)
    _emit(context, shape, F16, F16, F64)


def _shape(context: Context) -> MatrixMultiply:
    found = matrix_multiply(context.instruction)
    if found is None:
        raise context.unsupported("shape")
    return found


def _formats(context: Context) -> tuple[int, int]:
    """Return the formats of A and of B, which the instruction names in this order."""
    found = [_FORMATS[m] for m in context.instruction.modifiers if m in _FORMATS]
    if len(found) != 2:
        raise context.unsupported("format of the elements")
    return found[0], found[1]


def _emit(
    context: Context, shape: MatrixMultiply, format_a: int, format_b: int, accumulator: int, extra: int = 0
) -> None:
    """Emit the multiplication. The operands of a sparse one end with the register of its metadata and a number."""
    d, *sources = context.instruction.operands
    sparse: tuple[Source, ...] = ()
    if shape.sparse:
        *sources, metadata, selector = sources
        if metadata.kind != OperandKind.REGISTER or selector.kind != OperandKind.IMMEDIATE:
            raise context.unsupported("operand form")
        sparse = (Source(context.row(metadata)),)
        extra |= SPARSE_BIT | (selector.value & SELECTOR_MASK) << SELECTOR_SHIFT
    if accumulator in (F32, HALF):
        extra |= cut(context, shape)
    for source, suffixes in zip(sources, (("", "ROW"), ("", "COL"), ("",)), strict=True):
        if source.kind != OperandKind.REGISTER or source.negate or source.absolute or source.suffix not in suffixes:
            raise context.unsupported("operand form")
    abc = [Source(context.row(source)) for source in sources]
    immediates = (shape.depth, accumulator, shape.rows)
    detail = format_a | format_b << FORMAT_SHIFT | extra
    context.emit("multiply_matrix", (context.result(d),), (*abc, *sparse), immediates, detail=detail)


def cut(context: Context, shape: MatrixMultiply) -> int:
    """Return what of DETAIL says how the products of floats are summed."""
    how = tensor_sum(context.program.arch, shape.precision)
    registers = how.step_bytes // _REGISTER_BYTES * (2 if shape.sparse else 1)
    return how.fraction_bits << CUT_SHIFT | registers << STEP_SHIFT
