"""`gemmsim gpu new` and `gemmsim gpu show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemmsim.cli.main import main
from gemmsim.gpu import load_gpu

SHEET = ["--like", "rtx4090", "--sms", "46", "--boost-mhz", "2475", "--dram-gbs", "504", "--l2-mib", "36"]


def test_a_file_from_a_data_sheet(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gpu", "new", "mine", *SHEET, "--watts", "200", "--title", "My GPU", "--source", "its page"]) == 0
    out = capsys.readouterr().out
    heads = ["FROM THE DATA SHEET", "SCALED BY A RULE", "COPIED"]
    assert [line for line in out.splitlines() if line in heads] == heads
    sheet, rest = out.split("SCALED BY A RULE")
    assert "power.limit_watts" in sheet and "its page" in sheet and "launch.overhead_us" not in sheet
    scaled, copied = rest.split("COPIED")
    assert (
        "l2.read_bytes_per_s" in scaled
        and "rtx4090 has 5270" in " ".join(scaled.split())
        and "launch.overhead_us" in copied
    )
    assert max(map(len, out.splitlines())) <= 80
    gpu = load_gpu("mine.toml")
    assert (gpu.title, gpu.arch, gpu.sm.count) == ("My GPU", "sm_89", 46)
    assert gpu.l2.read_bytes_per_s == load_gpu("rtx4070").l2.read_bytes_per_s
    assert main(["gpu", "new", "mine", *SHEET]) == 2
    assert "mine.toml exists" in capsys.readouterr().err
    assert main(["gpu", "new", "mine", *SHEET, "-o", "mine.toml"]) == 0
    assert load_gpu("mine.toml").title == "mine"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--like", "rtx4091"], "unknown GPU 'rtx4091' (did you mean 'rtx4090'?)"),
        (["--sms", "0"], "sm.count must be above 0"),
        (["--sms", "many"], "'many' is not a valid integer"),
        (["--boost-mhz", "nan"], "clock.sm_boost"),
        (["--boost-mhz", "-1"], "clock.sm_boost_hz must be above 0"),
        (["--tensor-tflops", "0"], "peak.tensor_fp16"),
        (["--watts", "5"], "power.limit_watts (5) is not above power.busy_watts"),
        (["--base-mhz", "9000"], "exceeds clock.sm_boost_hz"),
        (["-o", "mine.txt"], "ends in .toml"),
        (["--like", "sm_90"], "is an architecture, not a GPU"),
    ],
)
def test_bad_values_are_one_line_and_write_nothing(
    more: list[str], message: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gpu", "new", "mine", *SHEET, *more]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_none(capsys) -> None:
    assert main(["gpu", "new", "../mine", *SHEET]) == 2
    assert "is no name for a GPU" in capsys.readouterr().err


def test_show_has_every_number_with_status_and_source(capsys) -> None:
    assert main(["gpu", "show", "rtx4070", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    gpu = load_gpu("rtx4070")
    assert {row["key"]: row["status"] for row in shown["numbers"]} == {k: v.status for k, v in gpu.provenance.items()}
    assert main(["gpu", "show", "rtx4070"]) == 0
    text = capsys.readouterr().out
    assert "l2.size_bytes                        36 MiB (vendor)" in text
    assert main(["gpu", "show", "rtx4071"]) == 2


def test_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", "list"]) == 2
    said = "error: gemmsim gpu has no command 'list': it has new and show; gemmsim list gpus names the GPUs\n"
    assert capsys.readouterr() == ("", said)
    assert main(["gpu", "shw"]) == 2
    assert "no command 'shw' (did you mean 'show'?): it has" in capsys.readouterr().err
    assert main(["gpu"]) == 0
    assert "Usage: gemmsim gpu" in capsys.readouterr().out


def test_a_file_without_its_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    assert main(["gpu", "show", "mine"]) == 2
    assert "unknown GPU 'mine' (did you mean the file mine.toml?); 'gemmsim list gpus'" in capsys.readouterr().err
    assert main(["gpu", "show", "h20O"]) == 2
    assert "unknown GPU 'h20O' (did you mean 'h20'?)" in capsys.readouterr().err
    assert main(["gpu", "show", "k" * 300]) == 2
    assert "unknown GPU 'kkk" in capsys.readouterr().err
