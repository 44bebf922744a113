"""gemmsim explain."""

from __future__ import annotations

import json

import pytest

from gemmsim.cli.main import main

METRIC = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def test_a_term_without_a_run(capsys):
    assert main(["explain", "Ridge point"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ridge point\n") and "peak / bandwidth" in out and "In this run" not in out


def test_a_metric_with_the_numbers_of_a_run(capsys):
    # 64^3 in tiles of 32: 4 blocks of 32 warps, two steps over K, two loads a thread and step: 512 requests
    assert main(["explain", METRIC, "--kernel", "tiled", "--size", "64"]) == 0
    out = capsys.readouterr().out
    assert "In this run: tiled, M=64 N=64 K=64, tile=32 on NVIDIA A100 80GB SXM4" in out
    assert "2,048 sector (exact)" in out
    assert "512 requests * 4 sectors a request = 2,048 sectors" in out


def test_json(capsys):
    assert main(["explain", "occupancy", "--format", "json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert entry["kind"] == "term" and entry["fix"] and "run" not in entry


def test_without_a_name_all_are_listed(capsys):
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert "STALL REASONS" in out and "long_scoreboard: " in out and "ridge point: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sectr"], "nothing is known of 'sectr' (did you mean 'sector'?)"),
        (["sector", "--size", "64"], "a size without a kernel"),
        (["--format", "json"], "is for one NAME"),
        (["sector", "--kernel", "tiled"], "no problem size"),
        (["sector", "nowhere.py:f", "--kernel", "tiled"], "either --kernel NAME or a TARGET"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(["explain", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err and said.err.count("\n") == 1
