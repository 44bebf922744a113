"""The commands that pages show, run; what they quote of the output must still be printed."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import console_blocks as console
import pytest
from gemmsim_validate.cli.main import main as gemmsim_validate

from gemmsim.cli.main import main as gemmsim

pytestmark = pytest.mark.usefixtures("native_engine")
ROOT = Path(__file__).parents[2]
PROGRAMS = {"gemmsim": gemmsim, "gemmsim-validate": gemmsim_validate}
PAGE = """\
% times within 10 %
```console
$ gemmsim analyze --kernel tiled \\
    --size 64
time      : 10.0 us  ###
[...]
$ gemmsim nonsense
$ echo $?
2
```
"""


def test_blocks_are_read() -> None:
    first, second = console.commands_of(PAGE)
    assert first == console.Command("gemmsim analyze --kernel tiled --size 64", 0.1, 0, ("time      : 10.0 us  ###",))
    assert (second.line, second.status, second.quoted) == ("gemmsim nonsense", 2, ())


@pytest.mark.parametrize(
    ("printed", "fits"),
    [
        ("time : 11.0 us  ####", True),
        ("time : 11.2 us", False),
        ("time : 8.9 us", True),
        ("time : 10.0 ms", False),
        ("time : 10.0 us, 1.0 of it overhead", False),
        ("", False),
    ],
)
def test_a_tolerance(printed: str, fits: bool) -> None:
    (command, _) = console.commands_of(PAGE)
    assert (console.missing(command, f"first\n{printed}\nlast") == []) is fits


@pytest.mark.parametrize(
    ("quoted", "printed", "fits"),
    [
        ("bank conflicts 100", "bank conflicts 101", False),
        ("lsu 20%  854,016 wavefronts", "lsu 21%  854,016 wavefronts", True),
        ("lsu 20%  854,016 wavefronts", "lsu 20%  854,017 wavefronts", False),
        ("23,000 cycles at 1.410 GHz", "23,900 cycles at 1.410 GHz", True),
        ("4.5 MB at 272 of 5,430 GB/s", "4.5 MB at 280 of 5,430 GB/s", True),
        ("grid 8 x 8", "grid 8 x 9", False),
    ],
)
def test_counts_are_exact_where_times_have_a_tolerance(quoted: str, printed: str, fits: bool) -> None:
    assert (console.missing(console.Command("gemmsim", 0.05, 0, (quoted,)), printed) == []) is fits


def test_without_a_tolerance_numbers_are_as_quoted() -> None:
    command = console.Command("gemmsim", 0.0, 0, ("a 1,000 b",))
    assert console.missing(command, "a  1,000 b") == []
    assert console.missing(command, "a 1,001 b") == ["a 1,000 b"]


@pytest.mark.parametrize("page", console.pages(ROOT), ids=lambda page: page.stem)
def test_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its reader would go through it, from a checkout: the files that it shows, its commands in order."""
    text = page.read_text(encoding="utf-8")
    for folder in ("docs", "validate"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for name, content in console.files_of(text).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    for command in console.commands_of(text):
        program, *words = shlex.split(command.line, comments=True)
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            status = PROGRAMS[program](words)
        assert status == command.status, f"{command.line}\n{out.getvalue()}"
        lost = console.missing(command, out.getvalue())
        assert not lost, f"{command.line}: no longer printed: {lost}\n{out.getvalue()}"
