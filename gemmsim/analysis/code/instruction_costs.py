"""Works out what each instruction of the machine code cost: executions, waiting, memory traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.code.source_lines import source_line
from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import SourceLine
from gemmsim.memory.types import InstructionTraffic
from gemmsim.sm.types import STALL_REASONS

_ENDS = ("BRA", "BRX", "RET", "EXIT", "CALL", "JMP")  # what is behind them was not reached from what is before them
_BARRIER = STALL_REASONS.index("barrier")


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """What one static instruction cost over the whole launch.

    line         source line, None where the program has none for it
    text         SASS
    executed     warp-level executions
    stall_share  share of the modelled SM's warp cycles that were spent waiting to issue it, from 0 to 1; of a barrier,
                 and waiting at it
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


def waits_of_instructions(evidence: Evidence) -> NDArray[np.float64]:
    """Return cycles of warps by instruction and stall reason: float64 [instructions, reasons], as STALL_REASONS.

    A warp that waits at a barrier is held up at the first instruction behind it that may not pass it; here these cycles
    are the barrier's.
    """
    samples, code = evidence.timing.stall_samples.copy(), evidence.program.instructions
    ends = np.array([one.opcode in _ENDS for one in code], bool)
    barrier = np.array([row_of(one).kind is Kind.BARRIER for one in code], bool)
    for index in np.flatnonzero(samples[:, _BARRIER]).tolist():
        before = np.flatnonzero((barrier | ends)[:index])
        if len(before) and barrier[before[-1]]:
            samples[before[-1], _BARRIER] += samples[index, _BARRIER]
            samples[index, _BARRIER] = 0
    return samples


def instruction_costs(evidence: Evidence) -> tuple[InstructionCost, ...]:
    """Return the cost of each instruction of the program, in program order."""
    program, samples = evidence.program, waits_of_instructions(evidence)
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
