"""Presents an `Ablation` as sections, which every output format renders, and as data for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gemmsim.support.version import __version__

from ..compare.document import gpus_of, times_of
from ..documents.sections import Section, Table
from .effects import CHANGED_PCT, Ablation, Effect

TITLE = "Ablation"
SCHEMA_VERSION = 1
KERNELS_SHOWN = 3  # kernels named in the table row of each mechanism
NOTHING = "nothing"
DEFINITIONS = (
    "What the error of the predicted times becomes where one mechanism of the timing model is switched off and all "
    "others stay. Errors and their figures are those of the comparison with records: (predicted - measured) / "
    "measured, the mean of absolute errors (MAPE), the 90th percentile, the worst, and the mean with signs (bias).",
    "Each case is executed and counted once, then timed once for each row; a row changes only what the timing model "
    "is given. Change is that of the MAPE, in points: above 0 where the model is worse without the mechanism. Below 0, "
    "these cases are predicted better without it: it is not modelled well, or it adds to another error that it does "
    "not cause. "
    f"Changed is the number of cases whose predicted time changes by more than {CHANGED_PCT:g} %; kernels are those "
    "whose predicted times change most, by the mean over their cases.",
)


def sections(found: Ablation) -> tuple[Section, ...]:
    """Return the document's sections: what was switched off, the errors, and what each mechanism models."""
    parts = [Section("What is switched off", (*DEFINITIONS, _coverage(found))), Section("Errors", table=_errors(found))]
    if found.failed:
        rows = tuple((case.id, why) for case, why in found.failed)
        parts.append(Section("Not predicted", table=Table(("case", "why"), rows)))
    parts.append(Section("Mechanisms", table=_mechanisms(found)))
    return tuple(parts)


def _coverage(found: Ablation) -> str:
    rows = found.cases
    sizes = ", ".join(sorted({row.case.size for row in rows}, key=int))
    return f"{len(rows)} cases on {gpus_of(rows)}, sizes {sizes}: times of {times_of(rows)}."


def _errors(found: Ablation) -> Table:
    lines = [(NOTHING, *found.figures.texts(), "", "", "")]
    for effect in found.effects:
        change = f"{effect.change:+.1f}"
        lines.append((effect.mechanism.key, *effect.figures.texts(), change, str(effect.changed), _kernels(effect)))
    columns = ("off", "MAPE %", "p90 %", "worst %", "bias %", "change", "changed", "kernels")
    return Table(columns, tuple(lines), frozenset(range(1, 7)))


def _kernels(effect: Effect) -> str:
    shown = [(name, change) for name, change in effect.kernels[:KERNELS_SHOWN] if abs(change) > CHANGED_PCT]
    return ", ".join(f"{name} {change:+.0f} %" for name, change in shown)


def _mechanisms(found: Ablation) -> Table:
    rows = tuple((e.mechanism.key, e.mechanism.models, e.mechanism.without) for e in found.effects)
    return Table(("mechanism", "what it models", "without it"), rows)


def as_data(found: Ablation) -> dict[str, Any]:
    """Return what the document's sections show, and the change of every kernel's time, as data for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "gemmsim": __version__,
        "cases": [
            {
                "id": row.case.id,
                "predicted_us": row.time.predicted,
                "measured_us": row.time.measured,
                "against": row.time_way,
            }
            for row in found.cases
            if row.time
        ],
        "failed": [{"id": case.id, "error": why} for case, why in found.failed],
        "time_pct": asdict(found.figures),
        "without": [
            {
                "mechanism": effect.mechanism.key,
                "why": effect.mechanism.models,
                "instead": effect.mechanism.without,
                "time_pct": asdict(effect.figures),
                "change_points": effect.change,
                "changed": effect.changed,
                "kernels_pct": dict(effect.kernels),
            }
            for effect in found.effects
        ],
    }
