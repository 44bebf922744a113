"""The SM clock within a launch: tensor cores lower it while they work, and only then."""

from __future__ import annotations

from gemmsim.gpu.spec import Clock
from gemmsim.sm.totals import Totals


def duration_s(totals: Totals, clock: Clock) -> float:
    """Return how long the cycles of a launch take, in seconds.

    Each GPC of an H200 has a clock of its own (own microbenchmark, tests/records/h200_tensor_clock.json): it is
    `sm_load_hz` until one of its tensor cores begins, then `sm_tensor_load_hz` until `tensor_exit_us` after their last
    work, and `sm_load_hz` again. Their beginning costs `tensor_entry_us`. The SMs of the GPC are taken to begin and to
    end together, and to pause for less than `tensor_exit_us` in between.
    """
    before = min(totals.before_tensor, totals.cycles)
    if before == totals.cycles:
        return totals.cycles / clock.sm_load_hz
    after = max(0.0, totals.after_tensor - clock.tensor_exit_us * 1e-6 * clock.sm_tensor_load_hz)
    lowered = totals.cycles - before - after
    return (before + after) / clock.sm_load_hz + lowered / clock.sm_tensor_load_hz + clock.tensor_entry_us * 1e-6
