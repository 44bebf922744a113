"""Says what holds a launch back, in one sentence with the numbers that show it."""

from __future__ import annotations

from collections.abc import Sequence

from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice, Bottleneck
from gemmsim.analysis.hardware.utilisation import ATOMICS, DATA_STAGE, DRAM, ISSUE, L2, Utilisation, utilisations
from gemmsim.support.plurals import plural, verb

# Under 60 % of every unit's peak Nsight Compute calls a kernel latency bound (profiling guide, "GPU Speed Of Light").
BUSY_PCT = 60.0
SAME_PCT = 5.0  # units whose shares differ by no more percent points count as equally busy
KINDS = {ISSUE: "issue", DATA_STAGE: "l1_data", L2: "l2", DRAM: "dram", ATOMICS: "atomics"}


def find_bottleneck(evidence: Evidence, advice: Sequence[Advice] = ()) -> Bottleneck:
    """Find what holds a launch back, in agreement with the advice, which is sorted by what it would gain.

    The `kind` of the result is the first of these that applies.

    "launch"       launch overhead takes more than half of the time
    "small_grid"   there are fewer blocks than SMs, and more of them would gain most of all that is advised
    KINDS, "pipe"  the busiest unit is at least 60 % busy: its kind in KINDS, or "pipe" for an execution pipe
    "latency"      no unit is that busy: warps wait
    """
    timing = evidence.timing
    overhead_pct = 100 * evidence.gpu.launch.overhead_us / timing.duration_us
    if overhead_pct > 50:
        return Bottleneck(
            "launch",
            f"launch overhead: {evidence.gpu.launch.overhead_us:.1f} of {timing.duration_us:.1f} us "
            f"({overhead_pct:.0f}%) pass before and after the kernel runs; the problem is too small for this GPU",
            overhead_pct,
        )
    busiest = _binding(utilisations(evidence))
    if evidence.blocks < evidence.gpu.sm.count and (not advice or advice[0].rule == "idle_sms"):
        return _few_blocks(evidence, busiest)
    if busiest.share_pct >= BUSY_PCT:
        detail = f"{busiest.detail} in " if busiest.detail else ""
        cycles = f"{detail}{timing.cycles:,.0f} cycles{_over(evidence, busiest)}"
        sentence = f"{busiest.unit}: {busiest.share_pct:.0f}% of peak ({cycles})"
        return Bottleneck(KINDS.get(busiest.unit, "pipe"), sentence, busiest.share_pct)
    return _waiting(evidence, busiest)


def _binding(uses: tuple[Utilisation, ...]) -> Utilisation:
    """Return the busiest unit. A unit of KINDS about as busy goes before a pipe, because the pipe waits for it."""
    near = [use for use in uses if use.share_pct >= uses[0].share_pct - SAME_PCT]
    return next((use for use in near if use.unit in KINDS), near[0])


def _over(evidence: Evidence, use: Utilisation) -> str:
    """Say over which SMs the share of a unit was taken; "" for L2, its slices and DRAM, which all SMs share."""
    count = evidence.gpu.sm.count
    if use.unit in (L2, DRAM, ATOMICS):
        return ""
    return f" on {count} SMs" if evidence.blocks >= count else f" on the {evidence.blocks} of {count} SMs with blocks"


def _waiting(evidence: Evidence, busiest: Utilisation) -> Bottleneck:
    timing = evidence.timing
    return Bottleneck(
        "latency",
        f"latency: no unit is above {BUSY_PCT:.0f}% (busiest: {busiest.unit}, {busiest.share_pct:.0f}%); "
        f"{_waits(evidence)} at {timing.achieved_occupancy_pct:.0f}% achieved occupancy",
        busiest.share_pct,
    )


def _few_blocks(evidence: Evidence, busiest: Utilisation) -> Bottleneck:
    count = evidence.gpu.sm.count
    idle = count - evidence.blocks
    why = f"{busiest.unit} of the others: {busiest.share_pct:.0f}% of peak" if busiest.share_pct >= BUSY_PCT else ""
    return Bottleneck(
        "small_grid",
        f"too few blocks: {evidence.blocks} for {count} SMs, so "
        f"{plural(idle, 'SM')} {verb(idle, 'stands', 'stand')} idle "
        f"({why or _waits(evidence)})",
        busiest.share_pct,
    )


def _waits(evidence: Evidence) -> str:
    stalls = {reason: cycles for reason, cycles in evidence.timing.stalls.items() if reason != "selected"}
    total = sum(evidence.timing.stalls.values())
    if not stalls or not total:
        return "stall reasons unknown"
    reason = max(stalls, key=lambda name: stalls[name])
    return f"warps wait mostly for {reason}: {stalls[reason]:.1f} of {total:.1f} cycles an instruction"
