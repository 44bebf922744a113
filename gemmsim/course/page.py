"""Writes the course as one HTML page that fetches nothing: it asks, and then shows what the run says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gemmsim.course.steps import Step
from gemmsim.course.text import change, shown
from gemmsim.report.layout.web_page import web_page
from gemmsim.report.layout.words import number


def render(steps: Sequence[Step], size: int, gpu: str) -> str:
    data = {"steps": [_step(step) for step in steps], "longest_us": max(step.time_us for step in steps)}
    title = f"From naive to tensor cores: {size} x {size} x {size} on {gpu}"
    return web_page(__package__, ("learn.js",), {"TITLE": title}, data)


def _step(step: Step) -> dict[str, object]:
    counters = [
        [name, "" if before is None else number(before), number(now), change(before, now)]
        for name, before, now in step.counters
    ]
    asked = [
        asdict(one) | {"shown": shown(one.answer, one.unit), "slack": max(one.within * abs(one.answer), 0.005)}
        for one in step.questions
    ]
    return asdict(step) | {"counters": counters, "questions": asked, "time": f"{step.time_us:,.1f} us"}
