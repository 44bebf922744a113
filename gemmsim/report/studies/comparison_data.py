"""Renders a Comparison for programs: as JSON, and as CSV with one line for each launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from gemmsim.analysis.studies.comparison import Baseline, Comparison, Row
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.words import duration
from gemmsim.support.plurals import plural
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 2


def as_json(comparison: Comparison) -> str:
    """Render the comparison as JSON, by the schema in `comparison.schema.json`."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "m": comparison.m,
        "n": comparison.n,
        "k": comparison.k,
        "by_gpu": comparison.by_gpu,
        "caches": "warm" if comparison.warm_caches else "cold",
        "groups": [
            {
                "title": group.title,
                "rows": [
                    {
                        **_summary(row),
                        "why": [asdict(cause) for cause in row.why],
                        "units": [asdict(use) for use in row.launch.uses],
                        "spaces": {name: asdict(space) for name, space in row.launch.spaces.items()},
                        "instructions": row.launch.kinds,
                        "waits_us": row.launch.waits_us,
                    }
                    for row in group.rows
                ],
                "baselines": [_baseline(one, comparison) for one in group.baselines],
            }
            for group in comparison.groups
        ],
        "skipped": [asdict(one) for one in comparison.skipped],
    }
    return json_text(data)


def as_csv(comparison: Comparison) -> str:
    """Render CSV with a line for each launch, which names the causes of its speed-up without their numbers."""
    return csv_text(rows(comparison))


def title(comparison: Comparison) -> str:
    """One line that says what was compared and which launch is the fastest."""
    launches = [row.launch for group in comparison.groups for row in group.rows]
    if not launches:
        return "a comparison of which no launch could be predicted"
    best = min(launches, key=lambda one: one.time_us)
    compared = plural(len(launches), "launch")
    return f"{compared} compared, the fastest is {best.name} on {best.gpu}: {duration(best.time_us)}"


def rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each launch, which names the causes of its speed-up without their numbers."""
    found = []
    for group in comparison.groups:
        for row in group.rows:
            why = "; ".join(cause.quantity.what for cause in row.why)
            found.append({"group": group.title, **_summary(row), "why": why})
        for one in group.baselines:
            found += [{**dict.fromkeys(found[-1]), "group": group.title, **times} for times in _times(one, comparison)]
    return found


def _times(baseline: Baseline, comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the fields of a row for a baseline's predicted and for its measured time, as far as there are such."""
    for how, time_us in (("predicted", baseline.time_us), ("measured", baseline.measured_us)):
        if time_us is not None:
            yield {
                "name": f"{baseline.name}, {how}",
                "kernel": " + ".join(baseline.kernels),
                "gpu": baseline.gpu,
                "time_us": time_us,
                "tflops": comparison.tflops(time_us),
                "percent_of_peak": baseline_share(baseline, time_us, comparison),
            }


def baseline_share(baseline: Baseline, time_us: float, comparison: Comparison) -> float | None:
    """Return which part of the peak of its arithmetic a baseline reaches, in percent; None where that is not known."""
    peaks = {one.peak_flops for one in baseline.launches[:1] if one.flops}
    return 100 * comparison.tflops(time_us) * 1e12 / peaks.pop() if peaks else None


def _baseline(baseline: Baseline, comparison: Comparison) -> dict[str, Any]:
    measured = baseline.measured_us
    return {
        "name": baseline.name,
        "gpu": baseline.gpu,
        "kernels": baseline.kernels,
        "predicted_us": baseline.time_us,
        "predicted_kernel_us": baseline.kernel_us,
        "predicted_tflops": comparison.tflops(baseline.time_us) if baseline.time_us else None,
        "measured_kernel_us": measured,
        "measured_tflops": comparison.tflops(measured) if measured else None,
        "measured_how": baseline.how,
    }


def _summary(row: Row) -> dict[str, Any]:
    """Return the fields of a launch that JSON and CSV have in common."""
    launch = row.launch
    return {
        "name": launch.name,
        "kernel": launch.labels.kernel,
        "tunables": launch.labels.tunables,
        "dtype": launch.dtype,
        "gpu": launch.gpu,
        "arch": launch.arch,
        "precision": launch.precision,
        "time_us": launch.time_us,
        "tflops": launch.achieved_flops / 1e12 if launch.achieved_flops else None,
        "percent_of_peak": launch.percent_of_peak,
        "speed_up": row.speed_up,
        "limiter": launch.bottleneck.kind,
        "limiter_text": launch.bottleneck.sentence,
        "registers": launch.registers,
        "shared_bytes": launch.shared_bytes,
        "local_bytes": launch.local_bytes,
        "theoretical_occupancy_pct": launch.theoretical_occupancy_pct,
        "achieved_occupancy_pct": launch.achieved_occupancy_pct,
        "product_share": launch.product_share,
        "warp_instructions": launch.warp_instructions,
        "verified": launch.verified.ok,
        "engine": launch.engine,
    }
