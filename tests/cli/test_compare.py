"""gemmsim compare, from the command line to its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gemmsim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["compare", "--size", "64", "--kernel", "naive", "--kernel", "tiled:tile=16", "--jobs", "1"]

pytest.importorskip("numba_cuda")


def data(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    assert main([*args, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_rows_are_what_analyze_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = data(capsys, *SMALL)["groups"][0]["rows"]
    single = data(capsys, "analyze", "--kernel", "tiled", "--set-kernel", "tile=16", "--size", "64")
    assert [row["name"] for row in rows] == ["naive", "tiled:tile=16"]
    assert rows[1]["time_us"] == single["time"]["us"]
    assert rows[1]["limiter_text"] == single["bottleneck"]["sentence"]
    assert rows[1]["warp_instructions"] == single["instructions"]["executed"]
    assert rows[1]["speed_up"] == rows[0]["time_us"] / rows[1]["time_us"]


def test_warm_caches(capsys: pytest.CaptureFixture[str]) -> None:
    """A, B and C of 64 x 64 fit in L2. naive is bound by the lines of its requests: what arrives sooner only changes
    which warp meets which."""
    cold, warm = data(capsys, *SMALL), data(capsys, *SMALL, "--caches", "warm")
    assert (cold["caches"], warm["caches"]) == ("cold", "warm")
    times = [[row["time_us"] for row in found["groups"][0]["rows"]] for found in (cold, warm)]
    assert times[1][0] == pytest.approx(times[0][0], rel=0.12)
    assert times[1][1] < 0.95 * times[0][1]
    single = data(capsys, "analyze", "--kernel", "naive", "--size", "64", "--caches", "warm")
    assert single["launch"]["caches"] == "warm" and single["counters"]["dram__sectors_read.sum"] == 0
    assert single["time"]["us"] == times[1][0]
    assert main([*SMALL, "--caches", "warm"]) == 0
    assert "caches warm (L2 as the launch before left it)" in capsys.readouterr().out


def test_processes_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, *SMALL) == data(capsys, *SMALL[:-1], "2")


def test_rungs_that_cannot_run_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--kernel", "tensorcore_naive", "--dtype", "f32"]) == 0
    out, err = capsys.readouterr()
    assert "CANNOT RUN\n  tensorcore_naive on a100-80gb: dtype f32: tensorcore_naive takes" in out
    assert "[3/3] tensorcore_naive on a100-80gb: cannot run" in err


def test_one_kernel_over_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "compare", "--size", "64", "--kernel", "tiled", "--gpus", "a100-80gb,h200", "--jobs", "1")
    (group,) = found["groups"]
    assert [row["gpu"] for row in group["rows"]] == ["a100-80gb", "h200"] and found["by_gpu"]


def test_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--format", "csv", "-o", str(tmp_path / "ladder.csv")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "ladder.csv").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no problem size"),
        (["--size", "64", "--kernel", "tield"], "unknown kernel 'tield' (did you mean 'tiled'?)"),
        (["--size", "64", "--kernel", "tiled:tile=7"], "tile=7: tiled takes tile of"),
        (["--size", "64", "--kernel", "tiled:tile=x"], "'x' is not an integer"),
        (["--size", "64", "--dtype", "f99"], "no kernel takes dtype f99"),
        (["--size", "64", "--gpu", "a100", "--gpus", "h200"], "give one of them"),
        (["--size", "64", "--gpus", "a100,,h200"], "unknown GPU ''"),
        (["--size", "64", "--jobs", "0"], "--jobs 0"),
        (["--size", "64", "--kernel", "tensorcore_naive", "--dtype", "f32"], "none of 1 kernel can run"),
    ],
)
def test_errors_are_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *args]) == 2
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith("error: ") and message in last


def test_interrupt_ends_every_process(tmp_path: Path) -> None:
    """SIGINT to the parent alone: it says nothing more than that. Standard error closes when the last worker ends."""
    command = [sys.executable, "-m", "gemmsim", "compare", "--size", "256", "--jobs", "2", "-o", str(tmp_path / "x")]
    run = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    assert run.stderr is not None and b"1/" in run.stderr.readline()
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=240)
    assert (run.returncode, out) == (130, b"") and b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_engines_agree_and_each_row_names_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    simpy, native = (data(capsys, *SMALL, "--engine", engine)["groups"][0]["rows"] for engine in ("simpy", "native"))
    assert {row.pop("engine") for row in simpy} == {"simpy"} and {row.pop("engine") for row in native} == {"native"}
    assert simpy == native
