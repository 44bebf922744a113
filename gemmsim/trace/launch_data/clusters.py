"""Says how the blocks of a launch form clusters (sm_90 and later), and refuses clusters that CUDA refuses.

The blocks of a cluster are neighbours in the grid. Their rank counts along x first, then y, then z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch

# Most blocks of a cluster (CUDA C++ Programming Guide, "Thread Block Clusters"): what every GPU takes from sm_90 on,
# and what those of the data centre take where the kernel allows it (cudaFuncAttributeNonPortableClusterSizeAllowed).
PORTABLE_BLOCKS, MOST_BLOCKS = 8, 16
_LARGE_CLUSTERS = ("sm_90", "sm_100", "sm_103")
_FIRST = 90
# Opcodes by which blocks of a cluster may reach one another: its barrier, mbarriers, and what arrives at these
_MEETING = ("UCGABAR_ARV", "UCGABAR_WAIT", "SYNCS", "STAS", "REDAS", "UTMALDG", "UTMASTG", "UBLKCP", "UBLKRED")


@dataclass(frozen=True)
class Clusters:
    """How blocks form clusters.

    shape     (x, y, z): blocks of a cluster along each axis
    grid      (x, y, z): blocks of the grid
    explicit  whether the launch or the kernel asks for clusters; else each block is a cluster of its own
    """

    shape: tuple[int, int, int]
    grid: tuple[int, int, int]
    explicit: bool

    @property
    def blocks(self) -> int:
        """The number of blocks of a cluster."""
        return math.prod(self.shape)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The number of clusters along each axis of the grid."""
        x, y, z = (blocks // size for blocks, size in zip(self.grid, self.shape, strict=True))
        return x, y, z

    def places(self, blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for blocks, given by their linear ids, their cluster's number and their rank in it."""
        gx, gy, _ = self.grid
        numbers, ranks = np.zeros_like(blocks), np.zeros_like(blocks)
        axes = (blocks % gx, blocks // gx % gy, blocks // (gx * gy))
        for place, size, count in reversed(list(zip(axes, self.shape, self.counts, strict=True))):
            numbers, ranks = numbers * count + place // size, ranks * size + place % size
        return numbers, ranks

    def rank(self, block: int) -> int:
        return int(self.places(np.array([block]))[1][0])

    def members(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the linear ids of the blocks of clusters, given by their numbers: int64 [clusters, ranks]."""
        blocks = np.arange(math.prod(self.grid))
        number, rank = self.places(blocks)
        return blocks[np.lexsort((rank, number))].reshape(-1, self.blocks)[numbers]


def clusters_of(program: Program, launch: Launch) -> Clusters:
    """Return how the blocks of `launch` form clusters. Raises GemmsimError, one line, where CUDA refuses the launch."""
    given, compiled_in = launch.cluster, program.cluster
    shape = given or compiled_in
    if shape is None:
        return Clusters((1, 1, 1), launch.grid, False)
    clusters, size = Clusters(shape, launch.grid, True), math.prod(shape)
    shown, kernel = _shown(shape), f"kernel '{program.name}'"
    if _number(program.arch) < _FIRST:
        raise GemmsimError(f"{kernel}: clusters of blocks need sm_90 or later, and the GPU is {program.arch}")
    if given and compiled_in and given != compiled_in:
        raise GemmsimError(f"{kernel} is compiled for clusters of {_shown(compiled_in)} blocks, not of {shown}")
    most = min(
        MOST_BLOCKS if program.arch in _LARGE_CLUSTERS else PORTABLE_BLOCKS, program.max_cluster_blocks or 1 << 30
    )
    if size > most:
        raise GemmsimError(f"{kernel}: a cluster of {shown} has {size} blocks; at most {most} may form one here")
    if any(blocks % side for blocks, side in zip(launch.grid, shape, strict=True)):
        raise GemmsimError(
            f"{kernel}: a grid of {_shown(launch.grid)} blocks cannot be divided into clusters of {shown}"
        )
    return clusters


def blocks_meet(program: Program, clusters: Clusters) -> bool:
    """Whether blocks of a cluster may wait for each other or reach each other's shared memory.

    They do so at the cluster's barrier, at mbarriers, and through generic addresses.
    """
    if clusters.blocks == 1:
        return False
    for instruction in program.instructions:
        memory = row_of(instruction).memory
        if instruction.opcode in _MEETING or (memory is not None and memory.space == "generic"):
            return True
    return False


def _shown(shape: tuple[int, int, int]) -> str:
    return " x ".join(map(str, shape))


def _number(arch: str) -> int:
    return int("".join(filter(str.isdigit, arch)) or 0)
