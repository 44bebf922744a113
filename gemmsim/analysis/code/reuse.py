"""Works out how often a thread uses a 4-byte word that it has loaded. Register tiles exist to raise that number."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.analysis.code.instruction_mix import class_of
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.opcodes import MixClass, row_of
from gemmsim.isa.program import Instruction
from gemmsim.memory.requests.access import access_of
from gemmsim.support.warp import WARP_LANES

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Reuse:
    """How many multiply-adds the loop over K makes and how many words it loads. Each lane of a warp instruction counts.

    products                    multiply-adds
    shared_words, global_words  4-byte words loaded into registers from shared and from global memory
    """

    products: float
    shared_words: float
    global_words: float

    @property
    def products_a_word(self) -> float | None:
        """Multiply-adds for each word loaded from shared memory, or from global memory where no shared word is."""
        words = self.shared_words or self.global_words
        return self.products / words if words else None


def reuse(evidence: Evidence) -> Reuse | None:
    """Return the reuse in the loop over K, None where the program has no such loop."""
    loop = k_loop(evidence.program, evidence.executed)
    if loop is None:
        return None
    products, words = 0.0, {"shared": 0.0, "global": 0.0}
    for index in range(loop.start, loop.stop):
        instruction, count = evidence.program.instructions[index], evidence.executed[index]
        if class_of(instruction) is MixClass.FMA:
            products += WARP_LANES * count * _products(instruction)
        access = access_of(instruction)
        if access is None or access.op != "ld":
            continue
        memory = row_of(instruction).memory
        made = {access.space: count}
        if memory is not None and memory.space == "generic":
            made = {row.space: row.requests for row in evidence.traffic if row.index == index}
        for space in words.keys() & made.keys():
            words[space] += access.width_bytes * access.lanes / WORD_BYTES * made[space]
    return Reuse(products, words["shared"], words["global"])


def _products(instruction: Instruction) -> float:
    """Return how many multiply-adds an instruction makes for each lane."""
    matrices = matrix_multiply(instruction)
    if matrices is not None:
        return matrices.operations / 2 / WARP_LANES
    return max(1, row_of(instruction).operations // 2)
