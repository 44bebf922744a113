"""The course: its answers are those of the runs, worked out by hand where that is possible; it asks and tells."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gemmsim.cli.main import main
from gemmsim.course import page
from gemmsim.course.steps import Step, names, steps
from gemmsim.course.text import change, guess_of
from gemmsim.gpu import load_gpu
from gemmsim.launch.ladder import kernel_infos

GPU = load_gpu("a100-80gb")
SIZE = 64


@pytest.fixture(scope="module")
def course() -> list[Step]:
    """Its first five steps."""
    return list(islice(steps(SIZE, GPU), 5))


def test_answers_by_hand(course: list[Step]) -> None:
    """64 x 64 x 64: 4 blocks of 32 x 32. Coalesced: 128 warps ask for 1 + 4 sectors at each of 64 k; tiled for 4 + 4
    for each of 2 tiles; each warp stores 128 bytes."""
    found = {step.kernel: [one.answer for one in step.questions] for step in course}
    assert list(found) == names()[:5] and set(names()) <= set(kernel_infos())
    assert found["naive"] == [32] and found["coalesced"][0] == 4
    warps = SIZE * SIZE // 32
    coalesced, tiled = warps * (SIZE * 5 + 4), warps * (SIZE // 32 * 8 + 4)
    assert found["tiled"] == [pytest.approx(coalesced / tiled)]
    assert found["tiled_transposed"][0] == 32 and found["tiled_padded"] == [0]
    by_name = {step.kernel: step for step in course}
    for kernel, before in (("coalesced", "naive"), ("tiled_transposed", "tiled")):
        assert found[kernel][-1] == pytest.approx(by_name[before].time_us / by_name[kernel].time_us)
    moved = {name: (old, new) for name, old, new in by_name["tiled_padded"].counters}
    assert moved["bank conflicts"][0] > 0 == moved["bank conflicts"][1]
    assert "shared wavefronts" in by_name["tiled_padded"].why
    assert [step.why == "" for step in course] == [True] + [False] * (len(course) - 1)
    assert any("acc += A[row, k] * B[k, col]" in text for _, text in course[0].source)


@pytest.mark.slow
def test_the_other_answers() -> None:
    """128 x 128 is one tile of async_pipelined's; 8 x 8 results a thread make most instructions multiply-adds."""
    found = {one.kernel: one.questions[0].answer for one in steps(128, GPU, "blocktile_1d")}
    assert list(found) == names()[5:]
    assert found["async_pipelined"] == 1 and 80 < found["warptiled"] < 95 and found["blocktile_1d"] > 2


def test_what_is_near_enough(course: list[Step]) -> None:
    exact, about = course[0].questions[0], course[1].questions[1]
    assert exact.right(32) and not exact.right(31)
    assert about.right(about.answer * (1 + 0.9 * about.within)) and not about.right(about.answer * (1.1 + about.within))


GUESSES: dict[str, float | None] = {"32": 32, "1,024 sectors": 1024, "0.2x": 0.2, "90 %": 90, "1/5": 0.2, ".5": 0.5}
GUESSES |= {"-3": -3, "": None, "x": None, "1/0": None}


@pytest.mark.parametrize(("text", "guess"), GUESSES.items())
def test_guesses(text: str, guess: float | None) -> None:
    assert guess_of(text) == guess


MOVED = [(None, 3, ""), (4, 4, ""), (0, 4, "new"), (4, 0, "gone"), (100, 105, "+5 %"), (100, 20, "5.0x less")]


@pytest.mark.parametrize(("before", "now", "text"), [*MOVED, (2, 9, "4.5x more")])
def test_how_a_counter_moved(before: float | None, now: float, text: str) -> None:
    assert change(before, now) == text


def test_without_a_terminal_each_step_comes_with_its_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "--size", "64", "--from", "tensorcore_pipelined"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("STEP 1 of 1, TENSORCORE_PIPELINED\n") and "PREDICT: How many times as fast" in text
    assert text.index("The run says") < text.index("\nLOOK\n") < text.index("\nEXPLAIN\n") < text.index("\nNEXT\n")
    assert max(map(len, text.splitlines())) <= 80
    for bad, message in (
        (["--from", "tild"], "did you mean 'tiled'"),
        (["--size", "9"], "the course takes 64 to 8192"),
    ):
        assert main(["learn", *bad]) == 2
        assert message in capsys.readouterr().err


def test_at_a_terminal_it_asks() -> None:
    """A word that is no number, a wrong number, Enter at the end of the step, then q."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "80", "GEMMSIM_PROGRESS": "0"}
    command = [sys.executable, "-m", "gemmsim", "learn", "--size", "64"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as run:
        os.close(theirs)
        os.write(ours, b"many\n31\n\nq\n")
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # Linux's way to say that the other side is closed
            pass
    os.close(ours)
    text = said.decode()
    assert run.returncode == 0, text
    assert "a number, such as 32" in text and "You said 31 sectors; the run says 32 sectors." in " ".join(text.split())
    assert "STEP 2 of 9, COALESCED" in text and text.rstrip().endswith("0 of 1 right.")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_the_page_asks_and_tells(browser: Any, course: list[Step], tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "course.html"
    path.write_text(page.render(course, SIZE, GPU.title), encoding="utf-8")
    browser.open(path, width=width, dark=dark)
    shown = "return [...document.querySelectorAll('section')].filter((one) => !one.hidden).length"
    assert browser.script(shown) == 1 and browser.text("#score") == "7 questions."
    box = browser.one("#guess-0-0")
    box.send_keys("many\n")
    assert box.get_attribute("aria-invalid") == "true"
    box.clear()
    box.send_keys("32\n")
    assert browser.text("#step-0 .told").startswith("Right. The run says 32 sectors.")
    assert browser.script(shown) == 2 and browser.text("#score") == "1 of 1 right, 6 to go."
    for _ in course:
        for button in browser.all("section:not([hidden]) button.plain:not([hidden])"):
            button.click()
    assert browser.script(shown) == len(course) and browser.text("#score") == "1 of 7 right, 0 to go."
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
