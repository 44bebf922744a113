"""gemmsim check: exit status, the three forms of its output, baselines, and bad usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemmsim.cli.main import main

TILED = ["check", "--kernel", "tiled", "--size", "64"]
BROKEN = Path(__file__).parents[1] / "sources" / "broken.cu"


def broken(entry: str, *more: str) -> int:
    arrays = ["--arg", "f32[100]", "--arg", "f32[100]=0"]
    return main(["check", str(BROKEN), "--entry", entry, "--grid", "2", "--block", "64", *arrays, *more])


def test_what_holds_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    expectations = ["--expect", "bank_conflicts == 0", "--expect", "sectors_per_request at 31 <= 4"]
    assert main([*TILED, *expectations, "--expect", "occupancy>=50", "--sanitize"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok    sanitizer: nothing found; every block executed"
    assert lines[1].startswith("ok    the result is right, relative error ")
    assert lines[2:] == [
        "ok    bank_conflicts == 0: it is 0",
        "ok    sectors_per_request at 31 <= 4: it is 4",
        "ok    occupancy >= 50: it is 100",
        "5 of 5 hold",
    ]


def test_what_does_not_hold_is_1_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """A column of B for a warp: 32 lanes in 32 sectors."""
    assert main(["check", "--kernel", "uncoalesced_bt", "--size", "64", "--expect", "sector_excess <= 1.25"]) == 1
    text = capsys.readouterr().out
    assert "FAIL  sector_excess <= 1.25: it is 8, worst at" in text
    assert "\n      sector +0x100     |.#..............................| B[33,0]\n" in text
    assert text.endswith("\n1 of 2 hold\n") and max(map(len, text.splitlines())) <= 80


def test_a_wrong_c_is_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """C = 0 is not A @ B."""
    source = tmp_path / "zero.cu"
    source.write_text('extern "C" __global__ void zero(float* a, float* b, float* c) { c[threadIdx.x] = 0; }\n')
    arrays = [word for _ in range(3) for word in ("--arg", "f32[8,8]")]
    launch = ["check", str(source), "--grid", "1", "--block", "64", *arrays, "--verify", "gemm"]
    assert main([*launch, "--expect", "registers > 0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  the result is wrong: ") and lines[-1] == "1 of 2 hold"


def test_findings_fail_and_nothing_else_is_predicted_of_a_launch_that_dies(capsys: pytest.CaptureFixture[str]) -> None:
    assert broken("one_too_far", "--sanitize", "--expect", "time_us < 100", "--format", "json") == 1
    outcomes = json.loads(capsys.readouterr().out)["outcomes"]
    assert [(o["rule"], o["ok"]) for o in outcomes] == [("out of bounds", False)] * 2 + [("time_us", False)]
    assert outcomes[2]["message"] == "time_us < 100: not known, the launch would fail on a GPU"


def test_sarif_names_the_file_of_the_user(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN.parents[2])
    assert broken("one_place_for_all", "--sanitize", "--format", "sarif") == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    marked = BROKEN.read_text().splitlines()[location["region"]["startLine"] - 1]
    assert result["ruleId"] == "gemmsim/race"
    assert location["artifactLocation"] == {"uri": "tests/sources/broken.cu", "uriBaseId": "%SRCROOT%"}
    assert "[one_place_for_all:first]" in marked


def test_a_baseline_is_written_and_held(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "tiled.json"
    assert main([*TILED, "--baseline", str(path)]) == 2
    assert "make it with --update" in capsys.readouterr().err
    assert main([*TILED, "--baseline", str(path), "--update"]) == 0
    assert main([*TILED, "--baseline", str(path)]) == 0
    capsys.readouterr()
    data = json.loads(path.read_text())
    data["values"]["wavefronts"]["value"] += 1
    path.write_text(json.dumps(data))
    assert main([*TILED, "--baseline", str(path)]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 1 and failed[0].startswith("FAIL  wavefronts == ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "nothing to check: give --expect EXPR, --baseline FILE or --sanitize"),
        (["--sanitize", "--update"], "--update writes a baseline: say which with --baseline FILE"),
        (["--expect", "occupancy"], "'occupancy' is not an expectation"),
        (["--expect", "ocupancy > 3"], "unknown quantity 'ocupancy' (did you mean 'occupancy'?)"),
        (["--sanitize", "--also", "junit"], "--also junit: wants FORM=FILE"),
        (["--sanitize", "--also", "xml=a"], "forms are text, json, sarif, junit, github, markdown"),
        (["--expect", "sectors at nowhere > 3"], "no memory access at 'nowhere' in tiled"),
    ],
)
def test_bad_usage_is_2(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TILED, *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_every_place_that_breaks_an_expectation_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """naive: loads of A touch a sector a lane, those of B on the same line one; the store is as bad and moves less."""
    assert main(["check", "--kernel", "naive", "--size", "64", "--expect", "sectors_per_request <= 4"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "it is 32, worst at kernels/naive.py:26 (LDG of A); also 32 at kernels/naive.py:30 (STG of C)" in text


def test_a_file_for_programs_and_the_text_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With -o stdout stays empty and the text goes to stderr; a summary is appended to what other checks wrote."""
    sarif, cases, summary = (tmp_path / name for name in ("a.sarif", "a.xml", "a.md"))
    summary.write_text("before\n")
    forms = ["-o", str(sarif), "--also", f"junit={cases}", "--also", f"markdown={summary}"]
    assert main([*TILED, "--expect", "time_us < 3", *forms]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "FAIL  time_us < 3: it is " in captured.err and "1 of 2 hold" in captured.err
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kernels/tiled.py" and place["region"]["startLine"] > 1
    assert 'failures="1"' in cases.read_text() and summary.read_text().startswith("before\n### gemmsim check: tiled")
