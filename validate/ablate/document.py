"""An ablation as sections, which `compare.render` shows, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gemmsim.support.version import __version__

from ..compare.document import Section, Table
from ..compare.figures import Figures
from ..records import TIMES
from .effects import CHANGED_PCT, Ablation, Effect

TITLE = "Ablation"
SCHEMA_VERSION = 1
SHOWN = 3  # kernels a mechanism
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
    parts = [Section("What is switched off", (*DEFINITIONS, _coverage(found))), Section("Errors", table=_errors(found))]
    if found.failed:
        rows = tuple((case.id, why) for case, why in found.failed)
        parts.append(Section("Not predicted", table=Table(("case", "why"), rows)))
    parts.append(Section("Mechanisms", table=_mechanisms(found)))
    return tuple(parts)


def _coverage(found: Ablation) -> str:
    rows = found.cases
    timed = {how: sum(row.how == how for row in rows) for how in TIMES}
    ways = ", ".join(f"{count} against {how.replace('_', ' ')}" for how, count in timed.items() if count)
    gpus = ", ".join(sorted({row.case.gpu for row in rows}))
    sizes = ", ".join(sorted({row.size for row in rows}, key=_edge))
    return f"{len(rows)} cases on {gpus}, sizes {sizes}: times of {ways}."


def _edge(size: str) -> int:
    return int(size.partition("x")[0])


def _errors(found: Ablation) -> Table:
    lines = [(NOTHING, *_figures(found.figures), "", "", "")]
    for effect in found.effects:
        change = f"{effect.change:+.1f}"
        lines.append((effect.mechanism.key, *_figures(effect.figures), change, str(effect.changed), _kernels(effect)))
    columns = ("off", "MAPE %", "p90 %", "worst %", "bias %", "change", "changed", "kernels")
    return Table(columns, tuple(lines), frozenset(range(1, 7)))


def _figures(figures: Figures) -> tuple[str, str, str, str]:
    return f"{figures.mean:.1f}", f"{figures.p90:.1f}", f"{figures.worst:.1f}", f"{figures.bias:+.1f}"


def _kernels(effect: Effect) -> str:
    shown = [(name, change) for name, change in effect.kernels[:SHOWN] if abs(change) > CHANGED_PCT]
    return ", ".join(f"{name} {change:+.0f} %" for name, change in shown)


def _mechanisms(found: Ablation) -> Table:
    rows = tuple((e.mechanism.key, e.mechanism.why, e.mechanism.instead) for e in found.effects)
    return Table(("mechanism", "what it models", "without it"), rows)


def as_data(found: Ablation) -> dict[str, Any]:
    """Everything that the other formats show, and all kernels."""
    return {
        "schema_version": SCHEMA_VERSION,
        "gemmsim": __version__,
        "cases": [
            {
                "id": row.case.id,
                "predicted_us": row.time.predicted,
                "measured_us": row.time.measured,
                "against": row.how,
            }
            for row in found.cases
            if row.time
        ],
        "failed": [{"id": case.id, "error": why} for case, why in found.failed],
        "time_pct": asdict(found.figures),
        "without": [
            {
                "mechanism": effect.mechanism.key,
                "why": effect.mechanism.why,
                "instead": effect.mechanism.instead,
                "time_pct": asdict(effect.figures),
                "change_points": effect.change,
                "changed": effect.changed,
                "kernels_pct": dict(effect.kernels),
            }
            for effect in found.effects
        ],
    }
