"""Defines `Evidence`, the outputs of all stages for one launch. The rest of this package draws conclusions from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.types import InstructionTraffic
from gemmsim.sm.types import Timing
from gemmsim.support.provenance import Provenance

if TYPE_CHECKING:
    from gemmsim.analysis.limits.occupancy import Occupancy
    from gemmsim.analysis.limits.roofline import Roofline


@dataclass(frozen=True)
class Evidence:
    """What all stages found out about one launch of one program on one GPU.

    grid, block           (x, y, z)
    cluster               (x, y, z) blocks of a cluster; None where the launch has none
    dynamic_shared_bytes  dynamic shared memory of a block
    executed              warp-level executions of each static instruction over the whole launch, parallel to
                          `program.instructions`
    traffic               one `InstructionTraffic` for each memory instruction that was executed
    counters              Nsight Compute's metric name -> value; provenance has the same keys
    warm_caches           whether L2 held at the start what an identical launch had left in it
    continued_caches      whether L2 held at the start what another launch had left in it
    """

    program: Program
    gpu: GpuSpec
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    executed: tuple[float, ...]
    traffic: tuple[InstructionTraffic, ...]
    counters: dict[str, float]
    provenance: dict[str, Provenance]
    occupancy: Occupancy
    roofline: Roofline
    timing: Timing
    warm_caches: bool = False
    continued_caches: bool = False
    cluster: tuple[int, int, int] | None = None

    @property
    def caches(self) -> str:
        """How L2 begins: "cold", "warm" or "continued"."""
        return "continued" if self.continued_caches else "warm" if self.warm_caches else "cold"

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.program.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def l2_sectors(self) -> float:
        """Number of sectors that all memory instructions moved between L1 and L2."""
        return float(sum(row.l2_sectors for row in self.traffic))

    @property
    def dram_sectors(self) -> float:
        return float(sum(row.dram_sectors for row in self.traffic))

    @property
    def warp_instructions(self) -> float:
        return sum(self.executed)
