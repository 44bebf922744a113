"""Counts the arithmetic operations that a launch executed, as Nsight Compute's roofline does."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import WarpTrace

_PRECISIONS = ("fp32", "fp64", "fp16")  # these are listed even where none was counted
# HFMA2 Rd, -RZ, RZ, x, y only loads a constant.
_CONSTANT_LOAD = "-RZ, RZ"


@dataclass(frozen=True, slots=True)
class Operations:
    """Thread-level arithmetic operations of the whole launch, by precision.

    `precision` is the precision with most operations, and `total` is the number of its operations.
    """

    by_precision: dict[str, float]

    @property
    def precision(self) -> str:
        return max(self.by_precision, key=lambda p: self.by_precision[p])

    @property
    def total(self) -> float:
        return self.by_precision[self.precision]


def floating_point_operations(program: Program, trace: WarpTrace) -> Operations:
    """Count the floating-point operations of a launch, from how many threads executed each instruction.

    A block of the trace that stands for several blocks of the grid counts as many times as its weight says.
    """
    threads = trace.weight @ trace.threads_executed
    totals = dict.fromkeys(_PRECISIONS, 0.0)
    for instruction, count in zip(program.instructions, threads.tolist(), strict=True):
        if _CONSTANT_LOAD in instruction.text:
            continue
        matrices = matrix_multiply(instruction)
        row = row_of(instruction)
        if matrices is not None:  # its operations are those of a warp, `count` is of threads
            totals[matrices.precision] = totals.get(matrices.precision, 0.0) + matrices.operations / WARP_LANES * count
        elif row.operations:
            totals[row.precision] += row.operations * count
    return Operations(totals)
