"""gemmsim sensitivity, from the command line to its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemmsim.cli.main import main

SMALL = ["sensitivity", "--kernel", "tiled", "--size", "64"]

pytest.importorskip("numba_cuda")


def test_time_is_that_of_analyze(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--gpu", "h200", "--set", "launch.overhead=2us", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["analyze", *SMALL[1:], "--gpu", "h200", "--set", "launch.overhead=2us", "--format", "json"]) == 0
    assert found["time_us"] == json.loads(capsys.readouterr().out)["time"]["us"]
    (overhead,) = [one for one in found["effects"] if one["key"] == "launch.overhead_us"]
    assert overhead["saved_us"] == pytest.approx(0.2) and overhead["changes"] == "time"


def test_by_another_share(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--by", "50"]) == 0
    out, err = capsys.readouterr()
    assert "EACH NUMBER 50 % BETTER, ALONE\n  GPU file key" in out and err == ""
    assert max(map(len, out.splitlines())) <= 80


def test_a_python_kernel_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("def add(A, B):\n    B[0] = A[0]\n")
    args = ["--grid", "1", "--block", "32", "--arg", "f32[32]", "--arg", "f32[32]", "--format", "csv"]
    assert main(["sensitivity", f"{tmp_path}/mine.py:add", *args, "-o", str(tmp_path / "s.csv")]) == 0
    assert capsys.readouterr().out == "" and "launch.overhead_us" in (tmp_path / "s.csv").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give either --kernel NAME or a TARGET"),
        (["--kernel", "tiled"], "no problem size"),
        (["--kernel", "tiled", "--size", "64", "--by", "0"], "--by 0 must be above 0 and below 100"),
        (["--kernel", "tiled", "--size", "64", "--gpu", "a100o"], "unknown GPU 'a100o'"),
    ],
)
def test_errors_are_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensitivity", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and len(err.splitlines()) == 1 and message in err
