"""Processes that begin at once with empty caches, a clock that jumps, and a sweep that is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gemmsim
from gemmsim.cli.main import main

PROCESSES = 8
KERNEL = 'extern "C" __global__ void f(float *a) { a[threadIdx.x] = 1; }'
OWN = ["analyze", "k.cu", "--entry", "f", "--grid", "1", "--block", "32", "--arg", "f32[32]", "--format", "json"]
SWEEP = ["sweep", "--kernel", "tiled", "--size", "32,64,96", "--gpus", "a100", "--jobs", "1", "--format", "csv"]


def many_at_once(folder: Path, environment: dict[str, str]) -> None:
    """All succeed, say nothing and print the same."""
    (folder / "k.cu").write_text(KERNEL)
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "gemmsim", *OWN],
            cwd=folder,
            env=os.environ | environment | {"GEMMSIM_PROGRESS": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    said = [one.communicate() for one in begun]
    assert {one.returncode for one in begun} == {0}
    assert {errors for _, errors in said} == {""}
    assert len({output for output, _ in said}) == 1 and said[0][0].startswith("{")


@pytest.mark.slow
def test_eight_processes_on_an_empty_compile_cache(tmp_path: Path) -> None:
    many_at_once(tmp_path, {"GEMMSIM_CACHE_DIR": str(tmp_path / "cache")})
    assert len([path for path in (tmp_path / "cache").rglob("*") if path.is_file()]) == 1


@pytest.mark.slow
def test_eight_processes_that_compile_the_engine(tmp_path: Path) -> None:
    """Its machine code lies in the package, of which this is a copy."""
    package = tmp_path / "packages" / "gemmsim"
    shutil.copytree(Path(gemmsim.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    paths = os.pathsep.join([str(package.parent), *sys.path])
    many_at_once(tmp_path, {"GEMMSIM_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths})
    assert list((package / "__pycache__").glob("gemmsim-*"))


@pytest.mark.parametrize("jump_s", [-1e9, 1e9])
def test_a_clock_that_jumps(
    jump_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By thirty years between a result and its second use, and back: caches and stores go by content, not by time."""
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(KERNEL)
    now, sweep = time.time, [*SWEEP, "-o", "s.sqlite"]
    assert main(OWN) == main(sweep) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(time, "time", lambda: now() + jump_s)
    for path in tmp_path.rglob("*"):
        os.utime(path, (now() - jump_s, now() - jump_s))
    assert main(OWN) == main(sweep) == 0
    assert capsys.readouterr().out == first
    with sqlite3.connect(tmp_path / "s.sqlite") as store:
        assert store.execute("SELECT count(*) FROM result").fetchone() == (3,)
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "s.sqlite"
    command = [*SWEEP, "-o", str(store)]
    with subprocess.Popen(
        [sys.executable, "-m", "gemmsim", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as killed:
        while killed.poll() is None and not stored(store):
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    there = stored(store)
    assert there >= 1
    assert main(command) == 0
    resumed = capsys.readouterr().out
    assert main([*SWEEP, "-o", str(tmp_path / "fresh.sqlite")]) == 0
    assert capsys.readouterr().out == resumed and stored(store) == 3


def stored(path: Path) -> int:
    """Return how many results are in a store, 0 while there is none."""
    if not path.exists():
        return 0
    file = sqlite3.connect(path, timeout=10)
    try:
        return int(file.execute("SELECT count(*) FROM result").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        file.close()
