"""Says what HMMA, QMMA, IMMA, BMMA, DMMA and Hopper's HGMMA, QGMMA, IGMMA multiply, and how many matrices LDSM and STSM
move."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import ZERO, Instruction, OperandKind

WARPGROUP_WARPS = 4
WARPGROUP_ROWS = 64  # of A, of which each warp multiplies 16
WARPGROUP_DEPTH_BYTES = 32  # of a row of A, and of a column of B, whatever their type
MATRIX_ROW_BYTES = 16  # bytes in a row of an 8 x 8 matrix of 16-bit elements, as LDSM and STSM move them
_COLUMNS = 8
_WARPGROUP_SHAPE = re.compile(r"64x(?P<columns>\d+)x(?P<depth>\d+)")


@dataclass(frozen=True, slots=True)
class MatrixMultiply:
    """One matrix multiply-add of one warp: C [rows, columns] += A [rows, depth] @ B [depth, columns].

    precision  type of the elements of A and B: "tensor_fp16", "tensor_bf16", "tensor_tf32", "tensor_fp64",
               "tensor_fp8", "tensor_int8", "tensor_int4" or "tensor_b1"
    shape      the modifier that says rows and depth ("16816": 16 rows, 8 columns, depth 16; "64x128x16": 16 rows of
               the 64 that the four warps of a warpgroup multiply, 128 columns, depth 16)
    sparse     whether half of the elements of each row of A are zeros that no register holds
    """

    rows: int
    depth: int
    precision: str
    shape: str
    sparse: bool = False
    columns: int = _COLUMNS

    @property
    def operations(self) -> int:
        """The number of arithmetic operations of the warp, in which a multiply-add counts two. Multiplications by the
        zeros of a sparse A are not carried out and do not count."""
        return 2 * self.rows * self.columns * self.depth // (2 if self.sparse else 1)


def matrix_multiply(instruction: Instruction) -> MatrixMultiply | None:
    """Return the multiplication that `instruction` makes; None where it multiplies no matrices, or its shape is not in
    the table."""
    row = row_of(instruction)
    if row.kind is Kind.WARPGROUP_MULTIPLY:
        return _warpgroup_multiply(instruction, row.precision)
    found = [modifier for modifier in instruction.modifiers if modifier in row.shapes]
    if len(found) != 1:
        return None
    rows, depth = row.shapes[found[0]]
    return MatrixMultiply(rows, depth, row.precision, found[0], "SP" in instruction.modifiers)


def _warpgroup_multiply(instruction: Instruction, precision: str) -> MatrixMultiply | None:
    """Return one warp's part of a multiplication. One whose result is dropped closes a group and multiplies nothing."""
    found = next(filter(None, map(_WARPGROUP_SHAPE.fullmatch, instruction.modifiers)), None)
    if found is None or instruction.operands[0].index == ZERO:
        return None
    sparse = "SP" in instruction.modifiers
    rows = WARPGROUP_ROWS // WARPGROUP_WARPS
    return MatrixMultiply(rows, int(found["depth"]), precision, found[0], sparse, int(found["columns"]))


def warpgroup_columns(instruction: Instruction) -> int:
    """Return the columns of B that an HGMMA, QGMMA or IGMMA multiplies: 0 for one that only closes a group."""
    shape = matrix_multiply(instruction)
    return shape.columns if shape else 0


def warpgroup_bytes(instruction: Instruction) -> tuple[int, int]:
    """Return how many bytes of A and of B an HGMMA, QGMMA or IGMMA reads from shared memory, for its four warps
    together."""
    columns = warpgroup_columns(instruction)
    from_registers = columns == 0 or instruction.operands[1].kind == OperandKind.REGISTER
    return 0 if from_registers else WARPGROUP_ROWS * WARPGROUP_DEPTH_BYTES, columns * WARPGROUP_DEPTH_BYTES


def matrix_count(modifiers: Collection[str]) -> int:
    """Return how many matrices an LDSM or STSM with these modifiers moves: 1, 2 or 4."""
    return next((int(m) for m in modifiers if m in ("2", "4")), 1)
