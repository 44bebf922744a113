"""Ranks the predictions of a sweep: which tunables are fastest at each size on each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of kernel, tunables, size, dtype and GPU that a sweep tries.

    kernel     name of a kernel of gemmsim's ladder, or of the user's kernel
    tunables   name -> value
    m, n, k    problem size, None where the user's kernel was given no size
    dtype      of A and B; "" where the kernel's arguments say it
    """

    kernel: str
    tunables: dict[str, int]
    m: int | None
    n: int | None
    k: int | None
    dtype: str
    gpu: str


class Status(StrEnum):
    PREDICTED = "predicted"
    REFUSED = "refused"  # it cannot be launched on this GPU
    FAILED = "failed"  # it could not be predicted


@dataclass(frozen=True, slots=True)
class Prediction:
    """The numbers that a sweep keeps of the report of one launch. Units are in the names.

    time_us       includes the launch overhead
    tflops, percent_of_peak  rate of the 2 m n k operations that a GEMM needs, or of those executed where no size was
                  given; None where no floating-point operations are counted
    limiter       kind of the bottleneck
    limited_by    the bottleneck in a few words
    limiter_text  the bottleneck in a sentence
    blocks        of the grid
    waves         generations of resident blocks
    verified      whether C is right, None where it was not checked
    engine        what ran the model of the SM: "simpy" or "native"
    """

    time_us: float
    tflops: float | None
    percent_of_peak: float | None
    limiter: str
    limited_by: str
    limiter_text: str
    registers: int
    shared_bytes: int
    local_bytes: int
    blocks: int
    waves: float
    theoretical_occupancy_pct: float
    achieved_occupancy_pct: float
    warp_instructions: float
    verified: bool | None
    engine: str


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The outcome of one combination, a `Point`, of a sweep.

    key      identifies request, kernel source, GPU and model (see `sweep.job`)
    reason   why there is no prediction, one line; "" where there is one
    seconds  time that was spent on predicting it
    """

    key: str
    point: Point
    status: Status
    prediction: Prediction | None
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """A combination of a sweep that cannot be launched, which was found without compiling it.

    kind    name of the rule or limit that forbids the launch
    reason  why it cannot be launched, one line
    """

    point: Point
    kind: str
    reason: str


@dataclass(frozen=True)
class Ranking:
    """The predictions of a sweep for one size on one GPU, the fastest first."""

    point: Point  # the fastest combination
    results: tuple[SweepResult, ...]

    @property
    def best_us(self) -> float:
        return _time(self.results[0])


@dataclass(frozen=True)
class Sweep:
    """The outcome of a sweep.

    axes     names of the tunables that were varied
    pruned   combinations that cannot be launched, which was found without compiling them
    refused  combinations that cannot be launched, which was found after compiling them
    failed   combinations that could not be predicted
    reused   how many results were taken from earlier sweeps instead of being predicted again
    """

    axes: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    pruned: tuple[Pruned, ...]
    refused: tuple[SweepResult, ...]
    failed: tuple[SweepResult, ...]
    reused: int

    @property
    def results(self) -> tuple[SweepResult, ...]:
        """The results with a prediction, of one `Ranking` after the other."""
        return tuple(result for ranking in self.rankings for result in ranking.results)

    @property
    def predicted(self) -> int:
        return len(self.results)

    @property
    def combinations(self) -> int:
        return self.predicted + len(self.pruned) + len(self.refused) + len(self.failed)

    @property
    def wrong(self) -> tuple[SweepResult, ...]:
        """The results of launches whose C is wrong."""
        return tuple(one for one in self.results if one.prediction and one.prediction.verified is False)


def rank(axes: Sequence[str], results: Sequence[SweepResult], pruned: Sequence[Pruned], reused: int) -> Sweep:
    """Rank results by time, for each size and GPU apart. Sizes and GPUs keep the order of their first results."""
    members: dict[tuple[object, ...], list[SweepResult]] = {}
    for result in results:
        if result.prediction is not None:
            point = result.point
            members.setdefault((point.m, point.n, point.k, point.gpu), []).append(result)
    rankings = []
    for group in members.values():
        group.sort(key=_time)
        rankings.append(Ranking(group[0].point, tuple(group)))
    return Sweep(
        axes=tuple(axes),
        rankings=tuple(rankings),
        pruned=tuple(pruned),
        refused=tuple(one for one in results if one.status == Status.REFUSED),
        failed=tuple(one for one in results if one.status == Status.FAILED),
        reused=reused,
    )


def _time(result: SweepResult) -> float:
    assert result.prediction is not None
    return result.prediction.time_us
