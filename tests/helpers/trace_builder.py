"""Small traces made by hand: programs of memory instructions, and what each warp of each block accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gemmsim.isa.program import Control, Instruction, Program
from gemmsim.trace.launch_data.clusters import Clusters
from gemmsim.trace.types import Launch, Patterns, WarpTrace

Lanes = Sequence[int | None]  # 32 byte addresses, None where the lane is inactive
Accesses = Sequence[tuple[int, Lanes]]  # (instruction index, lanes), in program order
_CONTROL = Control(1, False, None, None, 0, 0)


def program(*mnemonics: str) -> Program:
    """A program of these instructions ("LDG.E.128"), without operands."""
    instructions = tuple(
        Instruction(16 * i, m.split(".")[0], tuple(m.split(".")[1:]), (), None, _CONTROL, (), m, 0)
        for i, m in enumerate(mnemonics)
    )
    return Program("built", "built", "sm_80", "c", instructions, (), 32, 0, 0, 0, (), 0)


def launch(grid: tuple[int, int, int] = (1, 1, 1), threads: int = 32) -> Launch:
    return Launch(grid, (threads, 1, 1), ())


def alone(blocks: int) -> Clusters:
    """A grid of so many blocks that form no clusters."""
    return Clusters((1, 1, 1), (blocks, 1, 1), False)


def warp_trace(
    instructions: int, blocks: Mapping[int, Sequence[Accesses]], weight: Sequence[float] | None = None
) -> WarpTrace:
    """The trace of `blocks`: linear block id -> what each of its warps accesses. Every block has as many warps."""
    patterns: dict[tuple[int | None, ...], int] = {}
    pcs, pattern, bases, starts = [], [], [], [0]
    executed = np.zeros((len(blocks), instructions), np.int64)
    threads = np.zeros_like(executed)
    for row, warps in enumerate(blocks.values()):
        for accesses in warps:
            for pc, lanes in accesses:
                addresses = [a for a in lanes if a is not None]
                executed[row, pc] += 1
                threads[row, pc] += len(addresses)
                if not addresses:
                    continue
                base = min(addresses) // 128 * 128
                shape = tuple(None if a is None else a - base for a in lanes)
                pcs.append(pc)
                bases.append(base)
                pattern.append(patterns.setdefault(shape, len(patterns)))
            starts.append(len(pcs))
    warps_per_block = len(next(iter(blocks.values())))
    return WarpTrace(
        warps_per_block=warps_per_block,
        blocks=np.array(list(blocks), np.int64),
        weight=np.array(weight if weight is not None else [1.0] * len(blocks), np.float64),
        executed=executed,
        threads_executed=threads,
        record_start=np.array(starts, np.int64),
        record_pc=np.array(pcs, np.int32),
        record_pattern=np.array(pattern, np.int32),
        record_base=np.array(bases, np.uint64),
        pc_start=np.zeros(len(starts), np.int64),
        pc=np.zeros(0, np.int32),
        patterns=Patterns(
            np.array([[0 if a is None else a for a in shape] for shape in patterns], np.int64).reshape(-1, 32),
            np.array([sum(1 << lane for lane, a in enumerate(s) if a is not None) for s in patterns], np.uint32),
        ),
    )
