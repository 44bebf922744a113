"""Renders a Report as JSON, by the schema in `report.schema.json`.

A new field is added here and to the schema. Where a field changes its meaning or goes, `SCHEMA_VERSION` and the version
in the schema are raised, too. A new field alone does not raise them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gemmsim.analysis.code.instruction_mix import by_class, by_mnemonic
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.code.source_lines import LineTraffic, by_line
from gemmsim.analysis.findings import Advice
from gemmsim.analysis.verdict.spills import local_traffic
from gemmsim.launch.spec import Labels
from gemmsim.report import hazards
from gemmsim.report.former import Former
from gemmsim.report.layout.data import json_text
from gemmsim.report.layout.words import launch_name
from gemmsim.report.report import SCHEMA_VERSION, Report
from gemmsim.support.errors import GemmsimError
from gemmsim.support.version import MODEL_VERSION


def render(report: Report) -> str:
    """Render the report as indented JSON, in which numbers that are unknown or infinite are null."""
    return json_text(as_dict(report))


def as_dict(report: Report) -> dict[str, Any]:
    """Return the report as nested dicts and lists; `report.schema.json` describes every key."""
    evidence = report.evidence
    timing = evidence.timing
    loop, local = k_loop(evidence.program, evidence.executed), local_traffic(evidence)
    return {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "kernel": _kernel(report),
        "gpu": _gpu(report),
        "launch": {
            "grid": evidence.grid,
            "block": evidence.block,
            "cluster": evidence.cluster,
            "dynamic_shared_bytes": evidence.dynamic_shared_bytes,
            "arguments": report.arguments,
            "caches": evidence.caches,
        },
        "bottleneck": asdict(report.bottleneck),
        "time": {
            "cycles": timing.cycles,
            "us": timing.duration_us,
            "sm_clock_hz": timing.sm_clock_hz,
            "launch_overhead_us": evidence.gpu.launch.overhead_us,
            "engine": timing.engine,
            "power": asdict(timing.power) if timing.power else None,
        },
        "verified": asdict(report.verified),
        "counters": evidence.counters,
        "provenance": {name: str(value) for name, value in evidence.provenance.items()},
        "occupancy": asdict(evidence.occupancy) | {"achieved_pct": timing.achieved_occupancy_pct},
        "roofline": asdict(evidence.roofline),
        "stalls": timing.stalls,
        "pipes": timing.pipe_utilisation_pct,
        "instructions": {
            "executed": evidence.warp_instructions,
            "by_kind": {str(kind): count for kind, count in by_class(evidence).items()},
            "by_mnemonic": by_mnemonic(evidence),
        },
        "k_loop": asdict(loop) | {"product_share": loop.product_share} if loop else None,
        "local_memory": asdict(local) if local else None,
        "lines": [_line(row) for row in by_line(evidence)],
        "advice": [_advice(advice) for advice in report.advice],
        "sampling": {
            "blocks_executed": report.sampling.blocks_executed,
            "blocks_total": report.sampling.blocks_total,
            "full": report.sampling.full,
            "executed_instructions": report.sampling.executed_instructions,
            "timed_instructions": timing.simulated_instructions,
            "notes": (*report.sampling.notes, *timing.notes),
        },
        "findings": report.findings,
        **({"baseline": asdict(report.former)} if report.former else {}),
        **({"sanitizer": hazards.as_dict(report.sanitized)} if report.sanitized else {}),
        "notes": report.notes,
        "not_modelled": report.not_modelled,
        "versions": report.versions,
    }


def read_former(path: str | Path) -> Former:
    """Read a file that `render` wrote, to stand beside another prediction. Raises GemmsimError for any other file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GemmsimError(f"cannot read '{path}': {getattr(error, 'strerror', None) or 'it is no text'}") from None
    return former_of(text, str(path))


def former_of(text: str, name: str) -> Former:
    """Return the prediction that `render` wrote as `text`. Raises GemmsimError, with `name`, for any other text."""
    try:
        found = json.loads(text)
        known = found["schema_version"] == SCHEMA_VERSION
        kernel, gpu = found["kernel"], found["gpu"]["name"]
        values = {
            key: float(value) for key, value in (found["counters"] | found["stalls"]).items() if value is not None
        }
        labels = Labels(kernel["name"], "", kernel["m"], kernel["n"], kernel["k"], kernel["tunables"])
        former = Former(f"{launch_name(labels)} on {gpu}", int(found["model_version"]), values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known = False
    if not known:
        raise GemmsimError(f"'{name}' is not what gemmsim analyze --format json writes")
    return former


def _advice(advice: Advice) -> dict[str, Any]:
    return {
        "rule": advice.rule,
        "title": advice.title,
        "evidence": advice.evidence,
        "change": advice.change,
        "gain": advice.gain,
        "time_us": advice.time_us,
    }


def _kernel(report: Report) -> dict[str, Any]:
    labels, program = report.labels, report.evidence.program
    return {
        "name": labels.kernel,
        "title": labels.title,
        "m": labels.m,
        "n": labels.n,
        "k": labels.k,
        "tunables": labels.tunables,
        "symbol": program.symbol,
        "arch": program.arch,
        "registers": program.registers,
        "static_shared_bytes": program.static_shared_bytes,
        "local_bytes": program.local_bytes,
        "cubin_sha256": program.cubin_sha256,
        "toolchain": program.toolchain,
    }


def _gpu(report: Report) -> dict[str, Any]:
    gpu = report.evidence.gpu
    return {"name": gpu.name, "title": gpu.title, "arch": gpu.arch, "sha256": gpu.sha256}


def _line(row: LineTraffic) -> dict[str, Any]:
    fields = asdict(row)
    del fields["indices"]
    return fields | {"file": row.line.file if row.line else None, "line": row.line.line if row.line else None}
