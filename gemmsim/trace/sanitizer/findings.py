"""Defines what the sanitizer returns: findings, the threads and instructions where they occur, and a run's outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gemmsim.isa.program import Instruction, SourceLine


class Defect(StrEnum):
    """The kinds of findings, as reports name them.

    A new kind also touches `checks`, `shadow` and `shadow_state` of this package, and `_without_false_findings` in
    `gemmsim.trace.sanitize`, whose first docstring says what each of these places holds.
    """

    RACE = "race"
    UNWAITED_COPY = "unwaited copy"
    UNWAITED_PRODUCT = "unwaited wgmma"
    MISSING_FENCE = "missing fence"
    PHASE = "mbarrier phase"
    BYTES_EXPECTED = "expected bytes"
    UNINITIALISED = "uninitialised read"
    OUT_OF_BOUNDS = "out of bounds"
    OVERRUN = "beyond an array"
    MISALIGNED = "misaligned"
    DIVERGENT_BARRIER = "divergent barrier"
    ENDED_BLOCK = "ended block"
    FAULT = "fault"  # a trap, or a matrix instruction without all lanes


@dataclass(frozen=True, slots=True)
class Site:
    """One thread at one instruction.

    does     "reads", "writes", "updates" (atomic), "copies to", "copies from", "multiplies" (wgmma), "waits at", "ends
             at", "executes", "arrives", "waits", "completes a phase", "expects bytes", "initialises",
             "uses" (an mbarrier)
    line     innermost source line, None where the code has none
    text     what stands in that line, "" where it could not be read
    thread   (x, y, z) in its block
    """

    does: str
    instruction: Instruction
    line: SourceLine | None
    text: str
    thread: tuple[int, int, int]
    warp: int
    lane: int

    @property
    def where(self) -> str:
        """The source line, as in "kernels/tiled.py:33", or the offset in the machine code where there is none."""
        if self.line is None:
            return f"offset {self.instruction.offset:#06x}"
        return f"{self.line.file}:{self.line.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of the kernel, at the accesses where it was met first.

    sentence   what is wrong, in one line
    block      (x, y, z)
    space      "shared", "global", or "constant", "" where no memory is concerned
    address    of the access's first byte; in shared memory, counted from the start of the shared memory of its block,
               and in constant memory from that of its bank; None where no memory is concerned
    at, other  the access, and the earlier one that it collides with (None where there is none)
    detail     what lies at the address, as in "argument 1 (f32[256,256]), element [256, 3]"; which other blocks of the
               cluster are concerned; "" where there is nothing to say
    count      how often the lines of `at` and `other` had this defect in the blocks executed
    """

    defect: Defect
    sentence: str
    block: tuple[int, int, int]
    space: str
    address: int | None
    width_bytes: int
    at: Site
    other: Site | None
    detail: str
    count: int

    def key(self) -> tuple[object, ...]:
        """Return the key by which findings are joined: those with equal keys are shown as one."""
        other = (self.other.where, self.other.does) if self.other else ()
        return self.defect, self.space, self.at.where, self.at.does, other


@dataclass(frozen=True)
class Sanitized:
    """The outcome of a run: findings, in the order in which they were met, and which blocks were executed.

    blocks        blocks executed
    blocks_total  blocks of the grid
    stopped       whether a block could not be finished, so that later ones were not looked at
    lost          number of findings for which the table had no room
    notes         what was not looked for, and why
    """

    findings: tuple[Finding, ...]
    blocks: int
    blocks_total: int
    stopped: bool = False
    lost: int = 0
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.findings
