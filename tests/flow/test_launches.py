"""Several launches on one memory and one L2: what each finds there, and what is executed in full for its sake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.api import Counted, count
from gemmsim.cli.main import main
from gemmsim.gpu import load_gpu
from gemmsim.launch.plan import PlanSettings, read_plan
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.report.report import Report
from gemmsim.report.studies.launches import render_text, rows
from gemmsim.studies import launches
from gemmsim.studies.launches import analyze_launches
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.contents import trace_depends_on_contents

SOURCES = Path(__file__).parents[1] / "sources"
KERNEL = f'[[launch]]\nkernel = "{SOURCES / "launches.cu"}"\nentry = '
SPLIT_K = f"""
[arrays]
A = "f32[64,64]"
B = "f32[64,64]"
parts = "f32[4,64,64]=0"
C = "f32[64,64]=0"
{KERNEL}"partial"
grid = [4, 4, 4]
block = [16, 16]
args = ["&A", "&B", "&parts", "i32=64", "i32=16"]
{KERNEL}"reduce"
grid = 16
block = 256
args = ["&parts", "&C", "i32=4096", "i32=4"]
verify = {{ a = "A", b = "B", c = "C" }}
"""
SAMPLED = Settings(full_below=0)  # small launches are sampled, too


def specs(folder: Path, text: str, settings: Settings = SAMPLED) -> tuple[LaunchSpec, ...]:
    (folder / "plan.toml").write_text(text)
    return read_plan(folder / "plan.toml", PlanSettings(load_gpu("h200"), settings))


def reads(report: Report) -> float:
    return report.evidence.counters["dram__sectors_read.sum"]


def test_a_formula_checks_a_launch_that_needs_all_of_the_one_before(tmp_path: Path) -> None:
    """Its right side means the arrays before the launch: the parts as the first pass has left them."""
    verify = 'verify = { a = "A", b = "B", c = "C" }'
    right, wrong = (SPLIT_K.replace(verify, f'verify = "{text}"') for text in ("C = A @ B", "C = A @ B + A"))
    one, two = analyze_launches(specs(tmp_path, right))
    assert one.sampling.blocks_executed == 64, "the whole first pass is needed"
    assert two.verified.ok and "as in 'C = A @ B'" in two.verified.text
    assert analyze_launches(specs(tmp_path, wrong))[1].verified.ok is False


def test_two_pass_split_k(tmp_path: Path) -> None:
    """The reduction finds the parts in L2, where the first pass has stored them; C is A B."""
    one, two = analyze_launches(specs(tmp_path, SPLIT_K, Settings()))
    assert two.verified.ok
    assert "all 4096 elements of C" in two.verified.text
    assert (one.sampling.full, one.evidence.caches, reads(one)) == (True, "cold", 2 * 64 * 64 * 4 / 32)
    assert (two.evidence.caches, reads(two)) == ("continued", 0)
    assert sum(row["share_pct"] for row in rows((one, two))) == pytest.approx(100)


def test_in_an_l2_that_is_too_small_the_parts_go_to_dram_and_come_back(tmp_path: Path) -> None:
    """The first pass stores 64 KiB; with 32 KiB of L2 half of it is written back by the end of the launch, and the
    reduction reads from DRAM what was replaced."""
    small = load_gpu("h200", ["l2.size=32KiB"])
    one, two = analyze_launches([replace(spec, gpu=small) for spec in specs(tmp_path, SPLIT_K, Settings())])
    assert one.evidence.counters["dram__sectors_write.sum"] >= 1024
    assert 1024 <= reads(two) <= 2048
    assert two.evidence.counters["dram__sectors_write.sum"] > 0  # what the first pass left dirty
    assert two.verified.ok


def test_a_launch_is_executed_in_full_where_a_later_one_needs_its_contents(tmp_path: Path) -> None:
    gather = f"""
[arrays]
index = "i32[8192]=0"
x = "f32[8192]"
y = "f32[8192]=0"
{KERNEL}"reverse"
grid = 64
block = 128
args = ["&index", "i32=8192"]
{KERNEL}"gather"
grid = 64
block = 128
args = ["&index", "&x", "&y"]
{KERNEL}"increment"
grid = 64
block = 128
args = ["&y"]
"""
    assert trace_depends_on_contents(cuda_program("launches.cu", "gather", "sm_90"))
    assert not trace_depends_on_contents(cuda_program("launches.cu", "reduce", "sm_90"))
    one, two, three = analyze_launches(specs(tmp_path, gather))
    assert one.sampling.full
    assert "what launch 2 does depends on what its arrays hold" in one.notes[0]
    assert not three.sampling.full  # nothing needs what it stores
    one, two = analyze_launches(specs(tmp_path, SPLIT_K))
    assert one.sampling.full
    assert "the result of launch 2 is checked" in one.notes[0]
    assert two.evidence.caches == "cold"  # as it is sampled, what the first pass left is of no use
    assert any(note.startswith("L2: as the launch is sampled, it begins with an empty L2") for note in two.notes)
    assert not two.sampling.full
    assert any(note.startswith("launch 2 was sampled") for note in three.notes)


def test_a_launch_that_repeats(tmp_path: Path) -> None:
    """Three launches add one to 8,192 zeros each. Executed in full, the second finds all in L2; sampled, it begins as
    an identical launch leaves L2, which is the same."""
    text = f'[arrays]\nx = "f32[8192]=0"\n{KERNEL}"increment"\ngrid = 64\nblock = 128\nargs = ["&x"]\nrepeat = 3\n'
    for settings, caches in ((Settings(full=True), "continued"), (SAMPLED, "warm")):
        reports = analyze_launches(specs(tmp_path, text, settings))
        assert [report.evidence.caches for report in reports] == ["cold", caches, caches]
        assert [reads(report) for report in reports] == [1024, 0, 0]
    assert any("launches 1, 2 were sampled" in note for note in reports[2].notes)


def test_variables_of_a_module_keep_their_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """5 at first, one more with each of three launches; the second kernel of the file sees 8. Set to 70 by the host,
    the variable is 71 after the next launch."""
    one = f'{KERNEL}"count_launches"\ngrid = 1\nblock = 32\nargs = ["&out"]\n'
    text = f"""[arrays]
out = "i32[2]=0"
{one}repeat = 3
{KERNEL}"read_launches"
grid = 1
block = 32
args = ["&out"]
{one}symbols = {{ launches = "i32=70" }}
"""
    found: list[list[int]] = []

    def counting(*args: object, **options: object) -> Counted:
        counted = count(*args, **options)  # type: ignore[arg-type]
        found.append(np.asarray(counted.execution.outputs[0]).tolist())
        return counted

    monkeypatch.setattr(launches, "count", counting)
    analyze_launches(specs(tmp_path, text))
    assert found == [[6, 0], [7, 0], [8, 0], [8, 8], [71, 8]]


def test_what_a_sampled_launch_leaves_in_l2_is_not_known(tmp_path: Path) -> None:
    text = f"""
[arrays]
x = "f32[8192]=0"
y = "f32[8192]=0"
{KERNEL}"increment"
grid = 64
block = 128
args = ["&x"]
{KERNEL}"increment"
grid = 64
block = 128
args = ["&y"]
"""
    one, two = analyze_launches(specs(tmp_path, text))
    assert not one.sampling.full and two.evidence.caches == "cold"
    assert any(note.startswith("L2 begins empty: launch 1 was sampled") for note in two.notes)


def test_an_error_names_the_launch(tmp_path: Path) -> None:
    text = SPLIT_K.replace('"i32=4096"', '"i32=4097"')
    with pytest.raises(GemmsimError, match="launch 2: out-of-bounds"):
        analyze_launches(specs(tmp_path, text))
    one, two = specs(tmp_path, SPLIT_K)
    with pytest.raises(GemmsimError, match="run on one GPU, not on h200 and a100-80gb"):
        analyze_launches([one, replace(two, gpu=load_gpu("a100"))])
    with pytest.raises(GemmsimError, match="share no array"):
        analyze_launches([replace(one, launch=replace(one.launch, args=one.launch.args[::-1])), two])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(SPLIT_K)
    assert main(["launches", str(plan), "--gpu", "h200"]) == 0
    text = capsys.readouterr().out
    assert "2 launches on NVIDIA H200" in text and "LAUNCH 2" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert main(["launches", str(plan), "--gpu", "h200", "--each"]) == 0
    assert "LAUNCH 2" in capsys.readouterr().out
    assert main(["launches", str(plan), "--gpu", "h200", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [launch["report"]["launch"]["caches"] for launch in data["launches"]] == ["cold", "continued"]
    assert main(["launches", str(plan), "--gpu", "h200", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("launch,kernel,grid")
    plan.write_text(SPLIT_K.replace('c = "C"', 'c = "A"'))
    assert main(["launches", str(plan), "--gpu", "h200"]) == 1  # A is not A B


def test_no_launches_no_reports() -> None:
    assert analyze_launches(()) == ()
    assert render_text(()) == ""


VARIABLES = """
__device__ int total;
__device__ float* destination;
__constant__ float factor = 1;
extern "C" __global__ void gather(const float* a) { atomicAdd(&total, static_cast<int>(a[threadIdx.x])); }
extern "C" __global__ void spread(float* c) { destination[threadIdx.x] = factor * total; }
"""


def test_launches_of_one_file_share_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first launch adds 32 twos to `total`, which a later one multiplies by what the host has set in between."""
    (tmp_path / "variables.cu").write_text(VARIABLES)
    launch = '[[launch]]\nkernel = "variables.cu"\ngrid = 1\nblock = 32\n'
    text = f"""
[arrays]
A = "f32[32]=2"
C = "f32[32]=0"
{launch}entry = "gather"
args = ["&A"]
{launch}entry = "spread"
args = ["&C"]
symbols = {{ factor = "f32=0.5", destination = "&C" }}
{launch}entry = "spread"
args = ["&C"]
repeat = 2
"""
    launches = specs(tmp_path, text, Settings())
    seen = {}

    def counted(spec: LaunchSpec, *more: Any) -> Counted:
        seen[len(seen)] = found = count(spec, *more)
        return found

    monkeypatch.setattr("gemmsim.studies.launches.count", counted)
    analyze_launches(launches)
    stored = [run.execution.outputs[1] for run in seen.values()]
    assert [None if array is None else set(array.tolist()) for array in stored] == [{0.0}, {32.0}, {32.0}, {32.0}]
    assert seen[0].execution.variables["total"].content.view(np.int32) == [64]
