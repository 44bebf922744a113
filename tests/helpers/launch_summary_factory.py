"""A LaunchSummary made by hand: a kernel of 1000 us on a GPU of 100 SMs, every number easy to check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmsim.analysis.findings import Bottleneck, Verification
from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, ISSUE, L2
from gemmsim.analysis.studies.launch_summary import LaunchSummary, SpaceTraffic, Use
from gemmsim.launch.spec import Labels

BASE = LaunchSummary(
    name="tiled", labels=Labels("tiled", tunables={"tile": 32}), dtype="f32", gpu="a100-80gb",
    gpu_title="NVIDIA A100", arch="sm_80", precision="fp32", time_us=1002.0, kernel_us=1000.0, clock_hz=1e9,
    flops=1.002e9, peak_flops=1e13, bottleneck=Bottleneck("l1_data", f"{DATA_STAGE}: 80% of peak (...)", 80.0),
    verified=Verification(True, 1e-7, "yes"), registers=32, shared_bytes=8192, local_bytes=0,
    theoretical_occupancy_pct=100.0, achieved_occupancy_pct=50.0, product_share=0.5, blocks=1000, sm_count=100,
    waves=5.0, warps=32.0, warp_instructions=4e6, dram_sectors=1e5,
    uses=(
        Use(DATA_STAGE, 80.0, 800.0, 8e7), Use(ISSUE, 40.0, 400.0, 4e6), Use("alu pipe", 20.0, 200.0, 1e6),
        Use(L2, 10.0, 100.0, 1e6), Use(DRAM, 5.0, 50.0, 1e5),
    ),
    spaces={
        "global": SpaceTraffic(1e6, 4e6, 1e6, 0.0, 1e6), "shared": SpaceTraffic(7e7, 0.0, 7.9e7, 9e6, 0.0),
        "local": SpaceTraffic(),
    },
    kinds={"multiply-add": 2e6, "integer and address": 2e6}, waits_us={"selected": 400.0, "barrier": 600.0},
    engine="simpy",
)  # fmt: skip


def rung(**values: Any) -> LaunchSummary:
    return replace(BASE, **values)


def uses(**shares: tuple[float, float, float]) -> tuple[Use, ...]:
    """data_stage=(percent, us, work), ..., the busiest first."""
    names = {
        "data_stage": DATA_STAGE,
        "issue": ISSUE,
        "l2": L2,
        "dram": DRAM,
        "alu": "alu pipe",
        "fma": "fmaheavy pipe",
    }
    found = [Use(names[name], *values) for name, values in shares.items()]
    return tuple(sorted(found, key=lambda use: -use.share_pct))
