"""The ring of stages that bulk copies fill in shared memory: when each stage was asked for, full, and free again.

A stage is an mbarrier that bulk copies complete. It is full when a phase of it ends, and free when a phase ends of the
mbarrier for which the copying warp waits before it fills the stage again. Where the warp waits for none (a barrier of
the block tells it), a stage is called free when it is next asked for, or when the block ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.sm.sync_rows import OWN_NUMBER
from gemmsim.trace.types import WarpTrace


@dataclass(frozen=True)
class Ring:
    """The stages of one block.

    block   its number, as `WarpStay` has it
    stages  how many there are
    told    whether mbarriers tell when stages are free
    fills   int32 [n, 4]: a stage, and the cycles in which it was asked for, full, and free again; by ascending cycle of
            asking
    """

    block: int
    stages: int
    told: bool
    fills: NDArray[np.int32]

    def held(self, from_column: int, to_column: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mean number of stages that are between two events in the cycles from each edge to the next.

        from_column, to_column  1, 2 or 3: columns of `fills`
        """
        begin = np.maximum(self.fills[:, from_column, None], edges[:-1])
        end = np.minimum(self.fills[:, to_column, None], edges[1:])
        cycles: NDArray[np.float64] = np.maximum(end - begin, 0).sum(axis=0) / np.diff(edges)
        return cycles


def freeing(program: Program, trace: WarpTrace, warps: Sequence[int]) -> dict[int, int]:
    """Return {mbarrier: mbarrier}: which one tells that the stage of another is free, for the warps of one block.

    It is the one for which a warp last waited before it copied, most times; an mbarrier to which copies come is none.
    """
    syncs = trace.syncs
    if syncs is None:
        return {}
    copies = np.array([row_of(i).kind is Kind.BULK_COPY for i in program.instructions], bool)
    waits = np.array(["PHASECHK" in i.modifiers for i in program.instructions], bool)
    seen: Counter[tuple[int, int]] = Counter()
    rows = [range(int(syncs.start[warp]), int(syncs.start[warp + 1])) for warp in warps]
    pcs = [trace.pc[trace.pc_start[warp] + syncs.at[list(mine)]] for warp, mine in zip(warps, rows, strict=True)]
    filled = {
        int(syncs.barrier[row]) & OWN_NUMBER
        for mine, pc in zip(rows, pcs, strict=True)
        for row, one in zip(mine, pc.tolist(), strict=True)
        if copies[one] and syncs.barrier[row] >= 0
    }
    for mine, pc in zip(rows, pcs, strict=True):
        waited = -1
        for row, one in zip(mine, pc.tolist(), strict=True):
            number = int(syncs.barrier[row]) & OWN_NUMBER
            if waits[one] and number not in filled:
                waited = number
            elif copies[one] and syncs.barrier[row] >= 0 and waited >= 0:
                seen[number, waited] += 1
    pairs: dict[int, int] = {}
    for (stage, waited), _ in seen.most_common():
        pairs.setdefault(stage, waited)
    return pairs


def ring_of(
    block: int,
    mbarriers: NDArray[np.int64],
    asked: dict[int, int],
    opened: dict[int, int],
    frees: dict[int, int],
    end: int,
) -> Ring | None:
    """Make the ring of a block out of what was recorded; None where no copy filled a stage.

    mbarriers  int64 [gates] the mbarrier of which each gate of the block is a phase
    asked      {gate: cycle in which the first copy to it was issued}
    opened     {gate: cycle in which it was complete}
    frees      what `freeing` returned
    end        cycle in which the block ended
    """
    stages = sorted({int(mbarriers[gate]) for gate in asked})
    if not stages:
        return None
    times: dict[int, list[int]] = {}
    for gate, cycle in opened.items():
        times.setdefault(int(mbarriers[gate]), []).append(cycle)
    fills = []
    for place, stage in enumerate(stages):
        begins = sorted((cycle, gate) for gate, cycle in asked.items() if mbarriers[gate] == stage)
        free = sorted(times.get(frees.get(stage, -1), []))
        for (begin, gate), (again, _) in pairwise([*begins, (end, -1)]):
            full = min(opened.get(gate, end), end)
            fills.append((place, begin, full, min([again, *(cycle for cycle in free if cycle >= full)])))
    rows = np.array(sorted(fills, key=lambda fill: fill[1:]), np.int32).reshape(-1, 4)
    return Ring(block, len(stages), all(stage in frees for stage in stages), rows)
