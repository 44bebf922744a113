"""Chooses which metrics Nsight Compute is asked for, and which of them a record keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gemmsim.report.metrics import METRICS

# A section of ncu adapts to the GPU: it brings the pipes, stall reasons and launch figures that this GPU has.
SECTIONS = (
    "LaunchStats",
    "Occupancy",
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
)
# Further metrics, beyond METRICS, with which the timing model is compared.
_BEYOND_THE_TABLE = (
    "l1tex__data_bank_reads.avg.pct_of_peak_sustained_active",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "l1tex__lsuin_requests.sum",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "sm__cycles_elapsed.max",
    "smsp__average_warp_latency_per_inst_issued.ratio",
    "smsp__cycles_active.avg",
    "lts__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
    "dram__cycles_elapsed.avg.per_second",
)
_KEPT_PATTERN = re.compile(
    r"launch__\w+"
    r"|smsp?__average_warps?_\w*(issue_stalled|latency)\w*\.ratio"
    r"|smsp?__inst_executed_pipe_\w+\.(sum|avg\.pct_of_peak_sustained_active)"
    r"|sm__pipe_\w+\.avg\.pct_of_peak_sustained_active"
    r"|sm__inst_issued\.avg\.pct_of_peak_sustained_active"
    r"|smsp__(warps_active|warps_eligible|issue_active)\.avg\.per_cycle_active"
    r"|smsp__issue_inst0\.avg\.pct_of_peak_sustained_active"
)
# Metrics that describe the process or the driver and say nothing about a kernel.
_DROPPED_PATTERN = re.compile(
    r"launch__(context_id|device_id|stream_id|uses_\w+|occupancy_per_\w+|func_cache_config|cluster_\w+)"
)


def wanted_metrics() -> list[str]:
    """Return the metrics to ask for beside SECTIONS, without the launch__ metrics, which every launch has anyway."""
    return sorted({name for name in (*METRICS, *_BEYOND_THE_TABLE) if not name.startswith("launch__")})


def kept_counters(counters: Mapping[str, float]) -> dict[str, float]:
    """Return those of the counters that a record keeps, with whole numbers as integers."""
    names = {*METRICS, *_BEYOND_THE_TABLE}
    return {
        name: int(value) if float(value).is_integer() else value
        for name, value in sorted(counters.items())
        if (name in names or _KEPT_PATTERN.fullmatch(name)) and not _DROPPED_PATTERN.fullmatch(name)
    }
