"""Counts the registers that hold a value which is still needed, at each instruction of the machine code."""

from __future__ import annotations

from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace.lower.lowering import lower
from gemmsim.trace.slicing.dataflow import Step, step_of


@cached_by_identity(4)
def live_registers(program: Program) -> tuple[int, ...]:
    """Return for each instruction how many registers of a thread are live before it; () where the code is not known.

    A register is live if an instruction may read it before it is overwritten. The numbers are upper bounds: a write
    under a guard counts as none, a matrix instruction may be taken to read some registers more than it does, and where
    a branch goes to what a register says, everything that any instruction needs counts.
    """
    try:
        micro = lower(program)
    except GemmsimError:
        return ()
    shared = sum(1 << row for rows in micro.warp_rows for row in rows)
    registers = (1 << micro.warp_rows[0].start) - 1  # the rows before the uniform registers'
    steps = [step_of(words, number, shared) for number, words in enumerate(micro.code.tolist())]
    live = _live(steps, registers)
    starts = micro.start[: len(program.instructions)].tolist()
    return tuple(min(live[number].bit_count(), program.registers) for number in starts)


def _live(steps: list[Step], registers: int) -> list[int]:
    """Return the rows that are live before each micro-operation, as bits; the smallest sets that fit one another."""
    live, anywhere, changed = [0] * (len(steps) + 1), 0, True
    while changed:
        changed = False
        for number in range(len(steps) - 1, -1, -1):
            step = steps[number]
            after = anywhere if step.next is None else 0
            for follower in step.next or ():
                after |= live[follower]
            if step.overwrites and step.guard is None and not step.unguarded:
                after &= ~step.writes
            before = after | (step.reads | step.control | step.unguarded) & registers
            if before != live[number]:
                live[number], changed = before, True
                anywhere |= before
    return live
