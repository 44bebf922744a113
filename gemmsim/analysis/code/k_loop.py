"""The loop over K in the machine code, and which part of what it issues is products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmsim.analysis.code.instruction_mix import Kind, kind_of
from gemmsim.isa.program import INSTRUCTION_BYTES, OperandKind, Program

_GLOBAL_READS = ("LDG", "LDGSTS")


@dataclass(frozen=True, slots=True)
class KLoop:
    """start, stop: indices of its first instruction and behind its last; the others: warp instructions executed in it.

    products  multiply-adds, of scalars or matrices (FFMA, HMMA, ...)
    """

    start: int
    stop: int
    instructions: float
    products: float

    @property
    def product_share(self) -> float:
        return self.products / self.instructions


def loops(program: Program) -> tuple[range, ...]:
    """Index ranges that backward branches close, but for the endless branch behind the code."""
    found = []
    for index, instruction in enumerate(program.instructions):
        for operand in instruction.operands:
            if operand.kind is OperandKind.TARGET and operand.value < instruction.offset:
                found.append(range(operand.value // INSTRUCTION_BYTES, index + 1))
    return tuple(found)


def k_loop(program: Program, executed: Sequence[float]) -> KLoop | None:
    """Of the loops that compute products, the one in which most were; `executed` runs parallel to the instructions.

    A loop around it that reads no more of A and B is part of it (k within a tile); one around that (the tiles of a
    persistent block) is not: taken is the smallest loop that holds both products and reads of global memory, where
    there is one. None where no loop computed any.
    """
    products = [kind_of(one) is Kind.FMA for one in program.instructions]
    reads = [one.opcode in _GLOBAL_READS for one in program.instructions]

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
