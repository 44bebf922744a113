"""Works out what each piece of advice would gain: the model predicts the launch anew with the problem gone.

What is changed is the cost of accesses, how many blocks an SM holds, or the pipe of double precision. The instructions
stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.findings import Advice
from gemmsim.gpu import GpuSpec
from gemmsim.gpu.improve import with_values
from gemmsim.memory.types import RecordCost
from gemmsim.support.rounding import whole_in_sum

_UNKNOWN = float("inf")
_HOW = {
    "low_occupancy": "predicted with one more block an SM",
    "double_arithmetic": "predicted with the fp64 pipe as quick as that of FP32",
}


def cured(cost: RecordCost, record_pc: NDArray[np.int32], advice: Advice) -> RecordCost:
    """Return the cost of memory records where those that `advice.cures` names have the part that is left of theirs."""
    share = np.ones(int(record_pc.max(initial=-1)) + 1)
    for index, left in advice.cures:
        if index < len(share):
            share[index] = left
    part = share[record_pc]
    fewer = replace(cost, wavefronts=_part(cost.wavefronts, part))
    if advice.left == "wavefronts":
        return fewer
    tags, l2, dram = (_part(column, part) for column in (cost.tag_cycles, cost.l2_sectors, cost.dram_sectors))
    return replace(
        fewer, tag_cycles=tags, l2_sectors=l2, dram_sectors=dram, atomic_us=(cost.atomic_us * part).astype(np.float32)
    )


def with_quick_doubles(gpu: GpuSpec) -> GpuSpec:
    """Return the GPU with a pipe for double precision that is as quick as that for single precision."""
    single = gpu.pipes["fmaheavy"]
    times = ("issue_interval_cycles", "latency_cycles")
    return with_values(gpu, {f"pipes.fp64.{name}": getattr(single, name) for name in times})


def _part(column: NDArray[np.uint16], part: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Return `column * part` in whole numbers; unchanged where the part is 1."""
    kept, less = column.copy(), part < 1
    kept[less] = whole_in_sum(column[less] * part[less])
    return kept


def ranked(
    found: Sequence[Advice], before_us: float, overhead_us: float, predict: Callable[[Advice], float | None]
) -> tuple[Advice, ...]:
    """Return the advice with its predicted gain, what saves most time first; what has no prediction comes last.

    What saves nothing is left out. Where that is all there is, it stays, but for what saves nothing at best: two
    problems that hide one another each save nothing alone.

    before_us, overhead_us  time of the launch, and the launch overhead in it
    predict                 returns the time with the problem of an advice gone; None where the model cannot say
    """
    known = []
    for advice in found:
        at_best = None if advice.at_best is None else overhead_us + (before_us - overhead_us) * advice.at_best
        after = predict(advice) if at_best is None else at_best
        known.append(advice if after is None else replace(advice, time_us=after, gain=_gain(advice, before_us, after)))
    useful = [one for one in known if one.time_us is None or _saves(before_us, one.time_us)]
    kept = useful or [one for one in known if one.at_best is None]
    return tuple(sorted(kept, key=lambda advice: _UNKNOWN if advice.time_us is None else advice.time_us))


def _saves(before_us: float, after_us: float) -> bool:
    """Whether the difference shows in the two digits of the gain: 1.00x is none."""
    return round(before_us / after_us, 2) > 1


def _gain(advice: Advice, before_us: float, after_us: float) -> str:
    how = "at best" if advice.at_best is not None else _HOW.get(advice.rule, "predicted without it")
    times = f"{how} {after_us:,.1f} us, now {before_us:,.1f} us"
    times += f" ({before_us / after_us:.2f}x)" if _saves(before_us, after_us) else ": alone it saves nothing"
    return f"{times}; {advice.gain}" if advice.gain else times
