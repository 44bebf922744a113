"""gemmsim sweep, from the command line to its exit status."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import gemmsim.report
from gemmsim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("numba_cuda")

TILED = ["sweep", "--kernel", "tiled", "--set-kernel", "tile=8,16,32", "--size", "32,64x32x16", "--jobs", "1"]
CUDA = """
template <int BM, int BN> __global__ void gemm(int n, int k, const float *A, const float *B, float *C) {
    int row = blockIdx.y * BM + threadIdx.y, col = blockIdx.x * BN + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + col];
    C[row * n + col] = sum;
}
"""
CUDA_OPTIONS = [
    "--entry", "gemm<{bm},{bn}>", "--grid", "{n//bn},{m//bm}", "--block", "{bn},{bm}",
    "--set-kernel", "bm=4,8,64", "--set-kernel", "bn=16,32", "--set-kernel", "threads=bm*bn",
    "--where", "threads > 64", "--size", "64", "--arg", "i32={n}", "--arg", "i32={k}",
    "--arg", "f32[{m},{k}]", "--arg", "f32[{k},{n}]", "--arg", "f32[{m},{n}]=0", "--verify", "gemm", "--jobs", "1",
]  # fmt: skip
FACTORY = """
from numba import cuda

def build(tile):
    @cuda.jit
    def scale(A, B, C):
        i = cuda.blockIdx.x * tile + cuda.threadIdx.x
        C[i] = A[i] + B[i]
    return scale
"""


def data(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    assert main([*args, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((Path(gemmsim.report.__file__).parent / "sweep.schema.json").read_text()))
    return found


def test_every_combination_as_analyze_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, *TILED, "--gpus", "a100,h200", "-o", str(tmp_path / "r.sqlite"))
    assert found["combinations"] == 12
    assert [(one["gpu"], one["m"]) for one in found["rankings"]] == [
        ("a100-80gb", 32), ("a100-80gb", 64), ("h200", 32), ("h200", 64)
    ]  # fmt: skip
    one = found["rankings"][3]["results"][1]
    times = [each["time_us"] for each in found["rankings"][3]["results"]]
    assert times == sorted(times) and one["rank"] == 2 and one["slower_than_best"] == times[1] / times[0]
    chosen = f"tile={one['tunables']['tile']}"
    assert main(["analyze", "--kernel", "tiled", "--set-kernel", chosen, "--gpu", "h200", "--m", "64", "--n", "32",
                 "--k", "16", "--format", "json"]) == 0  # fmt: skip
    single = json.loads(capsys.readouterr().out)
    assert (one["engine"], single["time"]["engine"]) == ("native", "simpy")  # which agree
    assert one["time_us"] == single["time"]["us"] and one["limiter"] == single["bottleneck"]["kind"]
    assert one["tflops"] == pytest.approx(2 * 64 * 32 * 16 / single["time"]["us"] / 1e6)


def test_the_same_command_again_predicts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "r.sqlite")
    first = data(capsys, *TILED, "-o", path)
    again = data(capsys, *TILED, "--gpus", "a100,t4", "-o", path)
    assert (first["reused"], again["reused"]) == (0, 6)
    assert again["rankings"][:2] == first["rankings"]
    assert data(capsys, *TILED, "--set", "l2.size=1MiB", "-o", path)["reused"] == 0


def test_results_go_to_the_cache_folder_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "cache"))
    few = [*TILED, "--where", "tile == 8"]
    data(capsys, *few)
    assert (tmp_path / "cache" / "sweeps.sqlite").is_file() and data(capsys, *few)["reused"] == 2
    assert data(capsys, *few, "--no-cache")["reused"] == 0


def test_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = [*TILED, "--where", "m >= tile", "--where", "tile < 32 or m == 32", "-o", str(tmp_path / "r.sqlite")]
    assert main([*args, "--top", "1", "--gpu", "a100-80gb"]) == 0  # as other commands call it
    text, err = capsys.readouterr()
    assert err == ""  # no progress where it is no terminal
    assert text.startswith("6 combinations: 5 predicted, not measured, 1 left out.\n\ntiled on a100-80gb, M=32")
    assert "  and 2 slower ones\n" in text and max(map(len, text.splitlines())) <= 80 and text.isascii()
    assert "  1 by --where 'tile < 32 or m == 32': tile=32 at 64 x 32 x 16 on a100-80gb: the" in text
    assert main([*args, "--format", "md"]) == 0
    md = capsys.readouterr().out
    assert md.count("\n| ") == 5 + 2 * 2 and "Left out:\n" in md
    assert main([*args, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["status"] for row in rows] == ["predicted"] * 5 + ["pruned"]
    assert {row["tile"] for row in rows} == {"8", "16", "32"} and float(rows[0]["time_us"]) > 0


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """With how much is left, on standard error alone."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "gemmsim", *TILED, "-o", str(tmp_path / "r.sqlite"), "--format", "json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        assert run.stdout is not None
        out, shown = run.stdout.read(), b""
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:  # its other end is closed
            pass
    os.close(ours)
    assert run.returncode == 0 and json.loads(out)["combinations"] == 6
    assert b"sweep:" in shown and b"/6 [" in shown and b"<" in shown  # the last ones may be too quick to see


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    heat, scaling = tmp_path / "heat.png", tmp_path / "scaling.svg"
    sizes = ["--size", "128", "-o", str(tmp_path / "r.sqlite")]
    assert main([*TILED, *sizes, "--plot", str(heat), "--plot", str(scaling)]) == 0
    out, err = capsys.readouterr()
    assert "9 predicted" in out and err == f"wrote {heat}\nwrote {scaling}\n"
    assert heat.read_bytes().startswith(b"\x89PNG") and "<svg" in scaling.read_text()


def test_a_cuda_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """bm x bn of 4, 8 and 64 x 16 and 32: 4 x 16 is left out by the condition, 64 x 32 has 2048 threads."""
    (tmp_path / "gemm.cu").write_text(CUDA)
    args = ["sweep", str(tmp_path / "gemm.cu"), *CUDA_OPTIONS, "-o", str(tmp_path / "r.sqlite")]
    found = data(capsys, *args)
    (ranking,) = found["rankings"]
    assert sorted((one["tunables"]["bm"], one["tunables"]["bn"]) for one in ranking["results"]) == [
        (4, 32), (8, 16), (8, 32), (64, 16)
    ]  # fmt: skip
    assert all(
        one["verified"] and one["blocks"] == 4096 // math.prod(one["tunables"].values()) for one in ranking["results"]
    )
    assert [one["kind"] for one in found["pruned"]] == ["--where 'threads > 64'", "threads"]
    (tmp_path / "gemm.cu").write_text(CUDA.replace("sum += A", "sum += 2 * A"))
    assert main(args) == 1  # another source: predicted anew, and C is wrong
    assert "C IS WRONG\n  bm=" in capsys.readouterr().out


def test_a_python_factory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(FACTORY)
    arrays = [word for _ in range(3) for word in ("--arg", "f32[256]")]
    found = data(
        capsys, "sweep", f"{tmp_path}/mine.py:build", "--set-kernel", "tile=32,64", "--grid", "{256 // tile}",
        "--block", "{tile}", *arrays, "--jobs", "1", "-o", str(tmp_path / "r.sqlite"),
    )  # fmt: skip
    results = found["rankings"][0]["results"]
    assert {(one["tunables"]["tile"], one["blocks"]) for one in results} == {(32, 8), (64, 4)}
    assert found["rankings"][0]["m"] is None and found["failed"] == []


def test_failures_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gemm.cu").write_text(CUDA.replace("float sum", "static_assert(BM < 8); float sum"))
    assert main(["sweep", str(tmp_path / "gemm.cu"), *CUDA_OPTIONS, "-o", str(tmp_path / "r.sqlite")]) == 0
    out = capsys.readouterr().out
    assert "1 predicted" in out and "3 failed" in out and "FAILED\n  bm=8 bn=16 at 64 x 64 x 64" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--kernel", "tiled"], "no problem size"),
        ([], "give either --kernel NAME or a TARGET"),
        (["--kernel", "tield", "--size", "64"], "unknown kernel 'tield' (did you mean 'tiled'?)"),
        (["--kernel", "tiled", "--size", "64,x"], "--size 'x' is no size"),
        (["--kernel", "tiled", "--size", "64x64"], "--size '64x64' is no size"),
        (["--kernel", "tiled", "--size", "0"], "--size '0' is no size"),
        (["--kernel", "tiled", "--size", "64", "--set-kernel", "tile=7"], "tile=7: tiled takes tile of"),
        (["--kernel", "tiled", "--size", "64", "--set-kernel", "tile=a"], "wants whole numbers with commas"),
        (["--kernel", "tiled", "--size", "64", "--set-kernel", "bm=all"], "has no tunable 'bm'"),
        (["--kernel", "tiled", "--size", "64", "--gpus", "a100,,h200"], "unknown GPU ''"),
        (["--kernel", "tiled", "--size", "64", "--jobs", "0"], "--jobs 0"),
        (["--kernel", "tiled", "--size", "64", "--jobs", "2", "--scheduler", "tcp://x:1"], "--jobs is for this"),
        (["--kernel", "tiled", "--size", "64", "--where", "tyle > 1"], "unknown name 'tyle'"),
        (["--kernel", "tiled", "--size", "64", "--where", "tile > 99"], "none of 1 combination can be launched"),
        (["--kernel", "tiled", "--size", "64", "--dtype", "i8"], "dtype i8: tiled takes f32"),
        (["--kernel", "tiled", "--size", "64", "--grid", "1"], "--grid is for a kernel of your own"),
        (["my.cu", "--size", "64", "--block", "32"], "--grid is missing"),
        (["my.cu", "--grid", "{n}", "--block", "32"], "unknown name 'n'"),
        (["my.cu", "--grid", "1", "--block", "32", "--set-kernel", "m=1"], "m, n and k are those of --size"),
        (["my.cu", "--grid", "1", "--block", "32"], "cannot read 'my.cu'"),
        (["my.cu", "--grid", "a,b", "--block", "32"], "--grid 'a,b'"),
    ],
)
def test_errors_are_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sweep", *args, "-o", str(tmp_path / "r.sqlite")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and len(err.splitlines()) == 1 and message in err


def test_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    """SIGINT to the whole group, as Ctrl-C sends it, once the first result is there; then the sweep goes on."""
    path = tmp_path / "r.sqlite"
    command = [
        sys.executable, "-m", "gemmsim", "sweep", "--kernel", "tiled", "--set-kernel", "tile=all",
        "--size", "192,224,256,288,320,352", "--jobs", "2", "-o", str(path), "--format", "json",
    ]  # fmt: skip
    run = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    while run.poll() is None and _finished(path) < 1:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=240)
    kept = _finished(path)
    assert (run.returncode, out) == (130, "") and 1 <= kept < 18
    assert err == f"interrupted: {kept} of 18 results are in {path}; the same command goes on from there\n"


def _finished(path: Path) -> int:
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM result").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_over_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    here = data(capsys, *TILED, "-o", str(tmp_path / "here.sqlite"))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50
    ) as cluster:
        there = data(
            capsys, *TILED[:-2], "--scheduler", cluster.scheduler_address, "-o", str(tmp_path / "there.sqlite")
        )
    for ranking in (*here["rankings"], *there["rankings"]):
        for one in ranking["results"]:
            del one["seconds"]
    assert there == here
