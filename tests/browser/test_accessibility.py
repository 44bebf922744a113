"""axe-core finds nothing in the pages, narrow or wide, light or dark, with everything unfolded.

Its code comes with the package axe-core-python, from which this takes the one file.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from timeline_factory import timeline_report

import gemmsim
from gemmsim.course import page as course_page
from gemmsim.course.steps import steps
from gemmsim.gpu import load_gpu
from gemmsim.report.timeline.page import render as timeline_page
from gemmsim.report.timeline.types import Window

pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")

FOUND = """
    const done = arguments[0];
    axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => done(violations.map(
        (one) => `${one.impact} ${one.id}, ${one.nodes.length} times: ${one.nodes[0].html.slice(0, 150)}`)));"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture(scope="module")
def every_page(pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    made = timeline_report()
    gpu = load_gpu("a100-80gb")
    texts = {
        "timeline": timeline_page(made, Window(0, made.timeline.cycles)),
        "course": course_page.render(list(steps(64, gpu, "tensorcore_pipelined")), 64, gpu.title),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    gemmsim.sweep("tiled", tunables={"tile": [16, 32]}, size=64).save(folder / "table.html")
    return {name: folder / f"{name}.html" for name in (*texts, "table")} | pages


def violations(browser: Any, path: Path, **how: Any) -> list[str]:
    browser.open(path, **how)
    browser.script(UNFOLD)
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    browser.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    found: list[str] = browser.driver.execute_async_script(FOUND)
    return found


def test_a_violation_would_be_seen(browser: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<html lang='en'><title>x</title><main><h1>x</h1><img src='data:,'></main></html>")
    (only,) = violations(browser, bad)
    assert only.startswith("critical image-alt")


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("conflicts", 1280, False),
        ("beside", 400, True),
        ("local", 1280, True),
        ("local", 400, False),
        ("timeline", 1280, True),
        ("course", 400, False),
        ("course", 1280, True),
        ("table", 400, True),
    ],
)
def test_nothing_is_found(browser: Any, every_page: dict[str, Path], name: str, width: int, dark: bool) -> None:
    assert violations(browser, every_page[name], width=width, dark=dark) == []
