"""Renders a Report as one HTML file that fetches nothing."""

from __future__ import annotations

from typing import Any

from gemmsim.report.html.data import Detail, page_data
from gemmsim.report.layout.web_page import web_page
from gemmsim.report.report import Report

MOST_BYTES = 2_000_000
_SCRIPTS = (
    "core.js",
    "widgets.js",
    "verdict.js",
    "former.js",
    "roofline.js",
    "memory.js",
    "stalls.js",
    "mix.js",
    "source.js",
    "occupancy.js",
    "threads.js",
    "lanes.js",
    "banks.js",
    "swizzle.js",
    "tiles.js",
    "product.js",
    "counters.js",
    "main.js",
)


def render(report: Report) -> str:
    """Render a report as an HTML page, with the most `Detail` that keeps it within `MOST_BYTES`, or else the least."""
    for detail in Detail:
        page = _page(report, page_data(report, detail))
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def _page(report: Report, data: dict[str, Any]) -> str:
    labels = report.labels
    size = f" {labels.m} x {labels.n} x {labels.k}" if labels.m else ""
    title = f"{labels.kernel}{size} on {report.evidence.gpu.title}"
    sentence = report.bottleneck.sentence
    verdict, bracket, detail = sentence.partition(" (")
    if not sentence.endswith(")"):  # what stands in brackets is no mere detail
        verdict, bracket, detail = sentence, "", ""
    texts = {"TITLE": title, "VERDICT": verdict, "DETAIL": bracket.strip() + detail}
    return web_page(__package__, _SCRIPTS, texts, data)
