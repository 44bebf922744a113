"""Defines the observer of one SM: the SimPy model calls its methods as soon as it knows what happens."""

from __future__ import annotations

# How far a memory instruction went: the furthest place that any of its data came from or went to; or what works beside
# the warps. The numbers are those of `units.events`.
LEVELS = ("shared memory", "L1", "L2", "DRAM", "TMA", "tensor pipe")
BESIDE_WARPS = 4  # from here on


class Observer:
    """An observer is told what happens on the SM. This one does nothing: derive a class and override what is wanted.

    warp         the warp's slot on the SM; the warps of later blocks reuse the slots of those that have left
    instruction  static index
    reason       index into `types.STALL_REASONS`
    level        index into LEVELS

    From `on_start` to `on_end` each cycle of a warp is either one in which it issues or in exactly one stall interval
    [begin, end). Intervals may be empty, and are told when they are known: before they begin, or after they have ended.
    What holds a warp that is ready (its pipe, the register ports, another warp that is chosen) can alternate from cycle
    to cycle; such a stretch is told as one interval a reason, in that order.
    """

    def on_start(self, cycle: int, sub_partition: int, warp: int, block: int) -> None:
        """A warp of the SM's `block`-th block may issue from `cycle` on."""

    def on_issue(self, cycle: int, sub_partition: int, warp: int, instruction: int) -> None:
        """A warp issues `instruction`."""

    def on_stall(self, warp: int, instruction: int, reason: int, begin: int, end: int) -> None:
        """A warp waits in [begin, end) to issue `instruction`; or, if the reason is drain, it issued it as its last."""

    def on_memory(self, warp: int, instruction: int, begin: int, end: int, level: int) -> None:
        """A memory instruction is under way from its issue until its registers are written or it has left the SM.

        At the levels from BESIDE_WARPS on it is a bulk copy, until its last byte has come or been read, or a
        multiplication (wgmma), while the tensor pipe of the warp's sub-partition multiplies.
        """

    def on_fill(self, cycle: int, warp: int, gate: int) -> None:
        """A warp issues a bulk copy that belongs to a phase of an mbarrier, its block's gate of that number."""

    def on_open(self, cycle: int, warp: int, gate: int) -> None:
        """A phase of an mbarrier is complete in this cycle; `warp` is the first slot of its block. This may be told
        before the cycle.
        """

    def on_end(self, cycle: int, warp: int) -> None:
        """The warp's slot is free from `cycle` on."""
