"""Defines which counters are compared with the hardware's, and how. docs/accuracy.md shows these definitions."""

from __future__ import annotations

from dataclasses import dataclass

NOISE = 0.005  # relative noise of a hardware counter, within which exact counters must agree

# These counters must equal the hardware's. The wavefronts of shared stores are not among them: they include arbitration
# with other accesses (6 to 25 % of requests in published measurements, 7 to 16 % in ours).
EXACT = (
    "smsp__inst_executed.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_warps",
    "launch__occupancy_limit_registers",
    "sm__maximum_warps_per_active_cycle_pct",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
)
# Our rules count these counters exactly, but the hardware's counter also includes arbitration, or the driver chooses
# the value by a rule that is not published (gemmsim/memory/caches/carveout.py). They are shown, but need not agree.
NOISY = (
    "launch__shared_mem_config_size",
    "launch__occupancy_limit_shared_mem",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum",
)
LAUNCH_TIME = "gpu__time_duration.sum"


@dataclass(frozen=True)
class Modelled:
    """A counter that our models predict.

    name    the metric's name in Nsight Compute
    label   what tables call the metric
    points  whether the error is a difference of percentages; otherwise it is relative
    goal    mean error that the project aims at, in percent or points; None where the project has set no goal
    least   measured values below this are left out, as they are background traffic and not the kernel's
    """

    name: str
    label: str
    points: bool = False
    goal: float | None = None
    least: float = 0.0


MODELLED = (
    Modelled("l1tex__t_sector_hit_rate.pct", "L1 hit rate", points=True, goal=2.0),
    Modelled("l1tex__m_xbar2l1tex_read_sectors.sum", "sectors L2 to L1", goal=3.0),
    Modelled("lts__t_sectors_srcunit_tex_lookup_hit.sum", "L2 hits", goal=5.0),
    Modelled("lts__t_sectors_srcunit_tex_op_read.sum", "L2 reads"),
    Modelled("lts__t_sector_hit_rate.pct", "L2 hit rate", points=True),
    Modelled("dram__sectors_read.sum", "DRAM reads", goal=10.0, least=2000.0),
    Modelled("sm__warps_active.avg.pct_of_peak_sustained_active", "occupancy achieved", points=True),
    Modelled(LAUNCH_TIME, "time under the profiler"),
)
BY_NAME = {metric.name: metric for metric in MODELLED}


def relative_error(predicted: float, measured: float) -> float:
    """Return predicted / measured - 1; where `measured` is 0, return 0 if `predicted` is 0 too, else infinity."""
    if measured:
        return predicted / measured - 1
    return 0.0 if not predicted else float("inf")
