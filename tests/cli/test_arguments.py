"""Arguments, checks and saved arrays as they are typed: what is refused, in one line, before anything is compiled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gemmsim.cli.main import main

pytest.importorskip("numba_cuda")

KERNEL = """
from numba import cuda

@cuda.jit
def double(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]
"""
LAUNCH = ("my.py:double", "--grid", "2", "--block", "32")
ARGS = ("--arg", "x: f32[50]", "--arg", "y: f32[64]=7", "--arg", "i32=50")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(KERNEL)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arg", "f32[4"], "--arg 'f32[4' is malformed"),
        (["--arg", "{f32[4], i32=1}"], "a numba kernel takes arrays and scalars, not structs"),
        (["--arg", "f32[4; ld=8]"], "col and ld are for arrays of two or more dimensions"),
        (["--arg", "f32[4; offset=1]", "--arg", "f32[4]", "--arg", "i32=4"], "compiled for C-contiguous arrays"),
        (["--arg", "f32[4]", "--arg", "&q"], "no array is called 'q': the arrays are arg0"),
        (["--arg", "@in.npz:q"], "cannot read 'in.npz'"),
        (["--array", "f32[4]"], "--array 'f32[4]': expected a name and an array, as in 'A: f32[256,256]'"),
        ([*ARGS, "--verify", "z = x"], "--verify 'z = x': nothing is called 'z': known are x, y, alpha, beta"),
        ([*ARGS, "--verify", "y = x"], "[50] = [64]: the shapes do not agree"),
        ([*ARGS, "--verify", "y = y", "--accumulate", "f33"], "--accumulate f33 (did you mean 'f32'?)"),
        ([*ARGS, "--verify", "y = y", "--tolerance", "-1"], "--tolerance -1.0 must be 0 or more"),
        ([*ARGS, "--reference", "out.npz"], "--reference out.npz: cannot read 'out.npz': No such file"),
        ([*ARGS, "--reference", "out.npy"], "say which array it is, as in --reference C=out.npy"),
        ([*ARGS, "--reference", "z=my.py"], "no array of the launch is called 'z': the launch has x, y"),
        ([*ARGS, "--save", "out.txt"], "--save out.txt: expected the name of an .npz file"),
        ([*ARGS, "--save", "absent/out.npz"], "cannot write absent/out.npz"),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", *LAUNCH, *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--verify", "C = A @ B"], "is for a kernel of your own: a built-in kernel is always checked"),
        (["--array", "A: f32[4]"], "--array is for a kernel of your own"),
        (["--reference", "D=my.py"], "no array of the launch is called 'D': the launch has A, B, C"),
    ],
)
def test_built_in_kernels(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--kernel", "tiled", "--size", "32", *words]) == 2
    assert message in capsys.readouterr().err


def test_saved_arrays_are_arguments_and_references(capsys: pytest.CaptureFixture[str]) -> None:
    """x from the file, another y: 50 elements are as saved, and 14 that nothing is stored to are not."""
    assert main(["analyze", *LAUNCH, *ARGS, "--save", "out.npz"]) == 0
    saved = np.load("out.npz")
    np.testing.assert_array_equal(saved["y"], np.concatenate([2 * saved["x"], np.full(14, 7)]).astype(np.float32))
    again = ("--arg", "x: @out.npz", "--arg", "y: f32[64]=8", "--arg", "i32=50", "--reference", "out.npz")
    capsys.readouterr()
    assert main(["analyze", *LAUNCH, *again, "--format", "json"]) == 1
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert verified["ok"] is False and "y[50] is 8, 7 was wanted; 14 of 64 elements differ" in verified["text"]
    assert main(["analyze", *LAUNCH, *again, "--tolerance", "0.2"]) == 0
    assert main(["check", *LAUNCH, *again, "--expect", "registers <= 255"]) == 1
    assert "FAIL  the result is wrong: not as in out.npz: y[50] is 8" in capsys.readouterr().out


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a symbol that says the types, and of one that does not; counting and looking for races alike."""
    for number, lead in enumerate(("", 'extern "C" ')):
        file = tmp_path / f"scale{number}.cu"
        file.write_text(f"{lead}__global__ void scale(float* x, int n) {{ if (threadIdx.x < n) x[threadIdx.x] *= 2; }}")
        launch = [str(file), "--grid", "1", "--block", "32", "--arg", "f32[32]", "--arg"]
        for command in (["analyze", *launch], ["check", "--sanitize", *launch]):
            assert main([*command, "f32=32"]) == 2
            said = "error: kernel 'scale': parameter 1 is declared as 'int', but f32 is given: pass i32=...\n"
            assert capsys.readouterr().err == said
        assert main(["analyze", *launch, "i32=32"]) == 0
