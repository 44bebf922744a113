"""Makes the rows of the ladder's table: registers, shared memory, occupancy, time, and the time of cuBLAS.

Each row describes one rung, which is a kernel of the ladder. No number is written by hand. Times come from records,
resources from the program that was measured, and the share of multiply-adds in the loop over K from executing the rung
on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.api import count
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_infos
from gemmsim.support.errors import GemmsimError

from ..records.case import Case

SHARE_GPUS = {"sm_80": "a100-80gb", "sm_90": "h200"}
SHARE_SIZE = 256  # M = N = K at which shares are counted; any size will do, as a loop's code does not depend on it
# Kernel of the ladder -> the cuBLAS case with the same arithmetic, where that is not `cublas` of the kernel's dtype.
_REFERENCES = {"tf32_tensorcore": "cublas_tf32"}


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One row of the ladder's table: a kernel of the ladder at one size.

    registers       registers of a thread
    shared_bytes    shared memory of a block in bytes
    occupancy_pct   theoretical occupancy in percent
    time_us         median time of a launch in microseconds
    cublas_us       median time of cuBLAS at this size in microseconds; None where it was not measured
    product_shares  architecture -> share of multiply-adds among the instructions that the loop over K issues
    """

    name: str
    dtype: str
    registers: int
    shared_bytes: int
    occupancy_pct: float
    time_us: float
    tflops: float
    cublas_us: float | None
    product_shares: dict[str, float]


def rows_of_runs(
    runs: Iterable[Sequence[Case]], size: int, shares: Callable[[str, str, dict[str, int]], dict[str, float]]
) -> list[LadderRow]:
    """Return the `ladder_rows` of several runs one after another; each is compared with the cuBLAS of its own run.

    Raises GemmsimError where no rung has a record.
    """
    found = [run for run in runs if any(case.rung and case.is_square and case.n == size for case in run)]
    return [row for run in found or [()] for row in ladder_rows(run, size, shares)]


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """What cuBLAS, and the fastest rung of the same arithmetic, reach at one size, by dtype.

    tflops  dtype -> TFLOP/s of cuBLAS, of its median time; the shorter one where several runs have it
    best    dtype -> the fastest rung's name, and what it reaches of `tflops` in percent
    """

    m: int
    n: int
    k: int
    tflops: dict[str, float]
    best: dict[str, tuple[str, float]]


def library_rows(runs: Iterable[Sequence[Case]]) -> list[LibraryRow]:
    """Return a row for each size at which cuBLAS was measured, the smallest first."""
    timed = [case for run in runs for case in run if case.calibrated_time_us and case.kind == "measured"]
    rows: dict[tuple[int, int, int], LibraryRow] = {}
    for case in timed:
        if case.name in ("cublas", "cublas_tf32"):
            row = rows.setdefault((case.m, case.n, case.k), LibraryRow(case.m, case.n, case.k, {}, {}))
            dtype = "tf32" if case.name == "cublas_tf32" else case.dtype
            row.tflops[dtype] = max(row.tflops.get(dtype, 0.0), _tflops(case))
    for case in timed:
        beside, dtype = rows.get((case.m, case.n, case.k)), _arithmetic(case)
        if beside and case.rung and dtype in beside.tflops:
            reached = 100 * _tflops(case) / beside.tflops[dtype]
            beside.best[dtype] = max(beside.best.get(dtype, ("", 0.0)), (case.name, reached), key=lambda one: one[1])
    return sorted(rows.values(), key=lambda row: (row.m * row.n * row.k, row.m))


def _tflops(case: Case) -> float:
    return 2e-6 * case.m * case.n * case.k / (case.calibrated_time_us or float("inf"))


def _arithmetic(case: Case) -> str:
    """The dtype of the cuBLAS case with the same arithmetic as a rung."""
    return "tf32" if _REFERENCES.get(case.name) == "cublas_tf32" else case.dtype


def ladder_rows(
    cases: Iterable[Case], size: int, shares: Callable[[str, str, dict[str, int]], dict[str, float]]
) -> list[LadderRow]:
    """Return a row for each rung and dtype that have a record at M = N = K = size, in the ladder's order.

    Where a rung has several records, the record with the default tunables counts. Where it has no such record, the
    fastest one counts, and the row's name tells the tunables. `shares` is called with a rung's name, dtype and
    tunables, and returns its `product_shares`. Raises GemmsimError where no rung has a record.
    """
    timed = [case for case in cases if case.is_square and case.n == size and case.calibrated_time_us is not None]
    rungs = [case for case in timed if case.rung and case.kind == "measured"]
    if not rungs:
        raise GemmsimError(f"no record of a rung at size {size}: gemmsim-validate measure makes them")
    rows = []
    for name, info in kernel_infos().items():
        defaults = {tunable.name: tunable.default for tunable in info.tunables}
        for dtype in info.dtypes:
            ours = [case for case in rungs if case.name == name and case.dtype == dtype]
            if ours:
                best = min(ours, key=lambda case: (case.tunables != defaults, case.calibrated_time_us))
                rows.append(_row(best, defaults, timed, shares(name, dtype, best.tunables)))
    return rows


def product_shares(name: str, dtype: str, tunables: dict[str, int]) -> dict[str, float]:
    """Return the share of multiply-adds in a ladder kernel's loop over K, by architecture (see `LadderRow`).

    An architecture that the rung cannot be compiled for is left out.
    """
    found = {}
    for arch, gpu in SHARE_GPUS.items():
        case = LadderCase(name, SHARE_SIZE, SHARE_SIZE, SHARE_SIZE, dtype=dtype, tunables=tunables)
        try:
            counted = count(ladder_launch(case, load_gpu(gpu)))
        except GemmsimError:
            continue
        trace = counted.execution.trace
        loop = k_loop(counted.program, (trace.weight @ trace.executed).tolist())
        if loop is not None:
            found[arch] = loop.product_share
    return found


def _row(case: Case, defaults: dict[str, int], timed: Sequence[Case], shares: dict[str, float]) -> LadderRow:
    subject, launch = case.data["subject"], case.data["launch"]
    shared = subject["static_shared_bytes"] + launch["dynamic_shared_bytes"]
    threads = case.block[0] * case.block[1] * case.block[2]
    blocks = case.grid[0] * case.grid[1] * case.grid[2]
    gpu = load_gpu(case.gpu)
    occupancy = theoretical_occupancy(subject["registers"], shared, threads, gpu, grid_blocks=blocks)
    reference = _REFERENCES.get(case.name, "cublas")
    others = [one for one in timed if one.name == reference and (one.dtype == case.dtype or reference != "cublas")]
    changed = [f"{key}={value}" for key, value in case.tunables.items() if defaults.get(key) != value]
    time_us = case.calibrated_time_us
    assert time_us is not None
    return LadderRow(
        name=" ".join([case.name, *changed]),
        dtype=case.dtype,
        registers=subject["registers"],
        shared_bytes=shared,
        occupancy_pct=occupancy.theoretical_pct,
        time_us=time_us,
        tflops=_tflops(case),
        cublas_us=min((one.calibrated_time_us for one in others if one.calibrated_time_us), default=None),
        product_shares=shares,
    )
