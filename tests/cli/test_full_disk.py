"""A disk that is full at every write: one line and exit code 2, or a warning; and what was there before is as it was.

The largest size of a file that a process may write stands for the disk's, as it needs no mount.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gemmsim.cli.main import main

KERNEL = 'extern "C" __global__ void f(float *a) { a[threadIdx.x] = 1; }'
RUNG = ("--kernel", "tiled", "--size", "32", "--gpu", "a100")
SWEEP = ["sweep", *RUNG[:4], "--gpus", "a100", "--jobs", "1"]
OWN = ("analyze", "k.cu", "--entry", "f", "--grid", "1", "--block", "32", "--arg", "f32[32]")
SCRIPT = """
import contextlib, io, json, resource, sys
from gemmsim.cli.main import main
said = []
for limit, command in json.load(sys.stdin):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main(command)
    said.append((status, [line for line in errors.getvalue().splitlines() if line.startswith(("error:", "warning:"))]))
print(json.dumps(said))
"""
COMMANDS: list[tuple[int, list[str], int, str]] = [  # largest file, command, exit status, what it says
    (10, ["analyze", *RUNG, "-o", "out.json"], 2, "error: cannot write out.json: File too large"),
    (10, ["check", *RUNG, "--baseline", "base.json", "--update"], 2, "error: cannot write base.json: File too large"),
    (10, [*SWEEP, "-o", "new.sqlite"], 2, "error: cannot keep results in 'new.sqlite': "),
    (10, [*SWEEP, "-o", "old.sqlite", "--set-kernel", "tile=8"], 2, "error: cannot "),
    (2000, list(OWN), 2, "error: cannot write a file: File too large"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size")
def test_one_line_and_nothing_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(KERNEL)
    Path("out.json").write_text("as it was")
    assert main([*SWEEP, "-o", "old.sqlite"]) == 0
    environment = os.environ | {"GEMMSIM_CACHE_DIR": str(tmp_path / "cache")}
    given = json.dumps([(limit, command) for limit, command, *_ in COMMANDS])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=given, capture_output=True, text=True, check=False, env=environment
    )
    assert done.stderr == ""
    for (_, command, status, begin), (returned, said) in zip(COMMANDS, json.loads(done.stdout), strict=True):
        assert returned == status, command
        assert [line[: len(begin)] for line in said] == ([begin] if begin else []), said
    assert Path("out.json").read_text() == "as it was"
    assert not Path("base.json").exists()
    capsys.readouterr()
    assert main([*SWEEP, "-o", "old.sqlite"]) == 0
    assert "1 predicted, not measured (1 result was there before)" in capsys.readouterr().out
    assert main([*SWEEP, "-o", "new.sqlite"]) == 0
