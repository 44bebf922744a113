"""Lowers matrix instructions, each to one micro-operation on all lanes that `gemmsim.trace.engine.matrix` executes."""

from __future__ import annotations

from gemmsim.isa.matrix import MATRIX_ROW_BYTES, MatrixMultiply, matrix_count, matrix_multiply
from gemmsim.isa.program import OperandKind
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source
from gemmsim.trace.lower.memory import address
from gemmsim.trace.micro import SHARED

F16, BF16, TF32, S8, U8 = range(5)  # formats of A and B
F32, F64, S32, S32_SATURATED = range(4)  # formats of the accumulator
TRANSPOSED = 8


def ldsm(context: Context) -> None:
    """LDSM.16.M88[.2|.4] Rd, [address] loads one, two or four matrices; .MT88 transposes them."""
    modifiers = context.modifiers("16", "M88", "MT88", "2", "4")
    if "16" not in modifiers:
        raise context.unsupported("matrix of elements other than 16 bits")
    d, where = context.instruction.operands
    count = matrix_count(context.instruction.modifiers)
    source = address(context, where, SHARED)
    how = MATRIX_ROW_BYTES | micro.LOAD << micro.KIND_SHIFT | SHARED << micro.SPACE_SHIFT
    detail = count | TRANSPOSED * ("MT88" in modifiers)
    context.emit("load_matrix", (context.result(d),), (source,), access=how, detail=detail)


def hmma(context: Context) -> None:
    shape = _shape(context)
    modifiers = context.modifiers("F32", "BF16", "TF32", shape.shape)
    if "F32" not in modifiers:
        raise context.unsupported("accumulation in half precision")
    format_ = BF16 if "BF16" in modifiers else TF32 if "TF32" in modifiers else F16
    _emit(context, shape, format_, format_, F32)


def imma(context: Context) -> None:
    shape = _shape(context)
    modifiers = context.modifiers("S8", "U8", "SAT", shape.shape)
    formats = [S8 if m == "S8" else U8 for m in context.instruction.modifiers if m in ("S8", "U8")]
    if len(formats) != 2:
        raise context.unsupported("integer format")
    _emit(context, shape, formats[0], formats[1], S32_SATURATED if "SAT" in modifiers else S32)


def dmma(context: Context) -> None:
    shape = _shape(context)
    context.modifiers(shape.shape)
    _emit(context, shape, F16, F16, F64)


def _shape(context: Context) -> MatrixMultiply:
    found = matrix_multiply(context.instruction)
    if found is None:
        raise context.unsupported("shape")
    return found


def _emit(context: Context, shape: MatrixMultiply, format_a: int, format_b: int, accumulator: int) -> None:
    d, *sources = context.instruction.operands
    for source, suffixes in zip(sources, (("", "ROW"), ("", "COL"), ("",)), strict=True):
        if source.kind != OperandKind.REGISTER or source.negate or source.absolute or source.suffix not in suffixes:
            raise context.unsupported("operand form")
    a, b, c = (Source(context.row(source)) for source in sources)
    immediates = (shape.depth, accumulator, shape.rows)
    context.emit("multiply_matrix", (context.result(d),), (a, b, c), immediates, detail=format_a | format_b << 4)
