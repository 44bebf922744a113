"""`gemmsim analyze` end to end: a kernel compiled, executed, timed and reported; and what it says to bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import gemmsim.report
from gemmsim.cli.main import main
from gemmsim.report.metrics import METRICS

pytest.importorskip("numba_cuda")

SCHEMA = json.loads((Path(gemmsim.report.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))

KERNELS = """
from numba import cuda

@cuda.jit
def double(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] = 2 * x[i]

@cuda.jit
def endless(x):
    while x[0] == 0:
        x[1] = 1

not_a_kernel = 3
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(KERNELS)
    (tmp_path / "my.txt").write_text("no kernel")
    return tmp_path


def analyze(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    status = main(["analyze", *args, "--format", "json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    data: dict[str, Any] = json.loads(out)
    jsonschema.validate(data, SCHEMA)
    return data


def test_ladder_kernel_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """M = 8, N = 16, K = 24 in tiles of 8: 1 x 2 blocks of 2 warps, 3 tiles of K. A warp and tile loads one word a
    thread of A and of B, and 4 warps store C once; a warp's 4 rows of 8 words are 4 sectors, aligned as they are."""
    data = analyze(capsys, "--kernel", "tiled", "--set-kernel", "tile=8", "--m", "8", "--n", "16", "--k", "24")
    counters = data["counters"]
    assert data["launch"]["grid"] == [2, 1, 1]
    assert counters["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 4 * 3 * 2
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 4 * 3 * 2 * 4
    assert counters["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"] == 4
    assert counters["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"] == 8 * 16 * 24
    assert data["verified"]["ok"] is True
    assert data["sampling"]["full"] is True


def test_every_counter_is_in_the_table_of_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    data = analyze(capsys, "--kernel", "naive", "--size", "8")
    assert [name for name in data["counters"] if name not in METRICS] == []


def test_text_reads_verdict_first_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--kernel", "tiled", "--size", "32", "--gpu", "h200"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("tiled, M=32 N=32 K=32, tile=32 on NVIDIA H200")
    assert max(len(line) for line in out.splitlines()) <= 80 and out.isascii()
    assert "verified  : yes, relative error" in out
    assert "8 LDS.128, 4 words at a time, for 32 in the source" in " ".join(out.split())


def test_alpha_and_beta(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--m", "5", "--n", "7", "--k", "3"]
    data = analyze(capsys, "--kernel", "coalesced", *sizes, "--alpha", "1.5", "--beta", "-2")
    assert data["verified"]["ok"] is True


@pytest.mark.parametrize(("engine", "name"), [("simpy", "SimPy"), ("native", "the native engine")])
def test_report_and_json_say_which_engine_ran(engine: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    launch = ["--kernel", "tiled", "--size", "64"]
    usual, chosen = analyze(capsys, *launch), analyze(capsys, *launch, "--engine", engine)
    assert usual["time"]["engine"] == "simpy" and chosen["time"]["engine"] == engine  # small enough for SimPy
    assert chosen | {"time": usual["time"]} == usual
    assert chosen["time"] == usual["time"] | {"engine": engine}
    assert main(["analyze", *launch, "--engine", engine]) == 0
    assert f" warp instructions, by {name}\n" in capsys.readouterr().out


def test_own_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """100 of 128 threads load and store a float: 32 + 32 + 32 + 4 words a warp, so 4 + 4 + 4 + 1 sectors."""
    data = analyze(capsys, "my.py:double", "--grid", "1", "--block", "128", "--arg", "f32[100]=1", "--arg", "i32=100")
    assert data["kernel"]["name"] == "double"
    assert data["counters"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 13
    assert data["verified"]["ok"] is None


OWN = ["my.py:double", "--grid", "1", "--block", "128"]
X = ["--arg", "f32[100]"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--kernel", "tiled", "--size", "0"], "--size 0 is not a size"),
        (["--kernel", "tiled", "--size", "-3"], "--size -3 is not a size"),
        ([], "give either --kernel NAME or a TARGET"),
        (["--kernel", "tiled", "my.py:double", "--size", "8"], "give either --kernel NAME or a TARGET, not both"),
        (["--kernel", "my.py:double"], "'my.py:double' is a file, no built-in kernel: it goes as TARGET"),
        (["--kernel", "a.cu", "--size", "8"], "'a.cu' is a file, no built-in kernel: it goes as TARGET, gemmsim a"),
        (["--kernel", "tilde", "--size", "8"], "unknown kernel 'tilde' (did you mean 'tiled'?)"),
        (["--kernel", "tiled", "--size", "8", "--gpu", "a1000"], "unknown GPU 'a1000'"),
        (["--kernel", "tiled", "--size", "8", "--gpu", "no.toml"], "no GPU file 'no.toml'"),
        (["--kernel", "tiled", "--size", "8", "--set", "l2.sise=1MiB"], "l2.sise"),
        (["--kernel", "tiled", "--size", "8", "--set-kernel", "tile=5"], "tile of 8, 16, 32"),
        ([*OWN[:3], "--block", "2048", *X, "--arg", "i32=100"], "1024"),
        ([*OWN, *X, "--arg", "i32=100", "--shared", "10000000"], "shared memory"),
        ([*OWN, *X], "argument"),
        ([*OWN, "--arg", "f32[0]", "--arg", "i32=100"], "must be positive integers"),
        ([*OWN, "--arg", "f32[100", "--arg", "i32=100"], "malformed"),
        (["my.py:dubble", *OWN[1:], *X, "--arg", "i32=100"], "no function 'dubble' (did you mean 'double'?)"),
        (["my.py:not_a_kernel", *OWN[1:]], "is no kernel, but of type"),
        (["absent.cu", *OWN[1:]], "cannot read 'absent.cu'"),
        (["absent.txt", *OWN[1:]], "cannot read 'absent.txt'"),
        (["my.txt", *OWN[1:]], "gemmsim reads FILE.py:function"),
        (["my.py:endless", *OWN[1:], "--arg", "f32[2]=0", "--max-instructions", "10000"], "never ends: a warp does"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("gpu", "arch", "turns", "like"), [("orin", "sm_87", 4, "rtx3050"), ("b200", "sm_100", 1, "h200")]
)
def test_gpus_whose_programs_do_not_ship(
    gpu: str, arch: str, turns: int, like: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """64 blocks of 32 warps: on 16 SMs four turns of 262,144 multiply-adds each, at most 128 a cycle, on 148 SMs one.

    In cycles a block takes about as long as on the GPU that it is like, of 20 and 132 SMs, which has as many turns.
    """
    asked = ["--kernel", "tiled", "--size", "256", "--caches", "warm"]
    found, other = analyze(capsys, *asked, "--gpu", gpu), analyze(capsys, *asked, "--gpu", like)
    assert found["gpu"]["arch"] == arch and found["verified"] is not None
    assert found["time"]["cycles"] > turns * 262144 / 128
    assert found["time"]["cycles"] == pytest.approx(other["time"]["cycles"], rel=0.15)


def test_truncated_and_foreign_cubins(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gemmsim.compile as compile_
    from gemmsim.compile.kernel import build_kernel

    source = compile_.PythonKernel(workspace / "my.py", "double", (compile_.ArgType("f32", 1), compile_.ArgType("i32")))
    cubin = build_kernel(source, "sm_90").cubin
    (workspace / "whole.cubin").write_bytes(cubin)
    (workspace / "cut.cubin").write_bytes(cubin[: len(cubin) // 2])
    for file, gpu, word in (("whole.cubin", "a100", "sm_90"), ("cut.cubin", "h200", "truncated")):
        assert main(["analyze", file, *OWN[1:], *X, "--arg", "i32=100", "--gpu", gpu]) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: ") and err.count("\n") == 1 and word in err


def test_a_wrong_result_is_status_1(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C is doubled, not A @ B."""
    text = "from numba import cuda\n@cuda.jit\ndef wrong(a, b, c):\n    c[cuda.threadIdx.x, 0] = 1000\n"
    (workspace / "wrong.py").write_text(text)
    args = ["--arg", "f32[32,4]", "--arg", "f32[4,1]", "--arg", "f32[32,1]=0", "--verify", "gemm"]
    assert main(["analyze", "wrong.py:wrong", "--grid", "1", "--block", "32", *args]) == 1
    assert "verified  : NO" in capsys.readouterr().out


def test_unwritable_cache_only_costs_time(workspace: Path) -> None:
    """A file where the cache's folder should be: not even root can write into it."""
    (workspace / "file").write_text("")
    command = [sys.executable, "-m", "gemmsim", "analyze", *OWN, *X, "--arg", "i32=100"]
    root = Path(gemmsim.report.__file__).parents[2]
    environment = {"PYTHONPATH": str(root), "GEMMSIM_CACHE_DIR": str(workspace / "file" / "cache"), "PATH": ""}
    environment["GEMMSIM_PROGRESS"] = "0"
    run = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("warning: cannot write the cache folder") and run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "hide",
    [
        "import sys; sys.modules['cuda.core'] = None",
        # Neither the wheel of nvdisasm nor an nvdisasm on PATH is there.
        "import gemmsim.compile.toolchain as t; t.installed_files = lambda package: ()",
    ],
)
def test_no_toolchain_is_one_clear_line(hide: str, tmp_path: Path) -> None:
    """As on macOS, where no wheel of the toolchain exists. In a process of its own: imports half done would linger."""
    code = f"{hide}\nfrom gemmsim.cli.main import main\nimport sys\n"
    code += "sys.exit(main(['analyze', '--kernel', 'tiled', '--size', '8', '--no-cache']))"
    environment = {"PYTHONPATH": str(Path(gemmsim.report.__file__).parents[2]), "PATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ") and run.stderr.count("\n") == 1 and "pip install" in run.stderr
