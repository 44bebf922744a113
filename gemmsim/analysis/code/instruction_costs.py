"""Works out what each instruction of the machine code cost: executions, waiting, memory traffic."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.analysis.code.source_lines import source_line
from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.program import SourceLine
from gemmsim.memory.types import InstructionTraffic
from gemmsim.sm.types import STALL_REASONS


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """What one static instruction cost over the whole launch.

    line         source line, None where the program has none for it
    text         SASS
    executed     warp-level executions
    stall_share  share of the modelled SM's warp cycles that were spent waiting to issue it, from 0 to 1
    stall        the most frequent reason of that waiting, "" where nothing waited
    others       as in `InstructionTraffic`, 0 where the instruction accesses no memory; conflicts are those of shared
                 memory only
    """

    index: int
    line: SourceLine | None
    text: str
    executed: float
    stall_share: float
    stall: str
    requests: float = 0.0
    sectors: float = 0.0
    wavefronts: float = 0.0
    conflicts: float = 0.0


def instruction_costs(evidence: Evidence) -> tuple[InstructionCost, ...]:
    """Return the cost of each instruction of the program, in program order."""
    program, samples = evidence.program, evidence.timing.stall_samples
    traffic: dict[int, list[InstructionTraffic]] = {}  # several for a generic instruction that reaches several spaces
    for row in evidence.traffic:
        traffic.setdefault(row.index, []).append(row)
    total = float(samples.sum())
    found = []
    for index, instruction in enumerate(program.instructions):
        waited, rows = samples[index], traffic.get(index, [])
        found.append(
            InstructionCost(
                index=index,
                line=source_line(program, instruction),
                text=instruction.text,
                executed=evidence.executed[index],
                stall_share=float(waited.sum()) / total if total else 0.0,
                stall=STALL_REASONS[int(waited.argmax())] if waited.any() else "",
                requests=sum(row.requests for row in rows),
                sectors=sum(row.sectors for row in rows),
                wavefronts=sum(row.wavefronts for row in rows),
                conflicts=sum(row.conflicts for row in rows if row.space == "shared"),
            )
        )
    return tuple(found)
