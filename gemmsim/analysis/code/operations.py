"""Counts the arithmetic operations that a launch executed, as Nsight Compute's roofline does."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import WarpTrace

# Operations of a thread in one instruction; a fused multiply-add counts as two (Nsight Compute, "Roofline Charts").
_OPERATIONS = {
    "fp32": {"FFMA": 2, "FADD": 1, "FMUL": 1},
    "fp64": {"DFMA": 2, "DADD": 1, "DMUL": 1},
    "fp16": {"HFMA2": 4, "HADD2": 2, "HMUL2": 2},
}
_OF_OPCODE = {opcode: (precision, n) for precision, each in _OPERATIONS.items() for opcode, n in each.items()}
# HFMA2 Rd, -RZ, RZ, x, y only loads a constant.
_CONSTANT_LOAD = "-RZ, RZ"


@dataclass(frozen=True, slots=True)
class Operations:
    """Thread-level operations of the whole launch by precision. `precision` is the one with most of them."""

    by_precision: dict[str, float]

    @property
    def precision(self) -> str:
        return max(self.by_precision, key=lambda p: self.by_precision[p])

    @property
    def total(self) -> float:
        return self.by_precision[self.precision]


def floating_point_operations(program: Program, trace: WarpTrace) -> Operations:
    """The operations of a launch, from the threads that executed each instruction.

    Blocks of the trace that stand for others count as many times as their weight says.
    """
    threads = trace.weight @ trace.threads_executed
    totals = dict.fromkeys(_OPERATIONS, 0.0)
    for instruction, count in zip(program.instructions, threads.tolist(), strict=True):
        if _CONSTANT_LOAD in instruction.text:
            continue
        matrices = matrix_multiply(instruction)
        if matrices is not None:  # a warp's, whose 32 threads are what is counted
            totals[matrices.precision] = totals.get(matrices.precision, 0.0) + matrices.operations / WARP_LANES * count
        if found := _OF_OPCODE.get(instruction.opcode):
            totals[found[0]] += found[1] * count
    return Operations(totals)
