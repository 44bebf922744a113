"""What is said while a command works: what, when, and where it goes."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest

from gemmsim.support import progress
from gemmsim.support.progress import AGAIN_S, SILENT_S, Watch, blocks_done, doing


@pytest.fixture(autouse=True)
def no_blocks() -> None:
    progress.blocks.done = progress.blocks.total = 0


def test_a_line_at_each_change_and_then_after_a_while() -> None:
    out = io.StringIO()
    watch = Watch(out, terminal=False, now=0.0)
    for now, what in ((SILENT_S - 0.1, "a"), (SILENT_S, "a"), (SILENT_S + 3, "a"), (SILENT_S + 4, "b")):
        watch.look(now, what)
    watch.look(SILENT_S + 4 + AGAIN_S, "b")
    assert out.getvalue() == "a ...\nb ...\nb ...\n"


def test_a_terminal_has_one_line_that_goes_before_output() -> None:
    out = io.StringIO()
    watch = Watch(out, terminal=True, now=0.0)
    watch.look(SILENT_S, "a")
    watch.look(SILENT_S + 0.25, "b")
    watch.clear()
    assert out.getvalue() == "\r\x1b[2Ka ...\r\x1b[2Kb ...\r\x1b[2K"


def test_blocks_have_a_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 of 120 blocks took 10 s: the other 90 take 30."""
    monkeypatch.setattr(progress.time, "monotonic", lambda: 100.0)
    blocks_done(0, 120)
    blocks_done(30, 120)
    out = io.StringIO()
    Watch(out, terminal=False, now=100.0).look(110.0, "executing blocks")
    assert out.getvalue() == "executing blocks: 30 of 120, about 30 s left ...\n"


def test_the_innermost_part_of_the_package_says_what_is_done() -> None:
    seen: list[str] = []
    waiting, found = threading.Event(), threading.Event()

    def work() -> None:
        waiting.set()
        found.wait(5)

    code = compile("def call(f):\n    f()\n", "/somewhere/gemmsim/memory/serve.py", "exec")
    names: dict = {}
    exec(code, names)
    thread = threading.Thread(target=names["call"], args=(work,))
    thread.start()
    waiting.wait(5)
    seen.append(doing(sys._current_frames()[thread.ident or 0]))
    found.set()
    thread.join()
    assert seen == ["counting memory accesses"] and doing(None) == "working"


def test_a_long_command_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes some seconds without samples: standard error says so, standard output is as ever."""
    monkeypatch.delenv("GEMMSIM_PROGRESS")
    command = [sys.executable, "-m", "gemmsim", "analyze", "--kernel", "naive", "--size", "256", "--full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " ...\n" in done.stderr and "..." not in done.stdout.splitlines()[0]
