"""What the page says about a metric, a stall reason or a term where one asks."""

from __future__ import annotations

from typing import Any

from gemmsim.report.metrics import METRICS
from gemmsim.report.report import Report
from gemmsim.sm.types import STALL_REASONS

STALL_METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def terms(report: Report) -> dict[str, dict[str, Any]]:
    """name -> what it is; of the metrics those that the report has."""
    found = {}
    for name in report.evidence.counters:
        if metric := METRICS.get(name):
            found[name] = {"title": metric.label, "unit": metric.unit, "text": [metric.meaning]}
    for reason in STALL_REASONS:
        if metric := METRICS.get(STALL_METRIC.format(reason)):
            found[reason] = {"title": reason, "unit": metric.unit, "text": [metric.meaning]}
    return found
