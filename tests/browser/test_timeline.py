"""The timeline's page in a real browser: it draws without an error or a request, zooms, and answers to keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keys import DOWN, HOME, LEFT, RIGHT, UP
from timeline_factory import timeline_report

from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.timeline.page import render
from gemmsim.report.timeline.types import Window
from gemmsim.studies.timeline import timeline

# Pixels of the chart that have one of the states' colours, by state.
COLOURED = """
    const canvas = document.getElementById("chart"), pen = canvas.getContext("2d");
    const data = JSON.parse(document.getElementById("data").textContent);
    const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, found = {};
    const names = Object.fromEntries(data.reasons.map(([name, , , colour]) => [parseInt(colour.slice(1), 16), name]));
    for (let at = 0; at < pixels.length; at += 4) {
        const name = names[(pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]];
        if (name) found[name] = (found[name] || 0) + 1;
    }
    return found;"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("timelines")
    real = timeline(ladder_launch(LadderCase("tiled", 64, 64, 64), load_gpu("a100-80gb")))
    reports = {"by_hand": timeline_report(), "tiled": real}
    for name, report in reports.items():
        whole = Window(0, report.timeline.cycles)
        (folder / f"{name}.html").write_text(render(report, whole), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in reports}


@pytest.fixture
def at(browser: Any, files: dict[str, Path]) -> Iterator[Any]:
    def opened(name: str, **how: Any) -> Any:
        browser.open(files[name], **how)
        return browser

    yield opened
    assert browser.errors() == []
    # The browser's own first tab (chrome:) may still have been loading.
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "chrome:"))] == []


def drawn(page: Any) -> None:
    """Waits until what was asked for is on the canvas."""
    twice = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()));"
    page.driver.execute_async_script(twice)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (420, False)])
def test_it_draws_every_state(at: Any, width: int, dark: bool) -> None:
    page = at("tiled", width=width, dark=dark)
    found = page.script(COLOURED)
    for state in ("selected", "long_scoreboard", "barrier", "mio_throttle", "not_selected"):
        assert found.get(state, 0) > 100, state
    assert page.script("return document.documentElement.scrollWidth") <= width
    assert "mio throttle" in page.text("#legend") and "cycles 0 to" in page.text("#range")


def test_areas_are_as_large_as_the_cycles(at: Any) -> None:
    found = at("by_hand", width=1280).script(COLOURED)
    assert found["long_scoreboard"] / found["drain"] == pytest.approx(17 / 5, rel=0.1)
    assert found["barrier"] / found["not_selected"] == pytest.approx(4 / 2, rel=0.15)


def test_keys_go_from_state_to_state_and_warp_to_warp(at: Any) -> None:
    page = at("by_hand")
    page.focus("#chart")
    page.press(RIGHT)
    assert page.text("#info").startswith("b0 w0, sub-partition 0: long scoreboard, cycle 3 to 20, 17 cycles")
    assert "to issue: FFMA R0, R2, R3, R0   line 4: acc += a * b" in page.text("#info")
    assert "under way: 1 DRAM" in page.text("#info")
    page.press(LEFT)
    assert ": issues, cycle 2\nLDG.E R2, [R4]   line 3: a = A[</script>]" in page.text("#info")
    page.press(RIGHT, DOWN)
    assert page.text("#info").startswith("b0 w1, sub-partition 1: not selected, cycle 2 to 4")
    page.press(UP)
    assert page.text("#info").startswith("b0 w0")


def test_zoom_and_back(at: Any) -> None:
    page = at("tiled")
    whole = page.text("#range")
    page.focus("#chart")
    page.press("+", "+")
    drawn(page)
    near = page.text("#range")
    first, stop = (int(number.replace(",", "")) for number in near.removeprefix("cycles ").split(" to "))
    assert near != whole and 0 < first < stop < 6505
    page.press(HOME)
    drawn(page)
    assert page.text("#range") == whole
    page.one("#in").click()
    drawn(page)
    assert page.text("#range") != whole


def test_one_state_alone(at: Any) -> None:
    page = at("tiled")
    button = next(one for one in page.all("#legend button") if "barrier" in one.text)
    button.click()
    drawn(page)
    found = page.script(COLOURED)
    assert found["barrier"] > 100 and found.get("mio_throttle", 0) == 0
    assert button.get_attribute("aria-pressed") == "true"
