"""A Comparison for programs: CSV, one line a launch, and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from gemmsim.analysis.studies.comparison import Comparison, Row
from gemmsim.report.json import plain
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 1


def as_json(comparison: Comparison) -> str:
    """By the schema in `comparison.schema.json`."""
    return json.dumps(plain(as_dict(comparison)), indent=2, allow_nan=False) + "\n"


def as_dict(comparison: Comparison) -> dict[str, Any]:
    return {
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
            }
            for group in comparison.groups
        ],
        "skipped": [asdict(one) for one in comparison.skipped],
    }


def as_csv(comparison: Comparison) -> str:
    rows = [
        {"group": group.title, **_summary(row), "why": "; ".join(cause.quantity.what for cause in row.why)}
        for group in comparison.groups
        for row in group.rows
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _summary(row: Row) -> dict[str, Any]:
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
    }


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return "" if value is None else plain(value)
