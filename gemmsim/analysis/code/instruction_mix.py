"""What kinds of instructions a launch executes."""

from __future__ import annotations

from enum import StrEnum

from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.program import Instruction
from gemmsim.support.identity_cache import cached_by_identity


class Kind(StrEnum):
    FMA = "multiply-add"
    FLOAT = "other floating point"
    INTEGER = "integer and address"
    GLOBAL = "global memory"
    SHARED = "shared memory"
    CONTROL = "control and barriers"
    OTHER = "moves, constants, other"


_OPCODES = {
    Kind.FMA: "FFMA HFMA2 DFMA IDP HMMA IMMA DMMA",
    Kind.FLOAT: "FADD FMUL FSETP FSEL FMNMX FCHK MUFU HADD2 HMUL2 DADD DMUL DSETP F2F F2I I2F I2FP F2FP FRND",
    Kind.INTEGER: """IADD IADD3 VIADD LEA LOP3 SHF ISETP SEL IMNMX VIMNMX IABS PLOP3 PRMT SGXT BMSK POPC FLO
                     UIADD3 UVIADD UIMAD ULEA ULOP3 UPLOP3 USHF UISETP USEL UIMNMX UPRMT USGXT UBMSK""",
    Kind.GLOBAL: "LDG LD STG ST ATOM ATOMG RED REDG LDGSTS LDL STL LDGDEPBAR",
    Kind.SHARED: "LDS STS LDSM STSM ATOMS",
    Kind.CONTROL: "BRA BRX BSSY BSYNC BREAK EXIT BAR WARPSYNC CALL RET YIELD DEPBAR MEMBAR NOP BMOV",
}
_KIND_OF = {opcode: kind for kind, names in _OPCODES.items() for opcode in names.split()}


def kind_of(instruction: Instruction) -> Kind:
    """The kind of an instruction. An IMAD that only moves a value counts as a move, every other one as integer work."""
    if instruction.opcode == "IMAD":
        moves = "MOV" in instruction.modifiers or (
            instruction.modifiers == ("U32",) and all(o.index == -1 and not o.value for o in instruction.operands[1:3])
        )
        return Kind.OTHER if moves else Kind.INTEGER
    return _KIND_OF.get(instruction.opcode, Kind.OTHER)


def by_kind(evidence: Evidence) -> dict[Kind, float]:
    """Warp instructions executed of each kind, most first."""
    return _tally(evidence, _kinds(evidence.program.instructions))


@cached_by_identity(4)
def _kinds(instructions: tuple[Instruction, ...]) -> list[Kind]:
    """The kinds of a program's instructions; kept, because several rules ask for them."""
    return [kind_of(instruction) for instruction in instructions]


def by_mnemonic(evidence: Evidence) -> dict[str, float]:
    """Warp instructions executed of each mnemonic ("LDS.128"), most first."""
    return _tally(evidence, [instruction.mnemonic for instruction in evidence.program.instructions])


def _tally(evidence: Evidence, names: list) -> dict:
    counts: dict = {}
    for name, executed in zip(names, evidence.executed, strict=True):
        if executed:
            counts[name] = counts.get(name, 0.0) + executed
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
