"""Sets the launches of a bundle beside their predictions: instructions and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from gemmsim import api
from gemmsim.gpu.load import load_gpu
from gemmsim.launch.recorded import bundle_records, recorded_launch
from gemmsim.launch.spec import SUSTAINED
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural

from ..documents.sections import Section, table

INSTRUCTIONS = "smsp__inst_executed.sum"
# Launches in a row bring the GPU to the clock that its power allows in the long run after so much time, as the warm-up
# of `measure/timing.py` takes.
_LONG_US = 50_000.0


@dataclass(frozen=True)
class Compared:
    """A launch of a bundle, measured and predicted.

    number        in the bundle, from 1
    shown         the case's name where the record has one, and the kernel's
    instructions  predicted, and measured by ncu; None where they were not
    time_us       from the kernel's begin to its end, predicted and measured; None where it was not measured
    error         why it cannot be predicted, "" where it is
    seconds       how long the prediction took
    """

    number: int
    shown: tuple[str, str]
    instructions: tuple[int, int | None]
    time_us: tuple[float, float | None]
    error: str = ""
    seconds: float = 0.0

    @property
    def error_pct(self) -> float | None:
        predicted, measured = self.time_us
        return 100 * (predicted / measured - 1) if measured and not self.error else None


def compare(folder: Path, gpu: str, fits: Callable[[str], bool], jobs: int = 1) -> Iterator[Compared]:
    """Predict the launches of a bundle whose kernel or case `fits`, each as soon as it is there, in their order."""
    records = bundle_records(folder)
    chosen = [(number, one) for number, one in enumerate(records, 1) if any(map(fits, shown(one)))]
    if jobs == 1:
        yield from (compared(folder, gpu, *one) for one in chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        numbers, each = zip(*chosen, strict=True) if chosen else ((), ())
        yield from pool.map(compared, [folder] * len(chosen), [gpu] * len(chosen), numbers, each)


def compared(folder: Path, gpu: str, number: int, record: dict[str, Any]) -> Compared:
    """Predict one launch as it was measured: in a row with others like it, so that L2 is as the one before left it."""
    begin = time.perf_counter()
    counted_there = record.get("counters", {}).get(INSTRUCTIONS)
    measured = record.get("time", {}).get("activity", {})
    row_us = measured.get("median_us", 0.0) * measured.get("samples", 0)
    try:
        spec = replace(recorded_launch(f"{folder}#{number}", load_gpu(gpu)), warm_caches=measured.get("samples", 0) > 1)
        if row_us >= _LONG_US:
            spec = replace(spec, settings=replace(spec.settings, clock=SUSTAINED))
        evidence = api.analyze(spec).evidence
    except GemmsimError as error:
        return Compared(number, shown(record), (0, counted_there), (0.0, None), " ".join(str(error).split()))
    us = evidence.timing.duration_us - evidence.gpu.launch.overhead_us + evidence.gpu.launch.activity_overhead_us
    return Compared(
        number,
        shown(record),
        (int(sum(evidence.executed)), counted_there),
        (us, measured.get("median_us")),
        seconds=time.perf_counter() - begin,
    )


def shown(record: dict[str, Any]) -> tuple[str, str]:
    """Return the problem of a record, "f16 512x512x512", or "", and its kernel."""
    of = record.get("problem")
    dtype = "" if of is None else "tf32" if of.get("operand_roundoff") else of["dtype"]
    return (f"{dtype} {of['m']}x{of['n']}x{of['k']}" if of else ""), record["subject"]["name"]


def captured_section(found: Sequence[Compared], title: str) -> Section:
    """Return the section with a row a launch, and how far off times are."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        first = (f"{one.number}", one.shown[0], _short(one.shown[1]))
        if one.error:
            rows.append((*first, "", "", "", "", one.error))
            continue
        predicted, measured = one.instructions
        equal = "not counted" if measured is None else f"{100 * (predicted / measured - 1):+.2f} %" if measured else ""
        equal = "equal" if predicted == measured else equal
        us, there = one.time_us
        error = "" if one.error_pct is None else f"{one.error_pct:+.1f}"
        rows.append((*first, equal, f"{us:,.1f}", f"{there:,.1f}" if there else "", error, ""))
    columns: tuple[str, ...] = ("#", "problem", "kernel", "instructions", "predicted us", "measured us", "error %")
    columns = (*columns, "not predicted, as")
    errors = [abs(one.error_pct) for one in found if one.error_pct is not None]
    said = f"{plural(len(found), 'launch')}, {sum(not one.error for one in found)} predicted."
    if errors:
        said += f" Times are off by {mean(errors):.1f} % on average, {median(errors):.1f} % in the median."
    if not any(one.error for one in found):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Section(title, (said,), table(columns, rows, numeric=(0, 4, 5, 6)))


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."
