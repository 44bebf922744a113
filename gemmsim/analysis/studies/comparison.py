"""Launches side by side: groups of rows in which each is held against the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmsim.analysis.studies.differences import Cause, causes
from gemmsim.analysis.studies.launch_summary import LaunchSummary


@dataclass(frozen=True)
class Row:
    """speed_up: time of the row before over this one's; None, as `why` is empty, for the first of a group."""

    launch: LaunchSummary
    speed_up: float | None
    why: tuple[Cause, ...]


@dataclass(frozen=True)
class Group:
    """Rows whose times may be compared: one GPU, dtype and precision; or one kernel and dtype on several GPUs."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A launch that cannot run: reason is one line."""

    kernel: str
    gpu: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """m, n, k: of all; by_gpu: whether the rows of a group are GPUs, not kernels; wrong: launches whose C is wrong;
    warm_caches: whether L2 began as an identical launch had left it."""

    m: int
    n: int
    k: int
    by_gpu: bool
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...]
    warm_caches: bool = False

    @property
    def size(self) -> str:
        """M=256 N=256 K=256"""
        return f"M={self.m} N={self.n} K={self.k}"

    @property
    def launches(self) -> tuple[LaunchSummary, ...]:
        return tuple(row.launch for group in self.groups for row in group.rows)

    @property
    def wrong(self) -> tuple[LaunchSummary, ...]:
        return tuple(launch for launch in self.launches if launch.verified.ok is False)


def compare_launches(
    size: tuple[int, int, int],
    launches: Sequence[LaunchSummary],
    skipped: Sequence[Skipped],
    by_gpu: bool,
    warm_caches: bool = False,
) -> Comparison:
    """Groups in the order of their first members; members in the order given."""
    members: dict[str, list[LaunchSummary]] = {}
    for launch in launches:
        members.setdefault(_kernel_title(launch) if by_gpu else _arithmetic_title(launch), []).append(launch)
    groups = tuple(Group(title, _rows(group)) for title, group in members.items())
    return Comparison(*size, by_gpu=by_gpu, groups=groups, skipped=tuple(skipped), warm_caches=warm_caches)


def _rows(launches: Sequence[LaunchSummary]) -> tuple[Row, ...]:
    rows = [Row(launches[0], None, ())]
    for below, above in pairwise(launches):
        rows.append(Row(above, below.time_us / above.time_us, causes(below, above)))
    return tuple(rows)


def _kernel_title(launch: LaunchSummary) -> str:
    return f"{launch.name}, {launch.dtype} operands"


def _arithmetic_title(launch: LaunchSummary) -> str:
    return f"{launch.gpu_title} ({launch.arch}), {launch.dtype} operands, {launch.precision} arithmetic"
