"""Says in words who waits where when the barrier of a cluster never opens, and who came too late."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Instruction, Program
from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.launch_data.clusters import Clusters

_UNMET = (
    "threads at __syncwarp() went on without threads that its mask names, which wait elsewhere: CUDA leaves that "
    "undefined"
)


def wait_in_clusters(
    program: Program, code: NDArray[np.uint32], blocks: Mapping[int, BlockState], clusters: Clusters
) -> str:
    """Say who waits at the barrier of a cluster, and for whom; "" where nobody waits at one.

    code    the lowered program, whose micro-operations the warps' positions count
    blocks  {linear id: state} of the blocks that have not ended
    """
    numbers = clusters.places(np.array(list(blocks), np.int64))[0].tolist()
    for cluster in sorted(set(numbers)):
        members = [block for block, number in zip(blocks, numbers, strict=True) if number == cluster]
        waits = [at for block in members if (at := _at_cluster(blocks[block], code)) >= 0]
        if not waits:
            continue
        late = [f"block {block}, {found}" for block in members if (found := _not_arrived(program, code, blocks[block]))]
        return (
            f"kernel '{program.name}' never ends: the barrier of cluster {cluster} (blocks "
            f"{', '.join(map(str, clusters.members(np.array([cluster]))[0].tolist()))}) does not open. "
            f"Threads wait at {_place(program.instructions[waits[0]])}; not arrived: {'; '.join(late)}"
        )
    return ""


def notes_of_waits(program: Program, counters: NDArray[np.int64]) -> tuple[str, ...]:
    """Return what is undefined of how threads met in an execution, by the counters of its trace buffers."""
    notes = (_UNMET,) if counters[words.UNMET] else ()
    if not counters[words.LATE_ARRIVAL]:
        return notes
    place = _place(program.instructions[int(counters[words.LATE_ARRIVAL]) - 1])
    return (
        *notes,
        f"{place} arrives at an mbarrier of a block of the cluster that may have ended by then, which PTX leaves "
        "undefined: here it does nothing, as nobody can wait there any more",
    )


def _paths(state: BlockState, warp: int) -> NDArray[np.int64]:
    count = int(state.warps[warp, words.PATH_COUNT])
    paths = state.warps[warp, words.PATHS_AT : words.PATHS_AT + words.PATH_WORDS * count]
    return paths.reshape(count, words.PATH_WORDS)


def _at_cluster(state: BlockState, code: NDArray[np.uint32]) -> int:
    """Return the index of the instruction with which a path waits at the cluster's barrier; -1 where there is none."""
    for warp in range(len(state.warps)):
        for path in _paths(state, warp):
            if path[words.PATH_REASON] == words.WAIT_BLOCK and path[words.PATH_NEED] == words.CLUSTER_BARRIER:
                return int(code[path[words.PATH_PC] - 1, micro.INSTRUCTION])
    return -1


def _not_arrived(program: Program, code: NDArray[np.uint32], state: BlockState) -> str:
    """Say what the block's first threads do that have not arrived; "" where all have."""
    for warp in range(len(state.warps)):
        row = state.warps[warp]
        late = int(row[words.ALIVE]) & ~int(row[words.CLUSTER_ARRIVED])
        if not late:
            continue
        for path in _paths(state, warp):
            if not int(path[words.PATH_MASK]) & late:
                continue
            if path[words.PATH_REASON] == words.WAIT_BLOCK:
                instruction = program.instructions[int(code[path[words.PATH_PC] - 1, micro.INSTRUCTION])]
                return f"warp {warp} waits at a barrier of its block, {_place(instruction)}"
        spins = int(row[words.TURN_FLAGS]) >> words.TURN_INSTRUCTION_SHIFT
        return f"warp {warp} waits for a value at {_place(program.instructions[spins])}"
    return ""


def _place(instruction: Instruction) -> str:
    line = f" of line {instruction.sources[-1].line} of {instruction.sources[-1].file}" if instruction.sources else ""
    return f"'{instruction.text}'{line}"
