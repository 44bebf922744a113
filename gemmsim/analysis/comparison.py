"""Launches side by side: groups of rows in which each is held against the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmsim.analysis.differences import Cause, causes
from gemmsim.analysis.rung import Rung


@dataclass(frozen=True)
class Row:
    """speed_up: time of the row before over this one's; None, as `why` is empty, for the first of a group."""

    rung: Rung
    speed_up: float | None
    why: tuple[Cause, ...]


@dataclass(frozen=True)
class Group:
    """Rows whose times may be compared: one GPU, dtype and precision; or one kernel and dtype on several GPUs."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rung that cannot run: reason is one line."""

    kernel: str
    gpu: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """m, n, k: of all; by_gpu: whether the rows of a group are GPUs, not kernels; wrong: rungs whose C is wrong;
    warm_caches: whether L2 began as an identical launch had left it."""

    m: int
    n: int
    k: int
    by_gpu: bool
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...]
    warm_caches: bool = False

    @property
    def rungs(self) -> tuple[Rung, ...]:
        return tuple(row.rung for group in self.groups for row in group.rows)

    @property
    def wrong(self) -> tuple[Rung, ...]:
        return tuple(rung for rung in self.rungs if rung.verified.ok is False)


def compare_rungs(
    size: tuple[int, int, int],
    rungs: Sequence[Rung],
    skipped: Sequence[Skipped],
    by_gpu: bool,
    warm_caches: bool = False,
) -> Comparison:
    """Groups in the order of their first members; members in the order given."""
    members: dict[str, list[Rung]] = {}
    for rung in rungs:
        members.setdefault(_kernel_title(rung) if by_gpu else _arithmetic_title(rung), []).append(rung)
    groups = tuple(Group(title, _rows(group)) for title, group in members.items())
    return Comparison(*size, by_gpu=by_gpu, groups=groups, skipped=tuple(skipped), warm_caches=warm_caches)


def _rows(rungs: Sequence[Rung]) -> tuple[Row, ...]:
    rows = [Row(rungs[0], None, ())]
    for below, above in pairwise(rungs):
        rows.append(Row(above, below.time_us / above.time_us, causes(below, above)))
    return tuple(rows)


def _kernel_title(rung: Rung) -> str:
    return f"{rung.name}, {rung.dtype} operands"


def _arithmetic_title(rung: Rung) -> str:
    return f"{rung.gpu_title} ({rung.arch}), {rung.dtype} operands, {rung.precision} arithmetic"
