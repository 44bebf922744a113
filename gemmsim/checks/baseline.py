"""Stores quantities of a predicted launch in a JSON file, a baseline, and compares later predictions with them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.checks.expectation import explain
from gemmsim.checks.outcome import Change, Outcome
from gemmsim.checks.quantities import Reading, read
from gemmsim.checks.selection import everything
from gemmsim.report.layout.words import number
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance

SCHEMA = 1
# What a baseline holds where no names are given: {quantity: share of its value that it may move by}, 0 for counts.
DEFAULT = {
    "registers": 0.0,
    "shared_bytes": 0.0,
    "occupancy": 0.0,
    "smsp__inst_executed.sum": 0.0,
    "sectors": 0.0,
    "wavefronts": 0.0,
    "bank_conflicts": 0.0,
    "spill_sectors": 0.0,
    "dram_bytes": 0.05,
    "time_us": 0.05,
}
MODELLED = 0.05  # that share for a quantity that is not in DEFAULT and not an exact count


@dataclass(frozen=True)
class Baseline:
    """The values that quantities of one predicted launch had when the baseline was made.

    values     {name of a quantity: value}
    tolerance  {name of a quantity: share of its value that it may move by, up or down}
    made_with  {tool: version} of the tools that made the values
    """

    kernel: str
    gpu: str
    values: dict[str, float]
    tolerance: dict[str, float]
    made_with: dict[str, str]


def record(report: Report, names: Sequence[str] = (), former: Baseline | None = None) -> Baseline:
    """Make a baseline of the launch in `report`, with the quantities `names`.

    The new baseline takes over the tolerances of the `former` one, which people may have changed. Where no names are
    given, it has the quantities of `former`, or without a former baseline the keys of DEFAULT. Raises GemmsimError for
    an unknown name.
    """
    tolerances = former.tolerance if former else {}
    wanted = list(names) or list(former.values if former else DEFAULT)
    selection = everything(report)
    values = {name: read(selection, name).value for name in wanted}
    tolerance = {name: tolerances.get(name, _tolerance(report, name)) for name in wanted}
    return Baseline(report.labels.kernel, report.evidence.gpu.name, values, tolerance, dict(report.versions))


def compare(report: Report, baseline: Baseline) -> list[Outcome]:
    """Compare the launch in `report` with a baseline, and return one outcome for each quantity of the baseline.

    The outcome is a failure where the quantity moved by more than its tolerance. This holds for a better value too,
    because the baseline is then out of date.
    Raises GemmsimError for a baseline of another kernel or GPU.
    """
    if baseline.gpu != report.evidence.gpu.name or baseline.kernel != report.labels.kernel:
        here = f"{report.labels.kernel} on {report.evidence.gpu.name}"
        raise GemmsimError(
            f"the baseline is of {baseline.kernel} on {baseline.gpu}, not of {here}: make one of its own"
        )
    other = [tool for tool, version in report.versions.items() if baseline.made_with.get(tool, version) != version]
    made = f" (made with {', '.join(f'{tool} {baseline.made_with[tool]}' for tool in other)})" if other else ""
    selection = everything(report)
    return [
        _compared(read(selection, name), value, baseline.tolerance[name], made)
        for name, value in baseline.values.items()
    ]


def _compared(reading: Reading, before: float, tolerance: float, made: str) -> Outcome:
    ok = math.isclose(reading.value, before, rel_tol=0.0, abs_tol=tolerance * abs(before) + 1e-9 * abs(before))
    allowed = f" within {100 * tolerance:g}%" if tolerance else ""
    message = f"{reading.name} == {number(before)}{allowed} (baseline): it is {number(reading.value)}"
    change = Change(reading.name, before, reading.value, tolerance)
    if ok:
        return Outcome("baseline", True, message, change=change)
    if before:
        message += f", {change.moved}"
    line = reading.row.line if reading.row else None
    return Outcome("baseline", False, message + made, explain(reading), line, change=change)


def _tolerance(report: Report, name: str) -> float:
    if name in DEFAULT:
        return DEFAULT[name]
    return 0.0 if report.evidence.provenance.get(name) == Provenance.EXACT else MODELLED


def load(path: Path) -> Baseline | None:
    """Read a baseline; None where there is no such file. Raises GemmsimError where the file is not a baseline."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GemmsimError(f"cannot read the baseline {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise GemmsimError(f"cannot read the baseline {path}: {error}") from None
    try:
        return _from_data(data)
    except (KeyError, TypeError, ValueError):
        raise GemmsimError(f"{path} is not a baseline of gemmsim (schema {SCHEMA}): delete it, or update it") from None


def dump(baseline: Baseline) -> str:
    values = {name: {"value": value, "tolerance": baseline.tolerance[name]} for name, value in baseline.values.items()}
    data: dict[str, Any] = {
        "gemmsim_baseline": SCHEMA,
        "kernel": baseline.kernel,
        "gpu": baseline.gpu,
        "made_with": baseline.made_with,
        "values": values,
    }
    return json.dumps(data, indent=2) + "\n"


def _from_data(data: Any) -> Baseline:
    if data["gemmsim_baseline"] != SCHEMA:
        raise ValueError
    values = {str(name): float(entry["value"]) for name, entry in data["values"].items()}
    tolerance = {str(name): float(entry["tolerance"]) for name, entry in data["values"].items()}
    if any(not math.isfinite(x) for x in values.values()) or any(not 0 <= x < math.inf for x in tolerance.values()):
        raise ValueError
    made_with = {str(tool): str(version) for tool, version in data["made_with"].items()}
    return Baseline(str(data["kernel"]), str(data["gpu"]), values, tolerance, made_with)
