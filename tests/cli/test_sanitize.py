"""gemmsim analyze --sanitize: on kernels broken on purpose, and silent on the ladder."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import jsonschema
import pytest

import gemmsim
from gemmsim import overruns
from gemmsim.api import sanitize
from gemmsim.cli.main import main
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_infos
from gemmsim.report import hazards

BROKEN = Path(__file__).parents[1] / "sources" / "broken.cu"
SCHEMA = json.loads((Path(gemmsim.__file__).parent / "report" / "report.schema.json").read_text())
RUNGS = [(name, dtype) for name, info in kernel_infos().items() for dtype in info.dtypes]
# Rungs whose code for bf16 is that for f16 but for the type in matrix instructions, which a test below holds. That for
# f16 is looked at by default.
MATRIX_RUNGS = [
    name
    for name, info in kernel_infos().items()
    if info.dtypes == ("f16", "bf16") and name.startswith(("tensorcore", "wgmma"))
]
# What is compiled once more by default, with gaps between its shared arrays, which takes longer than all else: a rung
# with two tiles, with tensor cores, with integers, and one with a ring of tiles, which is CUDA C++.
COMPILED_APART = ("tiled", "tf32_tensorcore", "igemm", "wgmma_tma")
CLUSTERED = [(name, dtype) for name, dtype in RUNGS if name in ("wgmma_cluster", "wgmma_fp8")]


def analyze(entry: str, *more: str, a: str = "f32[256]", c: str = "f32[256]=0", grid: str = "1") -> int:
    arguments = ["--grid", grid, "--block", "64", "--arg", a, "--arg", c]
    return main(["analyze", str(BROKEN), "--entry", entry, *arguments, "--sanitize", *more])


def cases(rungs: list[tuple[str, str]], chosen: Collection[str] = tuple(kernel_infos())) -> list[object]:
    """Cases of a test, of which those that run the same code as others are slow, and those that are not chosen."""
    again = [(dtype == "bf16" and name in MATRIX_RUNGS) or name not in chosen for name, dtype in rungs]
    return [
        pytest.param(*rung, id="-".join(rung), marks=pytest.mark.slow if slow else ())
        for rung, slow in zip(rungs, again, strict=True)
    ]


@pytest.mark.parametrize("name", MATRIX_RUNGS)
def test_code_for_both_types_is_the_same(name: str) -> None:
    launches = [
        ladder_launch(LadderCase(name, 131, 135, 70, dtype=dtype), load_gpu("h200")) for dtype in ("f16", "bf16")
    ]
    f16, bf16 = (compile_kernel(one.kernel, one.gpu.arch, default_cache()).instructions for one in launches)
    assert [one.mnemonic for one in f16] == [one.mnemonic.removesuffix(".BF16") for one in bf16]
    assert {one.opcode for one in bf16 if one.mnemonic.endswith(".BF16")} <= {"HMMA", "HGMMA"}


@pytest.mark.parametrize(("name", "dtype"), cases(RUNGS))
def test_the_ladder_is_clean(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rung and type at sizes that no tile divides. NVIDIA's compute-sanitizer (racecheck and memcheck on an H200)
    found nothing there either. Accesses from one shared array into the next are left to the test below."""
    monkeypatch.setattr(overruns, "look_beyond", lambda found, *_: found)
    check_clean(name, dtype)


@pytest.mark.parametrize(("name", "dtype"), cases(RUNGS, COMPILED_APART))
def test_no_array_of_the_ladder_is_overrun(name: str, dtype: str) -> None:
    check_clean(name, dtype)


def check_clean(name: str, dtype: str) -> None:
    outcome = sanitize(ladder_launch(LadderCase(name, 131, 135, 70, dtype=dtype), load_gpu("h200")))
    assert [hazards.one_line(finding) for finding in outcome.findings] == []
    assert not outcome.stopped and outcome.blocks == outcome.blocks_total


@pytest.mark.parametrize(("name", "dtype"), cases(CLUSTERED))
def test_multicasts_of_the_ladder_are_clean(name: str, dtype: str) -> None:
    """Sizes at which TMA loads: blocks of a cluster fill each other's shared memory, for several tiles and rounds."""
    outcome = sanitize(ladder_launch(LadderCase(name, 512, 512, 640, dtype=dtype), load_gpu("h200")))
    assert [hazards.one_line(finding) for finding in outcome.findings] == []
    assert not outcome.stopped and outcome.blocks == outcome.blocks_total


def test_a_race_is_a_section_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("two_tiles_too_few_barriers") == 1
    text = capsys.readouterr().out
    section = text.split("PROBLEMS FOUND WHILE EXECUTING\n")[1].split("\n\n")[0].splitlines()
    assert section[0] == "  race: two threads use the same bytes of shared memory and no barrier lies"
    assert section[2] == "      4 bytes at byte 124 of shared memory, block (0,0,0), 96 times"
    assert section[3].endswith(": thread (32,0,0) (warp 1, lane 0) reads") and "broken.cu:" in section[3]
    assert section[4].strip().startswith("sum += tile[k % 2][63 - t];")
    assert section[5].endswith(": thread (31,0,0) (warp 0, lane 31) writes")
    assert section[-1] == "  sanitizer: 2 findings; every block executed"
    assert "time      :" in text  # the rest of the report is there
    assert max(map(len, text.splitlines())) <= 80


def test_findings_in_json_follow_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("copy_not_waited_for", "--format", "json") == 1
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMA)
    (finding,) = data["sanitizer"]["findings"]
    assert (finding["defect"], finding["space"], finding["count"]) == ("unwaited copy", "shared", 64)
    assert (finding["at"]["does"], finding["other"]["does"]) == ("reads", "copies to")
    assert (finding["at"]["thread"], finding["other"]["thread"]) == ([0, 0, 0], [63, 0, 0])
    assert len(data["findings"]) == 1 and data["findings"][0].startswith("unwaited copy at byte 252 of shared memory: ")


def test_what_a_gpu_would_not_survive_is_all_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("one_too_far", a="f32[100]", c="f32[100]=0", grid="2") == 1
    text = capsys.readouterr().out
    assert text.startswith("out of bounds: an access outside every array argument\n")
    assert "    argument 1 (f32[100]), element [100]: right past its end\n" in text
    assert text.endswith("\nsanitizer: 2 findings; every block executed\n")
    assert "time      :" not in text
    assert analyze("waits_forever", "--format", "json", grid="2") == 1
    outcome = json.loads(capsys.readouterr().out)["sanitizer"]
    jsonschema.validate(outcome, SCHEMA["properties"]["sanitizer"])
    assert (outcome["stopped"], outcome["blocks_executed"], outcome["blocks_total"]) == (True, 1, 2)


def test_a_clean_kernel_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze("two_tiles_right") == 0
    assert "\n  sanitizer: nothing found; every block executed\n" in capsys.readouterr().out


def test_without_the_option_nothing_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--grid", "1", "--block", "64", "--arg", "f32[256]", "--arg", "f32[256]=0"]
    assert main(["analyze", str(BROKEN), "--entry", "two_tiles_too_few_barriers", *arguments, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["findings"] == [] and "sanitizer" not in data
