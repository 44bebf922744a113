"""The command `gemmsim list`, which names the kernels, GPUs or metrics that gemmsim knows."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from typing import Any

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.output import emit
from gemmsim.gpu.spec import STATUSES, GpuSpec


@click.command("list", short_help="List the built-in kernels, the GPU presets or the metrics.")
@click.argument("what", type=click.Choice(["kernels", "gpus", "metrics"]))
@format_option("text", "json")
@output_option
def command(what: str, output_format: str, output: str | None) -> None:
    """List the built-in kernels, the GPU presets, or the metrics and what they mean."""
    rows = {"kernels": _kernels, "gpus": _gpus, "metrics": _metrics}[what]()
    if output_format == "json":
        emit(json.dumps({what: rows}, indent=2, allow_nan=False), output)
    elif what == "gpus":
        emit("\n".join(_gpu_table(rows)), output)
    else:
        emit("\n".join(_paragraph(row) for row in rows), output)


def _paragraph(row: dict[str, Any]) -> str:
    """Write one kernel, GPU or metric as text: its name on a line of its own, and its other entries below."""
    lines = [str(row["name"])]
    for key, value in row.items():
        if key != "name" and value not in ("", [], None):
            text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
            lead = "" if key == "title" else f"{key.replace('_', ' ')}: "
            lines += textwrap.wrap(lead + text, 80, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(lines)


def _kernels() -> list[dict[str, Any]]:
    from gemmsim.launch.ladder import kernel_infos

    return [
        {
            "name": info.name,
            "title": info.title,
            "teaches": info.teaches,
            "look_for": info.look_for,
            "only_on": list(info.cuda.archs) if info.cuda else [],
            "dtypes": list(info.dtypes),
            "tunables": [
                f"{t.name} = {', '.join(map(str, t.allowed))} (default {t.default}): {t.meaning}" for t in info.tunables
            ],
        }
        for info in kernel_infos().values()
    ]


def _gpu_table(rows: list[dict[str, Any]]) -> list[str]:
    """Write a line for each GPU. `gemmsim gpu show NAME` has all its numbers."""
    from gemmsim.report.layout.text import table

    head = ("name", "arch", "SMs", "L2", "DRAM", "FP32", "MHz", "others like")
    cells = [
        (r["name"], r["arch"], str(r["sms"]), r["l2"], r["dram"], r["fp32"], r["load_mhz"], r["like"]) for r in rows
    ]
    return table(head, cells, "<<>>>>><", 80)


def _gpus() -> list[dict[str, Any]]:
    from gemmsim.gpu import load_gpu, preset_names
    from gemmsim.gpu.load import like_of

    specs = sorted(map(load_gpu, preset_names()), key=lambda spec: (int(spec.arch[3:]), spec.name))
    return [
        {
            "name": spec.name,
            "title": spec.title,
            "arch": spec.arch,
            "sms": spec.sm.count,
            "l2": f"{spec.l2.size_bytes / 2**20:g} MiB",
            "dram": f"{spec.dram.peak_bytes_per_s / 1e9:,.0f} GB/s",
            "fp32": f"{spec.peak.fp32_flops / 1e12:.1f} TF",
            "load_mhz": f"{spec.clock.sm_load_hz / 1e6:,.0f}",
            "like": like_of(spec.name),
            "numbers": _by_status(spec),
        }
        for spec in specs
    ]


def _by_status(spec: GpuSpec) -> str:
    """Count the GPU's numbers by where they come from: "40 vendor, 35 measured, 2 calibrated"."""
    counts = Counter(value.status for value in spec.provenance.values())
    return ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])


def _metrics() -> list[dict[str, Any]]:
    from gemmsim.report.metrics import METRICS

    return [
        {"name": name, "title": f"{m.label} [{m.unit}]", "section": m.section, "meaning": m.meaning}
        for name, m in METRICS.items()
    ]
