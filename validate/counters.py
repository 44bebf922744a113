"""Which of Nsight Compute's metrics are asked for and kept. Imports nothing but the table of metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gemmsim.report.metrics import METRICS

# Sections adapt to the GPU: they bring the pipes, stall reasons and launch figures that it has.
SECTIONS = (
    "LaunchStats",
    "Occupancy",
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
)
# Beyond the table: what the timing model is compared with.
_MORE = (
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
_KEEP = re.compile(
    r"launch__\w+"
    r"|smsp?__average_warps?_\w*(issue_stalled|latency)\w*\.ratio"
    r"|smsp?__inst_executed_pipe_\w+\.(sum|avg\.pct_of_peak_sustained_active)"
    r"|sm__pipe_\w+\.avg\.pct_of_peak_sustained_active"
    r"|sm__inst_issued\.avg\.pct_of_peak_sustained_active"
    r"|smsp__(warps_active|warps_eligible|issue_active)\.avg\.per_cycle_active"
    r"|smsp__issue_inst0\.avg\.pct_of_peak_sustained_active"
)
# Facts of the process or the driver that say nothing about a kernel
_DROP = re.compile(r"launch__(context_id|device_id|stream_id|uses_\w+|occupancy_per_\w+|func_cache_config|cluster_\w+)")


def wanted_metrics() -> list[str]:
    """Names to ask Nsight Compute for, beside SECTIONS, without those that every launch has (launch__)."""
    return sorted({name for name in (*METRICS, *_MORE) if not name.startswith("launch__")})


def kept(counters: Mapping[str, float]) -> dict[str, float]:
    """The counters worth a place in a record, whole numbers as integers."""
    names = {*METRICS, *_MORE}
    return {
        name: int(value) if float(value).is_integer() else value
        for name, value in sorted(counters.items())
        if (name in names or _KEEP.fullmatch(name)) and not _DROP.fullmatch(name)
    }
