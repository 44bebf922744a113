"""Defines `Timing`, the result of the SM model, and the names of the stall reasons in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# Nsight Compute's warp stall reasons: the <reason> of its metrics smsp__average_warps_issue_stalled_<reason>...
STALL_REASONS = (
    "selected",
    "not_selected",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "mio_throttle",
    "lg_throttle",
    "math_pipe_throttle",
    "branch_resolve",
    "gmma",
    "dispatch_stall",
    "drain",
    "membar",
    "no_instruction",
    "sleeping",
    "tex_throttle",
    "imc_miss",
    "misc",
)


@dataclass(frozen=True, slots=True)
class PowerUse:
    """The power of a launch, in watts, and what limits it.

    watts               of the board while the kernel runs at `Timing.sm_clock_hz`
    limit_watts         to which the board brings it where the launch is repeated for a tenth of a second
    sustained_clock_hz  the SM clock then; the launch's own where the limit is not reached
    held_watts          the limit that lowers `Timing.sm_clock_hz` itself; 0 where none does
    """

    watts: float
    limit_watts: float
    sustained_clock_hz: float
    held_watts: float = 0.0


@dataclass(frozen=True)
class Timing:
    """Predicted time of a launch.

    cycles                 SM clock cycles from launch to the last warp's exit, launch overhead excluded
    duration_us            cycles at the clock used, plus launch overhead
    sm_clock_hz            the clock used
    waves                  grid blocks / (blocks resident at once on the GPU)
    issue_active_pct       issued warp instructions a cycle and sub-partition, in percent
    achieved_occupancy_pct active warps a cycle over the SM's maximum, in percent
    pipe_utilisation_pct   pipe -> percent of cycles busy, average of the sub-partitions; "lsu" is the SM's data stage
    stalls                 reason -> average cycles a warp spends in it per instruction issued (Nsight's unit); sums to
                           warp cycles an instruction
    stall_samples          float64 [instructions, len(STALL_REASONS)] warp cycles of the modelled SM attributed to each
                           static instruction (the one waiting to issue)
    simulated_instructions warp instructions that the model issued
    simulated_cycles       cycles that it simulated
    engine                 the drive that ran: "simpy" or "native"
    notes                  what was extrapolated and how
    power                  the power that the launch takes; None where the GPU file does not say what work takes
    """

    cycles: float
    duration_us: float
    sm_clock_hz: float
    waves: float
    issue_active_pct: float
    achieved_occupancy_pct: float
    pipe_utilisation_pct: dict[str, float]
    stalls: dict[str, float]
    stall_samples: NDArray[np.float64]
    simulated_instructions: int
    simulated_cycles: float
    engine: str = "native"
    notes: tuple[str, ...] = field(default=())
    power: PowerUse | None = None
