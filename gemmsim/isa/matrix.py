"""What the matrix instructions multiply: shapes and precisions of HMMA, IMMA and DMMA, told from their modifiers."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import Instruction

_COLUMNS = 8
# What an opcode's name says of its shape -> (rows of A, columns of A)
_SHAPES = {
    "HMMA": {"16816": (16, 16), "1688": (16, 8), "1684": (16, 4)},
    "IMMA": {"16832": (16, 32), "16816": (16, 16), "8816": (8, 16)},
    "DMMA": {"884": (8, 4), "8x8x4": (8, 4), "16x8x4": (16, 4), "16x8x8": (16, 8), "16x8x16": (16, 16)},
}


@dataclass(frozen=True, slots=True)
class MatrixMultiply:
    """C [rows, 8] += A [rows, depth] @ B [depth, 8], a warp; shape: the modifier that says so.

    precision  of A and B: "tensor_fp16", "tensor_bf16", "tensor_tf32", "tensor_fp64" or "tensor_int8"
    """

    rows: int
    depth: int
    precision: str
    shape: str

    @property
    def operations(self) -> int:
        """Of a warp: a multiply-add counts two."""
        return 2 * self.rows * _COLUMNS * self.depth


def matrix_multiply(instruction: Instruction) -> MatrixMultiply | None:
    """What `instruction` multiplies; None where it does not, or in a shape not known here."""
    shapes = _SHAPES.get(instruction.opcode, {})
    found = [modifier for modifier in instruction.modifiers if modifier in shapes]
    if len(found) != 1:
        return None
    rows, depth = shapes[found[0]]
    return MatrixMultiply(rows, depth, _precision(instruction), found[0])


def _precision(instruction: Instruction) -> str:
    if instruction.opcode == "HMMA":
        return "tensor_" + next((m.lower() for m in instruction.modifiers if m in ("BF16", "TF32")), "fp16")
    return "tensor_fp64" if instruction.opcode == "DMMA" else "tensor_int8"
