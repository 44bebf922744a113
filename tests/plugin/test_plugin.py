"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distributions

import pytest

# Runs within this process forget what they import; these cannot be imported twice.
import gemmsim.testing.launches  # noqa: F401

pytest_plugins = ["pytester"]
pytest.importorskip("numba.cuda", reason="the kernels of these tests are compiled")
pytest.importorskip("numba").core.registry.cpu_target.target_context.refresh()  # imports what numba loads late

GOOD = """
import numpy as np
import pytest
from gemmsim.testing import *

def test_quantities(analyze):
    trace = analyze("tiled", size=64)
    assert trace.at("tile_b[k, tx]").bank_conflicts == 0
    assert trace.at(31).sectors_per_request <= 4
    assert trace.occupancy >= 50
    assert trace.counter("launch__registers_per_thread") == trace.registers
    assert_coalesced(trace)
    assert_coalesced(trace, at="A[row, k0 + tx]")
    assert_no_bank_conflicts(trace)
    assert_occupancy(trace, min=50)
    assert_no_races(trace)
    assert_clean(trace)
    assert_correct(trace)
    assert_no_spills(trace)

def test_a_launch_is_predicted_once(analyze, _gemmsim_known):
    assert analyze("tiled", size=64) is analyze("tiled", size=64)
    assert analyze("tiled", size=64) is not analyze("tiled", size=64, tunables={"tile": 16})

@pytest.mark.parametrize("gpu", ["a100-80gb", "h200"], indirect=True)
def test_gpus(gpu, analyze):
    assert analyze("tiled", size=64).report.evidence.gpu.name == gpu.name

def test_a_kernel_beside_the_test(analyze):
    a = np.arange(64, dtype=np.float32)
    trace = analyze("mine.cu", grid=1, block=64, args=[a, "f32[64]=0", np.int32(3)])
    assert trace.at("c[").sectors_per_request == 4
    assert [x.dtype for x in trace.spec.launch.args] == ["f32", "f32", "i32"]
    assert trace.spec.launch.args[0].value is a and trace.spec.launch.args[2].value == 3

def test_a_function_of_this_file(analyze):
    trace = analyze(copy, grid=1, block=64, args=["f32[64]", "f32[64]=0"])
    assert_coalesced(trace)

from numba import cuda
@cuda.jit
def copy(a, c):
    i = cuda.threadIdx.x
    c[i] = a[i]
"""
KERNEL = 'extern "C" __global__ void mine(const float* a, float* c, int n) { c[threadIdx.x] = n * a[threadIdx.x]; }\n'


def test_what_holds_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GOOD)
    pytester.path.joinpath("mine.cu").write_text(KERNEL)
    pytester.runpytest_inprocess().assert_outcomes(passed=6)


BAD = """
from gemmsim.testing import *

def test_compare(analyze):
    trace = analyze("tiled_transposed", size=64)
    assert 0 == trace.at("tile_b[tx, k]").bank_conflicts

def test_coalesced(analyze):
    assert_coalesced(analyze("uncoalesced_bt", size=64))

def test_conflicts(analyze):
    assert_no_bank_conflicts(analyze("tiled_transposed", size=64), at=32)

def test_occupancy(analyze):
    assert_occupancy(analyze("tiled_transposed", size=64), min=75)

def test_unknown(analyze):
    analyze("tiled", size=64).at("nowhere")
"""


def test_failures_say_where_and_draw(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -vv, and where pytest shortens what assertions say."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(BAD)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    compare, coalesced, conflicts, occupancy, unknown = (
        text.split(f"_ test_{name} _")[1].split("\\n__")[0]
        for name in ("compare", "coalesced", "conflicts", "occupancy", "unknown")
    )
    assert "E       AssertionError: assert 0 == 57344\n" in compare
    assert "bank_conflicts at 'tile_b[tx, k]' of tiled_transposed on a100-80gb is 57344\n" in compare
    assert "- gemmsim -" in compare and "wave  1 | 1 1 1 1...." in compare
    assert "not coalesced: 1 of 2 accesses\n" in coalesced
    assert "uncoalesced_bt.py:26 (LDG): 16.5 sectors a request where 2.5 would do\n" in coalesced
    assert "sector +0x100     |.#..............................| B[33,0]\n" in coalesced
    assert "bank conflicts: 1 of 1 accesses\n" in conflicts
    assert "(STS): 7,936 bank conflicts, 32 wavefronts a request\n" in conflicts and "wave  1 | 1......" in conflicts
    assert "theoretical occupancy is 50%, less than 75%\n" in occupancy
    assert "1 blocks an SM by registers (39 a thread)  <- limit\n" in occupancy
    assert "no memory access at 'nowhere' in tiled: lines that have some are line 31" in unknown
    assert "selection.py" not in unknown  # none of gemmsim's own code is shown


RACE = """
from gemmsim.testing import *

def test_race(analyze):
    assert_no_races(analyze("race.cu", grid=1, block=64, args=["f32[64]", "f32[64]=0"]))

def test_other(analyze):
    trace = analyze("half.cu", grid=1, block=64, args=["f32[64]", "f32[64]=0"])
    assert_no_races(trace)
    assert_clean(trace)
"""


def test_races_are_shown_with_both_lines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    head = (
        'extern "C" __global__ void f(const float* a, float* c) {\n  __shared__ float s[64];\n  int t = threadIdx.x;\n'
    )
    pytester.path.joinpath("race.cu").write_text(head + "  s[t] = a[t];\n  c[t] = s[63 - t];\n}\n")
    half = "  if (t < 32) s[t] = a[t];\n  __syncthreads();\n  c[t] = s[t];\n}\n"
    pytester.path.joinpath("half.cu").write_text(head + half)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert "sanitizer: 2 findings; every block executed" in text  # warp 0 reads before warp 1 writes, and the reverse
    assert "race.cu:5: thread (32,0,0) (warp 1, lane 0) reads\n" in text
    assert "race.cu:4: thread (31,0,0) (warp 0, lane 31) writes\n" in text
    assert "uninitialised read: shared memory is read that no thread of the block has\n" in text
    assert "half.cu:6: thread (32,0,0) (warp 1, lane 0) reads\n" in text
    other = text.split("_ test_other _")[1]
    assert ">       assert_clean(trace)" in other or ">   assert_clean(trace)" in other


BASELINE = """
import pytest

@pytest.mark.parametrize("tile", [16, 32])
def test_kept(analyze, gemmsim_baseline, tile):
    gemmsim_baseline(analyze("tiled", size=64, tunables={"tile": tile}))

def test_chosen(analyze, gemmsim_baseline):
    gemmsim_baseline(analyze("tiled", size=64), "time_us", "lts__t_sectors.sum", name="some")
"""


def test_baselines_lie_beside_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=BASELINE)
    missing = pytester.runpytest_inprocess()
    missing.assert_outcomes(failed=3)
    missing.stdout.fnmatch_lines(
        ["*there is no baseline *test_it.test_kept_16.json: run pytest --gemmsim-update once*"]
    )
    pytester.runpytest_inprocess("--gemmsim-update").assert_outcomes(passed=3)
    folder = pytester.path / "gemmsim_baselines"
    names = ["test_it.test_chosen.some.json", "test_it.test_kept_16.json", "test_it.test_kept_32.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert list(json.loads((folder / names[0]).read_text())["values"]) == ["time_us", "lts__t_sectors.sum"]
    pytester.runpytest_inprocess().assert_outcomes(passed=3)
    path = folder / names[1]
    data = json.loads(path.read_text())
    data["values"]["sectors"] = {"value": data["values"]["sectors"]["value"] * 2, "tolerance": 0.1}
    path.write_text(json.dumps(data))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*sectors == * within 10% (baseline): it is *, -50.0%"])
    pytester.runpytest_inprocess("--gemmsim-update").assert_outcomes(passed=3)
    assert json.loads(path.read_text())["values"]["sectors"]["tolerance"] == 0.1  # what a person set stays


def test_with_xdist_and_hypothesis(pytester: pytest.Pytester) -> None:
    """Drawings come back from worker processes; drawn examples share one prediction each."""
    pytester.makepyfile(
        """
        from hypothesis import HealthCheck, given, settings, strategies as st

        @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(size=st.sampled_from([64, 96]))
        def test_sizes(analyze, size):
            assert analyze("tiled", size=size).bank_conflicts == 0

        def test_bad(analyze):
            assert analyze("tiled_transposed", size=64).bank_conflicts == 0
        """
    )
    result = pytester.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*- gemmsim -*", "wave  1 | 1 1 1 1*"])


def test_the_gpu_comes_from_the_option_or_the_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_gpu(gpu):\n    assert gpu.name == 'h200'\n")
    pytester.runpytest_inprocess().assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--gemmsim-gpu", "h200").assert_outcomes(passed=1)
    pytester.makeini("[pytest]\ngemmsim_gpu = h200\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_project_may_have_fixtures_of_these_names(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef gpu():\n    return 'mine'\n")
    pytester.makepyfile("def test_gpu(gpu):\n    assert gpu == 'mine'\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_people_who_do_not_use_it_pay_nothing(pytester: pytest.Pytester) -> None:
    """A run without its fixtures imports nothing of gemmsim but the plugin, and no NumPy."""
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            loaded = {name for name in sys.modules if name.split(".")[0] in ("gemmsim", "numpy", "numba")}
            assert loaded == {"gemmsim", "gemmsim.testing", "gemmsim.testing.plugin"}
        """
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", str(pytester.path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_the_entry_point_is_the_plugin() -> None:
    entries = {e.value for d in distributions() for e in d.entry_points if (e.group, e.name) == ("pytest11", "gemmsim")}
    assert entries == {"gemmsim.testing.plugin"}
