"""Turns cases into samples of a calibration.

A case is executed and its memory traffic counted once; its time is then predicted for each GPU that the fit tries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gemmsim.api import count
from gemmsim.gpu import GpuSpec
from gemmsim.sm.schedule import TimingOptions, schedule

from ..records.case import Case
from ..records.replay import timed_launch


@dataclass(frozen=True)
class Sample:
    """One case with its measured time; `predict` returns its predicted time for a GPU. Both are in microseconds."""

    id: str
    rung: str
    size: str
    measured_us: float
    predict: Callable[[GpuSpec], float]


def case_sample(case: Case, gpu: GpuSpec, max_instructions: int | None = None) -> Sample:
    """Execute a case, count its memory traffic on `gpu`, and return it as a sample.

    The case must have a measured time. The sample's `predict` runs only the timing model.

    max_instructions  how many warp instructions the timing model simulates; None: as many as `gemmsim analyze` does
    """
    request = replace(timed_launch(case, case.calibrated_time), gpu=gpu)
    counted = count(request)
    trace, cost, resident = counted.execution.trace, counted.traffic.cost, counted.occupancy.blocks_per_sm
    options = TimingOptions(warm_code=request.warm_code)
    if max_instructions is not None:
        options = replace(options, max_instructions=max_instructions)

    def predict(other: GpuSpec) -> float:
        timing = schedule(counted.program, request.launch, trace, cost, other, resident, options)
        return float(timing.duration_us)

    assert case.calibrated_time_us is not None
    return Sample(case.id, case.name, f"{case.m}x{case.n}x{case.k}", case.calibrated_time_us, predict)
