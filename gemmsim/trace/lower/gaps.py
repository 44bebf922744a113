"""Says what a program needs that gemmsim has no semantics for: all of it at once, each thing only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gemmsim.isa.opcodes import OPCODES, Kind, MixClass
from gemmsim.isa.program import Instruction, Program
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that an instruction needs and that has no semantics.

    what      "opcode LEPC", "modifier .COS"
    mnemonic  of the instruction ("MUFU.COS")
    text      the first instruction of the kernel that needs it, as nvdisasm prints it
    offset    the byte offset of that instruction in the kernel
    count     number of instructions of the kernel that need it
    needed    what other instructions need of this one ("its result"); empty where the kernel computes the same without
    """

    what: str
    mnemonic: str
    text: str
    offset: int
    count: int = 1
    needed: str = ""

    @property
    def name(self) -> str:
        """Return what is missing, and of which instruction, where that does not say it: "modifier .COS of MUFU.COS"."""
        return self.what if self.what.startswith("opcode ") else f"{self.what} of {self.mnemonic}"


class UnsupportedError(GemmsimError):
    """A program has instructions without semantics. The message names all that is missing; so does `gaps`."""

    def __init__(self, gaps: Sequence[Gap], kernel: str, arch: str) -> None:
        self.gaps = tuple(gaps)
        first = self.gaps[0]
        if len(self.gaps) == 1:
            message = (
                f"{first.what} in '{first.text}' at {first.offset:#06x} of kernel '{kernel}' ({arch}): "
                f"gemmsim has no semantics for it yet, and it {_passed_over(first)}"
            )
        else:
            listed = "; ".join(f"{gap.name}, '{gap.text}' at {gap.offset:#06x}" for gap in self.gaps)
            message = (
                f"kernel '{kernel}' ({arch}) needs {len(self.gaps)} things without semantics yet: {listed}; "
                f"{_all_passed_over(self.gaps)}"
            )
        super().__init__(message)


def _passed_over(gap: Gap) -> str:
    if gap.needed:
        return f"cannot be passed over: other instructions need {gap.needed}"
    return "could be passed over: the kernel computes the same without it"


def _all_passed_over(gaps: Sequence[Gap]) -> str:
    able = [gap.name for gap in gaps if not gap.needed]
    if not able:
        return "none of them can be passed over: other instructions need what they do"
    return f"could be passed over, since the kernel computes the same without: {', '.join(able)}"


# Opcodes that prefetch or set aside cache lines, or stop for a debugger: nothing that is computed depends on them.
_HINTS = frozenset("CCTLL CCTLT UTMAPF UBLKPF UTMACCTL PLD BPT".split())  # noqa: SIM905


def _needed(instruction: Instruction) -> str:
    """Return what other instructions need of this one; nothing where it is a hint."""
    row = OPCODES.get(instruction.opcode)
    if instruction.opcode in _HINTS:
        return ""
    if row is None:
        return "what it does"
    if row.memory is not None and not row.memory.load:
        return "what it stores"
    if row.kind in (Kind.BRANCH, Kind.INDEXED_BRANCH, Kind.CALL, Kind.RETURN, Kind.EXIT):
        return "its threads where it leads"
    return "the order that it keeps" if row.mix is MixClass.CONTROL else "its result"


def unsupported(what: str, instruction: Instruction, program: Program) -> UnsupportedError:
    """Return the error that says that `instruction` needs `what`, which has no semantics."""
    return UnsupportedError(
        [Gap(what, instruction.mnemonic, instruction.text, instruction.offset, needed=_needed(instruction))],
        program.name,
        program.arch,
    )


def merged(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """Return the gaps in their order, those of the same name as one."""
    found: dict[str, Gap] = {}
    for gap in gaps:
        known = found.get(gap.name)
        found[gap.name] = replace(known, count=known.count + gap.count) if known else gap
    return tuple(found.values())
