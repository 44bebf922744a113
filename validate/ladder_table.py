"""The ladder as a Markdown table, from records: registers, shared memory, occupancy, time, percent of cuBLAS.

Nothing in it is typed: times come from records, resources from the program that was measured, and the share of
multiply-adds in the loop over K from executing the rung on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.api import count
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_request
from gemmsim.launch.ladder import kernel_infos
from gemmsim.support.errors import GemmsimError

from .records import Case

SHARE_GPUS = {"sm_80": "a100-80gb", "sm_90": "h200"}
SHARE_SIZE = 256  # the code of a loop does not depend on the problem's size
_REFERENCES = {"tf32_tensorcore": "cublas_tf32"}  # rungs whose arithmetic is not that of cublas for their dtype


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One rung at one size.

    time_us, cublas_us        medians, None where not measured
    registers, shared_bytes   a thread; a block
    occupancy_pct             theoretical
    product_shares            architecture -> multiply-adds of what the loop over K issues
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


def ladder_rows(
    cases: Iterable[Case], size: int, shares: Callable[[str, str, dict[str, int]], dict[str, float]]
) -> list[LadderRow]:
    """Rungs with a record at M = N = K = size, in the ladder's order, a row a dtype.

    Of several records of a rung the one with its default tunables counts, else the fastest, which is named with them.
    Raises GemmsimError where there is none at all.
    """
    timed = [case for case in cases if case.m == case.n == case.k == size and case.time_us is not None]
    rungs = [case for case in timed if case.rung and case.kind == "measured"]
    if not rungs:
        raise GemmsimError(f"no record of a rung at size {size}: gemmsim-validate measure makes them")
    rows = []
    for name, info in kernel_infos().items():
        defaults = {tunable.name: tunable.default for tunable in info.tunables}
        for dtype in info.dtypes:
            ours = [case for case in rungs if case.name == name and case.dtype == dtype]
            if ours:
                best = min(ours, key=lambda case: (case.tunables != defaults, case.time_us))
                rows.append(_row(best, defaults, timed, shares(name, dtype, best.tunables)))
    return rows


def product_shares(name: str, dtype: str, tunables: dict[str, int]) -> dict[str, float]:
    """By architecture; one that the rung cannot be compiled for is left out."""
    found = {}
    for arch, gpu in SHARE_GPUS.items():
        case = LadderCase(name, SHARE_SIZE, SHARE_SIZE, SHARE_SIZE, dtype=dtype, tunables=tunables)
        try:
            counted = count(ladder_request(case, load_gpu(gpu)))
        except GemmsimError:
            continue
        trace = counted.execution.trace
        loop = k_loop(counted.program, (trace.weight @ trace.executed).tolist())
        if loop is not None:
            found[arch] = loop.product_share
    return found


def markdown(rows: Sequence[LadderRow], size: int, gpu: str) -> str:
    archs = list(SHARE_GPUS)
    head = ["rung", "dtype", "registers", "shared memory", "occupancy", "time", "TFLOP/s", "of cuBLAS"]
    head += [f"multiply-adds, {arch}" for arch in archs]
    lines = [
        f"M = N = K = {size} on {gpu}, measured.",
        "",
        _line(head),
        _line(["---"] * 2 + ["---:"] * (len(head) - 2)),
    ]
    for row in rows:
        of = f"{100 * row.cublas_us / row.time_us:.1f}%" if row.cublas_us else "-"
        cells = [row.name, row.dtype, str(row.registers), f"{row.shared_bytes:,} B", f"{row.occupancy_pct:.0f}%"]
        cells += [f"{row.time_us:,.1f} us", f"{row.tflops:.2f}", of]
        cells += [f"{100 * row.product_shares[arch]:.0f}%" if arch in row.product_shares else "-" for arch in archs]
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


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
    assert case.time_us is not None
    return LadderRow(
        name=" ".join([case.name, *changed]),
        dtype=case.dtype,
        registers=subject["registers"],
        shared_bytes=shared,
        occupancy_pct=occupancy.theoretical_pct,
        time_us=case.time_us,
        tflops=2e-6 * case.m * case.n * case.k / case.time_us,
        cublas_us=min((one.time_us for one in others if one.time_us), default=None),
        product_shares=shares,
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
