"""Finds the loop over K in the machine code, and the share of multiply-adds among the instructions it issues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmsim.analysis.code.instruction_mix import class_of
from gemmsim.isa.opcodes import MemoryAccess, MixClass, row_of
from gemmsim.isa.program import INSTRUCTION_BYTES, OperandKind, Program

_GLOBAL_READS = (MemoryAccess("global", "ld"), MemoryAccess("global", "ldgsts"))


@dataclass(frozen=True, slots=True)
class KLoop:
    """The loop over K in the machine code.

    start, stop   index of its first instruction, and of the first one behind it
    instructions  warp instructions executed in it
    products      those of them that multiply and add scalars or matrices (FFMA, HMMA, ...)
    """

    start: int
    stop: int
    instructions: float
    products: float

    @property
    def product_share(self) -> float:
        return self.products / self.instructions


def loops(program: Program) -> tuple[range, ...]:
    """Find the loops of a program: each is the range of indices from a backward branch's target to the branch.

    The branch behind the code, which jumps to itself, is left out.
    """
    found = []
    for index, instruction in enumerate(program.instructions):
        for operand in instruction.operands:
            if operand.kind is OperandKind.TARGET and operand.value < instruction.offset:
                found.append(range(operand.value // INSTRUCTION_BYTES, index + 1))
    return tuple(found)


def k_loop(program: Program, executed: Sequence[float]) -> KLoop | None:
    """Find the loop over K: of the loops that compute products, the one in which most products were executed.

    executed  warp-level executions of each instruction, parallel to `program.instructions`

    Loops nest. The loop over K is the one that reads the tiles of A and B. A loop over the k of one tile may lie inside
    it, and in a persistent block a loop over the tiles of C lies around it. So the smallest loops that hold both
    products and reads of global memory are preferred, where there are any. The result is None where none computed
    products.
    """
    products = [class_of(one) is MixClass.FMA for one in program.instructions]
    reads = [row_of(one).memory in _GLOBAL_READS for one in program.instructions]

    def counted(loop: range) -> float:
        return float(sum(executed[i] for i in loop if products[i]))

    computing = [loop for loop in loops(program) if counted(loop)]
    with_reads = [loop for loop in computing if any(reads[i] and executed[i] for i in loop)]
    smallest = [loop for loop in with_reads if not any(_inside(other, loop) for other in with_reads)]
    loop = max(smallest or computing, key=lambda loop: (counted(loop), len(loop)), default=None)
    if loop is None:
        return None
    return KLoop(loop.start, loop.stop, float(sum(executed[i] for i in loop)), counted(loop))


def _inside(inner: range, outer: range) -> bool:
    return inner != outer and outer.start <= inner.start and inner.stop <= outer.stop
