"""What Python code calls: kernels as people have them, arguments, results that show themselves; against NumPy."""

from __future__ import annotations

import json
import linecache
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import cuda

import gemmsim
from gemmsim import GemmsimError

N = 32
SHAPE: dict[str, Any] = {"grid": (2, 2), "block": (16, 16)}
FACTOR = 2.0
TEXT = """
extern "C" __global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= F;
}
"""


@cuda.jit(device=True)
def scaled(value):
    return value * FACTOR


@cuda.jit
def gemm(a, b, c, n):
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(n):
        total += a[row, k] * b[k, column]
    c[row, column] = scaled(total)


def closure(factor):
    @cuda.jit
    def times(x, out):
        i = cuda.grid(1)
        out[i] = x[i] * factor

    return times


def operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (N, N)).astype(np.float32) for _ in range(2))
    return a, b, np.zeros((N, N), np.float32)


def test_a_kernel_with_numpy_arrays_and_python_numbers_on_two_gpus() -> None:
    """The device function is compiled for each architecture, and the caller's arrays stay as they are."""
    a, b, c = operands()
    for gpu, arch in (("h200", "sm_90"), ("a100", "sm_80")):
        found = gemmsim.analyze(gemm, **SHAPE, args={"a": a, "b": b, "c": c, "n": N}, gpu=gpu)
        assert np.array_equal(found.arrays["c"], 2 * (a @ b))
        assert found.report.evidence.program.arch == arch
    assert not c.any()
    assert found.at("total += a[row, k] * b[k, column]").sectors_per_request > 0


def test_quantities_go_to_other_processes_as_plain_numbers() -> None:
    time_us = gemmsim.analyze(gemm, args=(*operands(), N), **SHAPE).time_us
    copy = pickle.loads(pickle.dumps(time_us))
    assert type(copy) is float and copy == time_us


def test_a_global_that_changed_since_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operands()
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    found = gemmsim.analyze(gemm, **SHAPE, args={"a": a, "b": b, "c": c, "n": N}, gpu="h200")
    assert np.array_equal(found.arrays["c"], 3 * (a @ b))


def test_closures_are_told_apart() -> None:
    x = np.arange(64, dtype=np.float32)
    for factor in (2.0, 5.0):
        args = {"x": x, "out": np.zeros(64, np.float32)}
        found = gemmsim.analyze(closure(factor), grid=2, block=32, args=args)
        assert np.array_equal(found.arrays["out"], factor * x)


def test_a_function_of_a_notebook_has_its_lines() -> None:
    """A cell's text is in no file; IPython puts it into linecache."""
    text = "from numba import cuda\n\n@cuda.jit\ndef double(x):\n    i = cuda.grid(1)\n    x[i] = x[i] * 2\n"
    name = "/tmp/ipykernel_1/1.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), cell)
    found = gemmsim.analyze(cell["double"], grid=1, block=32, args=[(32,)])
    assert found.at("x[i] = x[i] * 2").sectors_per_request == 4
    assert "cubin" not in " ".join(found.report.notes)


def test_cuda_text_a_path_and_a_rung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scale.cu").write_text(TEXT)
    (tmp_path / "kernel.cu").write_text("// not what is compiled\n" * 9)  # as text without a file is called
    monkeypatch.chdir(tmp_path)
    x = np.ones(100, np.float32)
    for kernel in (TEXT, tmp_path / "scale.cu"):
        args = {"x": x, "n": np.int32(100)}
        found = gemmsim.analyze(kernel, grid=4, block=32, args=args, define=("F=3.0f",))
        assert np.array_equal(found.arrays["x"], 3 * x)
        assert "if (i < n) x[i] *= F;" in str(found)
    rung = gemmsim.analyze("tiled", size=64, tunables={"tile": 16}, gpu="h200")
    assert rung.verified.ok and rung.report.labels.tunables["tile"] == 16


def test_the_winner_of_a_sweep_of_a_file_can_be_analysed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from numba import cuda\n\ndef build(step):\n    @cuda.jit\n    def fill(x):\n"
        "        i = cuda.grid(1) * step\n        x[i] = 1.0\n    return fill\n"
    )
    target, launch = f"{tmp_path / 'mine.py'}:build", {"grid": 4, "block": 32, "args": [(1024,)]}
    swept = gemmsim.sweep(target, tunables={"step": [1, 4, 8]}, **launch)
    assert swept.best is not None and swept.best.point.tunables == {"step": 1}
    again = gemmsim.analyze(target, tunables=swept.best.point.tunables, **launch)
    assert again.time_us == swept.best.prediction.time_us


def test_two_kernels_of_ones_own_side_by_side() -> None:
    a, b, c = operands()
    one_block = {"kernel": gemm, "grid": (1, 1), "block": (32, 32)}
    found = gemmsim.compare({"four": gemm, "one": one_block}, **SHAPE, args=(a, b, c, N), size=N, gpu="h200")
    assert [(row["name"], row["verified"]) for row in found._rows()] == [("four", None), ("one", None)]
    shapes = (SHAPE, {"grid": (1, 1), "block": (32, 32)})
    four, one = (gemmsim.analyze(gemm, **shape, args=(a, b, c, N), gpu="h200").time_us for shape in shapes)
    assert found.to_dict()["groups"][0]["rows"][1]["speed_up"] == pytest.approx(four / one)
    fastest = "four" if four < one else "one"
    assert f"<gemmsim: 2 launches compared, the fastest is {fastest} on h200" in repr(found)


def test_one_prediction_beside_another(tmp_path: Path) -> None:
    small, large = (gemmsim.analyze("tiled", size=64, tunables={"tile": tile}) for tile in (16, 32))
    for other in (small, small.save(tmp_path / "small.json")):
        assert "beside tiled, M=64 N=64 K=64, tile=16 on a100-80gb: " in str(large.beside(other))
    assert "BESIDE" not in str(large)
    with pytest.raises(GemmsimError, match=r"cannot read 'nowhere\.json'"):
        large.beside("nowhere.json")


def test_a_sweep_of_a_function_that_makes_the_kernel() -> None:
    """Grid and arguments are functions of those of the tunables and the size that they name, or text to fill in."""
    swept = gemmsim.sweep(
        lambda threads: closure(float(threads)),
        tunables={"threads": [32, 64, 128]},
        size=[(1, 256, 1)],
        gpu=["a100", "h200"],
        where=["threads > 32"],
        grid=lambda n, threads: n // threads,
        block=lambda **names: names["threads"],
        args=("f32[{n}]", "f32[{n}]=0"),
    )
    assert [one.status for one in swept.results] == ["predicted"] * 4 and len(swept.pruned) == 2
    assert {one.point.tunables["threads"] for one in swept.results} == {64, 128}


def test_results_show_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line as repr; the command's text, JSON, a page and a table."""
    results = {
        "analyze": gemmsim.analyze("tiled", size=64),
        "compare": gemmsim.compare(["naive", "tiled"], size=64),
        "sweep": gemmsim.sweep("tiled", tunables={"tile": [16, 32]}, size=64),
        "sensitivity": gemmsim.sensitivity("tiled", size=32),
        "explain": gemmsim.explain("occupancy", "tiled", size=64),
    }
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: rows))
    rows = {"analyze": 40, "compare": 2, "sweep": 2, "sensitivity": 40, "explain": 3}
    for name, found in results.items():
        assert len(repr(found)) < 400 and "\n" not in repr(found)
        assert found.save(tmp_path / f"{name}.html").read_text().startswith("<!DOCTYPE html>")
        assert json.loads(found.save(tmp_path / f"{name}.json").read_text()) == found.to_dict()
        assert found.save(tmp_path / f"{name}.txt").read_text() == str(found)
        assert "<table>" in found._repr_html_()
        assert len(found.to_dataframe()) >= rows[name]
    assert len(repr(results["analyze"].report)) < 100
    assert results["sweep"].to_dataframe()[0]["tile"] == results["sweep"].best.point.tunables["tile"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gemmsim.analyze("tild", size=64), "did you mean 'tiled'"),
        (lambda: gemmsim.analyze("tiled", sise=64), "no option 'sise' (did you mean 'size'?)"),
        (lambda: gemmsim.analyze(7), "7 is no kernel"),
        (lambda: gemmsim.analyze("tiled", size=64, gpu=3), "gpu=3: give a GPU's name"),
        (lambda: gemmsim.analyze(TEXT, grid=8.0, block=32, args=()), "8.0 is no size of a grid, block or cluster"),
        (lambda: gemmsim.analyze(TEXT, grid="8;8", block=32, args=()), "--grid '8;8' is not X,Y,Z"),
        (lambda: gemmsim.analyze("tiled", size="a"), "--size a is not a size"),
        (lambda: gemmsim.analyze("no/such_binary", grid=1, block=32), "cannot read 'no/such_binary'"),
        (lambda: gemmsim.analyze("such_binary", grid=1), "unknown kernel 'such_binary'"),
        (lambda: gemmsim.analyze(TEXT, grid=1, block=32, args=((32,), 32)), "give 'i32=32' or np.int32(32)"),
        (lambda: gemmsim.analyze(TEXT, grid=1, args=()), "--block is missing"),
        (lambda: gemmsim.analyze("tiled", size=64).save("x.pdf"), "must end in .html, .txt, .json"),
        (lambda: gemmsim.compare([gemm], **SHAPE, args=((N, N), (N, N), (N, N), N)), "no problem size"),
        (lambda: gemmsim.sweep("tiled", tunables={"tile": [16]}), "no problem size"),
        (lambda: gemmsim.sweep("tiled", tunables={"tile": [16]}, size=64, grid=3), "grid is for a kernel of your own"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call: Any, said: str) -> None:
    with pytest.raises(GemmsimError) as caught:
        call()
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_target_with_the_name_of_a_built_in_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is meant as one, unless there is such a file: a program may be called like it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GemmsimError, match="'tiled' is a built-in kernel: --kernel tiled"):
        gemmsim.analyze(Path("tiled"), grid=1, block=32)
    Path("tiled").write_bytes(b"\x7fELF")
    with pytest.raises(GemmsimError) as caught:
        gemmsim.analyze(Path("tiled"), grid=1, block=32)
    assert "built-in" not in str(caught.value)


def test_without_pandas_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(GemmsimError, match="pip install pandas"):
        gemmsim.explain("wave").to_dataframe()


def test_the_package_imports_nothing_until_it_is_asked() -> None:
    code = "import sys, gemmsim; assert 'numpy' not in sys.modules; print(gemmsim.__version__, gemmsim.sweep.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [gemmsim.__version__, "sweep"]
