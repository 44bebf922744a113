"""What a terminal gets: colours, unless NO_COLOR asks for none, its width, and completion; defaults that users set."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gemmsim.cli.colour import coloured
from gemmsim.cli.main import main

TEXT = """\
bottleneck: lsu pipe: 90% of
            peak
verified  : NO: relative error 1

WHAT TO CHANGE
  * bank conflicts
      17.0 wavefronts

HOW BUSY EACH UNIT IS
  lsu pipe  92.6%  ###  12
  * a note
FAIL  x <= 4: it is 5
ok    y
"""


def test_colours_mark_what_matters_and_change_no_text() -> None:
    lines = coloured(TEXT).splitlines()
    assert click.unstyle("\n".join(lines) + "\n") == TEXT
    marked = [re.findall(r"\x1b\[[1-9][\d;]*m(?:\x1b\[1m)?([^\x1b]*)", line) for line in lines]
    assert marked[:3] == [["lsu pipe: 90% of"], ["peak"], ["NO"]]
    assert marked[4:6] == [["WHAT TO CHANGE"], ["  * bank conflicts"]]
    assert marked[6:] == [[], [], ["HOW BUSY EACH UNIT IS"], ["###"], [], ["FAIL"], ["ok"]]


def on_a_terminal(*args: str, columns: int = 100, **environment: str) -> str:
    """What `gemmsim` writes to a terminal."""
    ours, theirs = pty.openpty()
    names = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "GEMMSIM_GPU")}
    names |= {"COLUMNS": str(columns), "TERM": "xterm", "GEMMSIM_PROGRESS": "0", **environment}
    with subprocess.Popen([sys.executable, "-m", "gemmsim", *args], stdout=theirs, stderr=theirs, env=names) as run:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # Linux's way to say that the other side is closed
            pass
    os.close(ours)
    assert run.returncode == 0, said
    return said.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_its_width_unless_no_color() -> None:
    plain = on_a_terminal("explain", NO_COLOR="1")
    assert "\x1b" not in plain and 90 < max(map(len, plain.splitlines())) <= 100
    colourful = on_a_terminal("explain")
    assert click.unstyle(colourful) == plain
    assert "\x1b[1mSTALL REASONS\x1b[0m" in colourful
    assert "\x1b" not in on_a_terminal("explain", "wavefront", "--format", "json")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "mine.toml"
    monkeypatch.setenv("GEMMSIM_CONFIG", str(path))
    monkeypatch.delenv("GEMMSIM_GPU", raising=False)
    return path


def gpu_of(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[str, str]:
    assert main(["analyze", "--kernel", "tiled", "--size", "32", "--format", "json", *args]) == 0
    report = json.loads(capsys.readouterr().out)
    return report["gpu"]["name"], report["launch"]["caches"]


def test_defaults_come_from_the_command_line_the_environment_and_a_file(
    settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order; the table of a command goes before what holds for all."""
    settings.write_text('gpu = "h200"\ncaches = "warm"\n')
    assert gpu_of(capsys) == ("h200", "warm")
    assert gpu_of(capsys, "--caches", "cold") == ("h200", "cold")
    monkeypatch.setenv("GEMMSIM_GPU", "rtx4090")
    assert gpu_of(capsys) == ("rtx4090", "warm")
    assert gpu_of(capsys, "--gpu", "a100-80gb") == ("a100-80gb", "warm")
    settings.write_text('caches = "warm"\n[analyze]\ncaches = "cold"\n')
    assert gpu_of(capsys) == ("rtx4090", "cold")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gup = 3", "'gup' is none of gpu, caches, clock, engine, jobs, seed (did you mean 'gpu'?)"),
        ("[analyse]", "there is no command 'analyse' (did you mean 'analyze'?)"),
        ("[analyze]\nsizes = 3", "gemmsim analyze has no option --sizes (did you mean 'size'?)"),
        ("[analyze]\nsize = 'big'", "'big' is not a valid integer"),
        ("gpu = ", "cannot read "),
    ],
)
def test_mistakes_in_the_file_are_named(
    text: str, message: str, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write_text(text)
    assert main(["analyze", "--kernel", "tiled"]) == 2
    assert message in capsys.readouterr().err
    settings.unlink()
    assert main(["analyze", "--kernel", "tiled"]) == 2
    assert "which GEMMSIM_CONFIG names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("gemmsim sens", {"sensitivity"}),
        ("gemmsim analyze --kernel tiled_s", {"tiled_swizzled"}),
        ("gemmsim check --gpu rtx409", {"rtx4090", "rtx4090-laptop"}),
        ("gemmsim compare --gpus h200,rtxa", {"h200,rtxa6000"}),
    ],
)
def test_shells_complete_commands_kernels_and_gpus(words: str, wanted: set[str]) -> None:
    asks = {"_GEMMSIM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    script = "import sys; sys.argv = ['gemmsim']; from gemmsim.cli.main import run; run()"
    run = subprocess.run([sys.executable, "-c", script], env=os.environ | asks, capture_output=True, text=True)
    assert {line.partition(",")[2] for line in run.stdout.splitlines()} == wanted
