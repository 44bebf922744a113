"""What `analyze` asks of the api, and what it refuses before anything is compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmsim.cli.options import LaunchOptions
from gemmsim.cli.requests import requested_launch
from gemmsim.compile import CubinKernel, PythonKernel
from gemmsim.support.errors import GemmsimError

GEMM_ARGS = ("f32[64,32]", "f32[32,48]", "f32[64,48]=0")


def ladder(**given: object) -> LaunchOptions:
    return LaunchOptions(**{"kernel": "tiled", "size": 64} | given)


def own(**given: object) -> LaunchOptions:
    return LaunchOptions(**{"target": "my.py:gemm", "grid": "2,2", "block": "32,32", "args": GEMM_ARGS} | given)


@pytest.fixture
def kernel_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text("def gemm(A, B, C): pass\n")
    (tmp_path / "my.cubin").write_bytes(b"\x7fELF")
    return tmp_path


def test_ladder_launch() -> None:
    """M = 33 and N = 100 in tiles of 16: 3 x 7 blocks; A is 33 x 7; C is NaN, as nothing may read it."""
    request = requested_launch(ladder(size=None, m=33, n=100, k=7, kernel_sets=("tile=16",), alpha=1.5))
    launch = request.launch
    assert (launch.grid, launch.block, launch.dynamic_shared_bytes) == ((7, 3, 1), (16, 16, 1), 0)
    assert [argument.shape for argument in launch.args] == [(33, 7), (7, 100), (33, 100), (), ()]
    assert [argument.value for argument in launch.args[3:]] == [1.5, 0.0]
    assert np.isnan(np.asarray(request.launch_with_arrays().args[2].value)).all()
    assert isinstance(request.kernel, PythonKernel)
    assert (request.kernel.function, request.kernel.tunables) == ("build", (("tile", 16),))
    assert [(one.dtype, one.ndim) for one in request.kernel.signature] == [("f32", 2)] * 3 + [("f32", 0)] * 2
    assert request.verify is not None and (request.verify.alpha, request.verify.beta) == (1.5, 0.0)
    assert (request.labels.m, request.labels.n, request.labels.k) == (33, 100, 7)


def test_seed_decides_the_matrices() -> None:
    specs = [requested_launch(ladder(seed=seed, beta=1.0)) for seed in (1, 1, 2)]
    first, again, other = (np.asarray(spec.launch_with_arrays().args[2].value) for spec in specs)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_own_kernel(kernel_file: Path) -> None:
    request = requested_launch(
        own(verify="gemm", shared=1024, max_instructions=5, full=True, no_cache=True, caches="warm")
    )
    assert request.warm_caches and not requested_launch(own()).warm_caches
    assert isinstance(request.kernel, PythonKernel) and request.kernel.function == "gemm"
    assert (request.launch.grid, request.launch.block) == ((2, 2, 1), (32, 32, 1))
    assert request.launch.dynamic_shared_bytes == 1024
    assert (request.labels.kernel, request.labels.m, request.labels.n, request.labels.k) == ("gemm", 64, 48, 32)
    assert request.verify is not None and (request.verify.a, request.verify.b, request.verify.c) == (0, 1, 2)
    assert (request.settings.full, request.settings.max_instructions, request.settings.use_cache) == (True, 5, False)


def test_flat_arrays_verify_where_sizes_are_given(kernel_file: Path) -> None:
    flat = ("i32=64", "f32[2048]", "f32[1536]", "f32[3072]=0")
    request = requested_launch(own(target="my.cubin", args=flat, verify="gemm", m=64, n=48, k=32))
    assert isinstance(request.kernel, CubinKernel)
    assert request.verify is not None and (request.verify.a, request.verify.b, request.verify.c) == (1, 2, 3)
    with pytest.raises(GemmsimError, match="add --m, --n and --k"):
        requested_launch(own(target="my.cubin", args=flat, verify="gemm"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "--size 0 is not a size: it must be an integer of at least 1"),
        ({"size": -5}, "--size -5 is not a size"),
        ({"size": None}, "no problem size: give --size N, or --m, --n and --k"),
        ({"size": None, "m": 8, "k": 8}, "--n missing: give --size N, or all of"),
        ({"size": None, "m": 8, "n": 8, "k": 0}, "--k 0 is not a size"),
        ({"m": 8}, "--size stands for --m, --n and --k together"),
        ({"kernel": "tilde"}, r"unknown kernel 'tilde' \(did you mean 'tiled'\?\)"),
        ({"gpu": "a1000"}, r"unknown GPU 'a1000' \(did you mean 'a100'\?\)"),
        ({"gpu_sets": ("l2.sise=1MiB",)}, r"l2\.sise"),
        ({"kernel_sets": ("tile=17",)}, "tiled takes tile of 8, 16, 32"),
        ({"kernel_sets": ("tyle=16",)}, r"no tunable 'tyle' \(did you mean 'tile'\?\)"),
        ({"kernel": "naive", "kernel_sets": ("tile=16",)}, "kernel 'naive' has no tunable 'tile': it has no tunables"),
        ({"kernel_sets": ("tile",)}, "--set-kernel 'tile' is malformed"),
        ({"grid": "8,8"}, "--grid is for a kernel of your own"),
        ({"args": ("i32=1",)}, "--arg is for a kernel of your own"),
        ({"size": 10**6}, "matrix A of M=1000000, .*: 3725.3 GiB, but an array may have 32 GiB at most"),
        ({"seed": -1}, "--seed -1 must be 0 or more"),
        ({"max_instructions": 0}, "--max-instructions 0 must be from 1 to"),
        ({"shared": -1}, "--shared -1 must be 0 or more bytes"),
    ],
)
def test_bad_ladder_options(given: dict[str, object], message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        requested_launch(ladder(**given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grid": None}, "--grid is missing"),
        ({"block": None}, "--block is missing"),
        ({"grid": "0,1"}, "--grid '0,1' has a size below 1"),
        ({"block": "a"}, "--block 'a' is not X,Y,Z"),
        ({"target": __file__ + "x"}, "No such file"),
        ({"target": str(Path(__file__).parents[2] / "README.md")}, "gemmsim reads FILE.py:function, FILE.cu, FILE.ptx"),
        ({"target": "absent.cu"}, "cannot read 'absent.cu': No such file"),
        ({"target": "my.py"}, "needs a function: my.py:function"),
        ({"entry": "gemm"}, "--entry is for .cu, .ptx and binary files"),
        (
            {"kernel_sets": ("tile=16",), "target": "absent.cu"},
            "--set-kernel is for built-in kernels, and functions of",
        ),
        ({"args": ("f32[64,32]", "f32[32,48]"), "verify": "gemm"}, "first three arrays as A, B, C, but 2 are given"),
        ({"args": ("f32[9,2]", "f32[3,4]", "f32[9,4]"), "verify": "gemm"}, r"B is \[3, 4\], but .* need \[2,4\]"),
        ({"args": ("f32[4,4",)}, "malformed"),
    ],
)
def test_bad_options_of_own_kernels(kernel_file: Path, given: dict[str, object], message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        requested_launch(own(**given))
    assert "\n" not in str(caught.value)
