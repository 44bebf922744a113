"""gemmsim timeline."""

from __future__ import annotations

import gzip
import json

import pytest

from gemmsim.cli.main import main

LAUNCH = ["--kernel", "tiled", "--size", "32"]


def test_text_is_ascii_of_80_columns(capsys):
    assert main(["timeline", *LAUNCH, "--warps", "3"]) == 0
    out = capsys.readouterr().out
    assert out.isascii() and "\x1b" not in out and all(len(line) <= 80 for line in out.splitlines())
    assert "3 of 32 warps" in out and "\nb0 w2 " in out and "\nb0 w3 " not in out and "L long" in out
    cycles = [line for line in out.splitlines() if line.startswith("the busiest")]
    assert "1 block, " in cycles[0]


def test_cycles_and_other_forms(tmp_path, capsys):
    trace, page = tmp_path / "trace.json", tmp_path / "timeline.html"
    assert main(["timeline", *LAUNCH, "--format", "perfetto", "-o", str(trace)]) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" and event["name"] == "b0 w31" for event in events) == 1
    packed = tmp_path / "trace.json.gz"
    assert main(["timeline", *LAUNCH, "-o", str(packed)]) == 0  # the name says which form
    assert gzip.decompress(packed.read_bytes()) == trace.read_bytes()
    assert packed.stat().st_size < trace.stat().st_size / 8
    assert not [event for event in events if event["ph"] == "X" and event["name"].startswith("@")]
    assert main(["timeline", *LAUNCH, "--cycles", "300:400", "-o", str(page)]) == 0
    assert "Shown: cycles 300 to 400." in page.read_text()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cycles", "9"], "--cycles 9 is not FROM:TO"),
        (["--cycles", "9:9"], "--cycles 9:9 is not FROM:TO"),
        (["--cycles", "99999999:100000000"], "begins after the last of"),
        (["--engine", "native"], "--engine native: a timeline is recorded while SimPy runs"),
        (["-o", "x.gz"], "-o x.gz: only --format perfetto and html are written compressed"),
        (["-o", "t.xyz"], "-o t.xyz: no form ends in .xyz: known are .txt, .html, .json; another name needs --format"),
        (["--warps", "0"], "--warps 0 must be at least 1"),
        (["--blocks", "2"], "2 blocks cannot be shown: the busiest SM of a100-80gb runs 1 of this launch"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(options, message, capsys):
    assert main(["timeline", *LAUNCH, *options]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out


def test_what_is_too_much_for_a_file_is_cut_and_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("gemmsim.report.timeline.perfetto.MOST_INTERVALS", 500)
    trace = tmp_path / "trace.json"
    assert main(["timeline", *LAUNCH, "--format", "perfetto", "-o", str(trace)]) == 0
    assert "--cycles FROM:TO shows others" in capsys.readouterr().err
    states = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and e["name"][0] != "b"]
    assert 0 < len(states) <= 500
