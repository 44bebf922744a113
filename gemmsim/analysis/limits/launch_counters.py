"""Counters that follow from a launch and its kernel alone."""

from __future__ import annotations

from gemmsim.analysis.limits.occupancy import Occupancy
from gemmsim.isa.program import Program
from gemmsim.trace.types import Launch


def launch_counters(program: Program, launch: Launch, occupancy: Occupancy) -> dict[str, float]:
    """Return, by name, counters that need no execution: Nsight Compute's launch__ metrics and theoretical occupancy."""
    counters: dict[str, float] = {
        "launch__registers_per_thread": program.registers,
        "launch__shared_mem_per_block_static": program.static_shared_bytes,
        "launch__shared_mem_per_block_dynamic": launch.dynamic_shared_bytes,
        "launch__shared_mem_config_size": occupancy.carveout_bytes,
        "launch__occupancy_limit_blocks": occupancy.limit_blocks,
        "launch__occupancy_limit_warps": occupancy.limit_warps,
        "launch__occupancy_limit_registers": occupancy.limit_registers,
        "launch__occupancy_limit_shared_mem": occupancy.limit_shared_mem,
        "sm__maximum_warps_per_active_cycle_pct": occupancy.theoretical_pct,
    }
    if occupancy.waves_per_sm is not None:
        counters["launch__waves_per_multiprocessor"] = occupancy.waves_per_sm
    return counters
