"""Puts several launches side by side, in groups; each row of a group is compared with the row before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmsim.analysis.studies.differences import Cause, causes
from gemmsim.analysis.studies.launch_summary import LaunchSummary


@dataclass(frozen=True)
class Row:
    """One launch of a group.

    speed_up  time of the row before divided by this row's time, None for a group's first row
    why       causes of the difference between the two rows' times
    """

    launch: LaunchSummary
    speed_up: float | None
    why: tuple[Cause, ...]


@dataclass(frozen=True)
class Baseline:
    """What a library's kernels take for the problem of a group.

    name         of the baseline: "cublas"
    gpu          on which
    kernels      names of its kernels, one a launch
    launches     their predictions; () where they cannot be predicted
    measured_us  from begin to end of each kernel on this GPU, added up; None where they were captured on another
    how          how that was measured, "" where it was not: "on an NVIDIA H200, median of 23"
    """

    name: str
    gpu: str
    kernels: tuple[str, ...]
    launches: tuple[LaunchSummary, ...]
    measured_us: float | None = None
    how: str = ""

    @property
    def time_us(self) -> float | None:
        """The predicted time, with each launch's overhead; None where there is no prediction."""
        return sum(one.time_us for one in self.launches) if self.launches else None

    @property
    def kernel_us(self) -> float | None:
        """The predicted time without launch overhead, as `measured_us` is; None where there is no prediction."""
        return sum(one.kernel_us for one in self.launches) if self.launches else None


@dataclass(frozen=True)
class Group:
    """Launches whose times may be compared.

    They are of one GPU, dtype and precision, or of one kernel and dtype on several GPUs.
    """

    title: str
    rows: tuple[Row, ...]
    baselines: tuple[Baseline, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A kernel that cannot run on a GPU. The reason is one line."""

    kernel: str
    gpu: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Launches of one problem size.

    by_gpu       whether the rows of a group are GPUs; else they are kernels
    skipped      the kernels that could not run, each with its GPU and the reason
    warm_caches  whether L2 held at the start what an identical launch had left in it
    """

    m: int
    n: int
    k: int
    by_gpu: bool
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...]
    warm_caches: bool = False

    @property
    def size(self) -> str:
        """The problem size as text: "M=256 N=256 K=256"."""
        return f"M={self.m} N={self.n} K={self.k}"

    @property
    def measured(self) -> bool:
        """Whether a time in it was measured: that of a baseline."""
        return any(one.measured_us is not None for group in self.groups for one in group.baselines)

    def tflops(self, time_us: float) -> float:
        """The 2 m n k operations of the problem in TFLOP/s."""
        return 2.0 * self.m * self.n * self.k / time_us / 1e6

    @property
    def launches(self) -> tuple[LaunchSummary, ...]:
        return tuple(row.launch for group in self.groups for row in group.rows)

    @property
    def wrong(self) -> tuple[LaunchSummary, ...]:
        """The launches whose C is wrong."""
        return tuple(launch for launch in self.launches if launch.verified.ok is False)


def compare_launches(
    size: tuple[int, int, int],
    launches: Sequence[LaunchSummary],
    skipped: Sequence[Skipped],
    by_gpu: bool,
    warm_caches: bool = False,
) -> Comparison:
    """Sort launches into groups. Groups are in the order of their first launches, launches in the order given."""
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
