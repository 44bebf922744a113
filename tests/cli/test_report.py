"""gemmsim report: the file it writes, and what it says where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemmsim.cli.main import main

SMALL = ("report", "--kernel", "tiled", "--size", "64")


def page_data(path: Path) -> dict:
    text = path.read_text(encoding="utf-8").split('<script type="application/json" id="data">')[1]
    found: dict = json.loads(text.split("</script>")[0])
    return found


def test_writes_one_file_with_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    assert main([*SMALL, "--engine", "native", "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "wrote" in err and "KB" in err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.stat().st_size < 2_000_000
    data = page_data(target)
    assert data["report"]["kernel"]["m"] == 64 and data["report"]["time"]["engine"] == "native"
    # A block of tiled reads a 32 x 32 tile of A and one of B in each of two iterations, and stores one of C.
    view = data["block"]
    assert [phase["label"] for phase in view["phases"]] == [
        "iteration 1 of 2",
        "iteration 2 of 2",
        "after the loop over K",
    ]
    x, y, _ = view["place"]
    rows, columns = [32 * y, 32 * y + 32], [32 * x, 32 * x + 32]
    assert view["phases"][1]["parts"] == [[0, "ld", *rows, 32, 64], [1, "ld", 32, 64, *columns]]
    assert view["phases"][2]["parts"] == [[2, "st", *rows, *columns]]


def test_beside_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What analyze writes as JSON stands beside the next run, in the text and in the page."""
    before, after = tmp_path / "before.json", tmp_path / "after.html"
    launch = ["--kernel", "tiled", "--size", "64"]
    assert main(["analyze", *launch, "--set-kernel", "tile=16", "-o", str(before)]) == 0
    assert main(["analyze", *launch, "--baseline", str(before)]) == 0
    text = capsys.readouterr().out
    assert "BESIDE THE BASELINE\n  beside tiled, M=64 N=64 K=64, tile=16 on a100-80gb: " in text
    assert main(["report", *launch, "--baseline", str(before), "-o", str(after)]) == 0
    moves = {name: (was, now) for name, was, now, _ in page_data(after)["former"]["moves"]}
    assert moves["launch__shared_mem_per_block_static"] == (2 * 16 * 16 * 4, 2 * 32 * 32 * 4)
    assert main(["analyze", *launch, "--baseline", str(after)]) == 2
    assert "is not what gemmsim analyze --format json writes" in capsys.readouterr().err


def test_without_a_file_the_page_goes_to_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(SMALL)) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!DOCTYPE html>") and err == ""


def test_a_terminal_is_no_place_for_a_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(list(SMALL)) == 2
    assert "give -o report.html" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "said"),
    [("missing/report.html", "there is no folder"), (".", "it is a folder"), ("file/report.html", "no folder")],
)
def test_a_bad_path_is_one_line_before_anything_runs(
    place: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("gemmsim.api.analyze", lambda request: pytest.fail("analysed first"))
    assert main([*SMALL, "-o", str(tmp_path / place)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: cannot write") and said in err and err.count("\n") == 1


def test_a_kernel_that_computes_wrong_is_reported_and_fails(tmp_path: Path) -> None:
    """No product at all: C stays 0."""
    source = tmp_path / "zero.cu"
    source.write_text(
        'extern "C" __global__ void zero(const float* A, const float* B, float* C) { C[threadIdx.x] = 0; }'
    )
    arrays = ("--arg", "f32[4,8]", "--arg", "f32[8,8]", "--arg", "f32[4,8]")
    target = tmp_path / "zero.html"
    command = ("report", str(source), "--entry", "zero", "--grid", "1", "--block", "32", *arrays, "--verify", "gemm")
    assert main([*command, "-o", str(target)]) == 1
    assert page_data(target)["report"]["verified"]["ok"] is False
