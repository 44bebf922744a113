"""Counts the instructions that a launch executes, by class and by mnemonic."""

from __future__ import annotations

from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.opcodes import MixClass, row_of
from gemmsim.isa.program import ZERO, Instruction
from gemmsim.support.identity_cache import cached_by_identity


def class_of(instruction: Instruction) -> MixClass:
    """Return an instruction's class. An IMAD.U32 that adds a value to 0 * 0 only moves it, so it counts as OTHER."""
    adds_to_product = instruction.opcode == "IMAD" and instruction.modifiers == ("U32",)
    if adds_to_product and all(o.index == ZERO and not o.value for o in instruction.operands[1:3]):
        return MixClass.OTHER
    return row_of(instruction).mix


def by_class(evidence: Evidence) -> dict[MixClass, float]:
    """Return how many warp instructions of each class were executed, the largest count first."""
    return _tally(evidence, _classes(evidence.program.instructions))


@cached_by_identity(4)
def _classes(instructions: tuple[Instruction, ...]) -> list[MixClass]:
    """Return the class of each instruction. The result is cached, since several rules ask about one program."""
    return [class_of(instruction) for instruction in instructions]


def by_mnemonic(evidence: Evidence) -> dict[str, float]:
    """Return how many warp instructions of each mnemonic ("LDS.128") were executed, the largest count first."""
    return _tally(evidence, [instruction.mnemonic for instruction in evidence.program.instructions])


def _tally(evidence: Evidence, names: list) -> dict:
    counts: dict = {}
    for name, executed in zip(names, evidence.executed, strict=True):
        if executed:
            counts[name] = counts.get(name, 0.0) + executed
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
