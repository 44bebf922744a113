"""Defines `TimelineReport`, which has everything that the renderers of a timeline read, and `Window`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.spec import Labels
from gemmsim.report.layout.words import launch_name
from gemmsim.sm.observer import LEVELS
from gemmsim.sm.timeline import Timeline, WarpStay

_TMA, _TENSOR = LEVELS.index("TMA"), LEVELS.index("tensor pipe")


@dataclass(frozen=True, slots=True)
class InstructionText:
    """The texts with which pictures of a timeline show a static instruction.

    sass    its machine code as text
    line    number of its source line, None where unknown
    source  text of that line
    """

    sass: str
    line: int | None
    source: str


@dataclass(frozen=True)
class TimelineReport:
    """A timeline and the launch that it shows.

    clock_hz         clock of the SM
    kernel_cycles    cycles of the whole launch, as `analyze` predicts it
    sm_count         number of SMs of the GPU
    blocks_per_sm    how many blocks the busiest SM runs in all
    warps_per_block  warps of one block of the launch
    instructions     one `InstructionText` for each static instruction of the program
    """

    labels: Labels
    gpu_title: str
    arch: str
    clock_hz: float
    kernel_cycles: float
    sm_count: int
    blocks_per_sm: int
    warps_per_block: int
    timeline: Timeline
    instructions: tuple[InstructionText, ...]

    @property
    def title(self) -> str:
        return f"{launch_name(self.labels)} on {self.gpu_title} ({self.arch})"

    @property
    def scope(self) -> str:
        """Which part of the launch is shown, in a sentence."""
        timeline = self.timeline
        shown = f"{timeline.blocks} of {self.blocks_per_sm} blocks" if self.blocks_per_sm > 1 else "1 block"
        cut = "" if timeline.fraction == 1 else f", the first {100 * timeline.fraction:.2g} % of each warp"
        return (
            f"the busiest of {self.sm_count} SMs: {shown}{cut}, {timeline.cycles:,} cycles; "
            f"the launch takes {self.kernel_cycles:,.0f} (predicted, not measured)"
        )

    def warp_name(self, stay: WarpStay) -> str:
        """The name of a warp by its block and its place in it, and the job of one that only copies or multiplies by
        TMA and wgmma: "b0 w17", "b0 w0 tma", "b0 w4 mma".
        """
        levels = set(np.unique(stay.memory[:, 3]).tolist()) if self._specialised else set()
        job = " tma" if _TMA in levels else " mma" if _TENSOR in levels else ""
        return f"b{stay.block} w{stay.slot % self.warps_per_block}{job}"

    @cached_property
    def _specialised(self) -> bool:
        """Whether some warps copy by TMA and others multiply by wgmma."""
        levels = [set(np.unique(stay.memory[:, 3]).tolist()) for stay in self.timeline.warps]
        return any(_TMA in mine for mine in levels) and not any({_TMA, _TENSOR} <= mine for mine in levels)


@dataclass(frozen=True, slots=True)
class Window:
    """The cycles [first, stop) of a timeline that are shown."""

    first: int
    stop: int

    @property
    def cycles(self) -> int:
        return self.stop - self.first


def within(rows: NDArray[np.int32], window: Window) -> NDArray[np.int32]:
    """Select the rows (begin, end, ...) whose intervals overlap the window, and cut `begin` and `end` to it."""
    touching = rows[(rows[:, 1] > window.first) & (rows[:, 0] < window.stop)].copy()
    touching[:, 0] = touching[:, 0].clip(window.first)
    touching[:, 1] = touching[:, 1].clip(None, window.stop)
    return touching


def per_column(begin: NDArray[np.int32], end: NDArray[np.int32], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count the cycles of all intervals [begin, end) between each edge and the next, as float64 [len(edges) - 1]."""
    before = _before(begin, edges) - _before(end, edges)
    return np.diff(before)


def _before(points: NDArray[np.int32], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each edge, the sum of its distances to all points before it."""
    ordered = np.sort(points).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    below = np.searchsorted(ordered, edges)
    return np.asarray(edges * below - sums[below], np.float64)


def fitting(report: TimelineReport, window: Window, most_intervals: int) -> Window:
    """Shorten a window at its end so that at most `most_intervals` intervals (states, memory) begin in it.

    At least one cycle of the window stays.
    """
    stays = report.timeline.warps
    begins = np.concatenate([within(rows, window)[:, 0] for stay in stays for rows in (stay.states, stay.memory)])
    if len(begins) <= most_intervals:
        return window
    return Window(window.first, max(window.first + 1, int(np.sort(begins)[most_intervals])))
