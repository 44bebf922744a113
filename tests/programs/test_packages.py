"""How packages are changed when a program imports them, and what PyTorch's and Triton's objects become."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gemmsim.programs.on_import import when_imported
from gemmsim.programs.triton_descriptors import descriptor_bytes
from gemmsim.support.errors import GemmsimError

HERE = Path(__file__).parent


def test_a_module_is_changed_once_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_for_this_test.py").write_text("value = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    seen = []
    when_imported({"made_for_this_test": lambda module: seen.append(module.value)})
    assert seen == []
    import made_for_this_test

    assert seen == [made_for_this_test.value] == [1]
    when_imported({"made_for_this_test": lambda module: seen.append(2)})
    assert seen == [1, 2]


def descriptor(padding: str = "zero") -> SimpleNamespace:
    return SimpleNamespace(shape=[64, 48], strides=[48, 1], padding=padding, round_f32_to_tf32=False)


def test_a_descriptor_without_a_tensor_map_is_a_pointer_with_sizes_and_strides() -> None:
    found = b"".join(descriptor_bytes(descriptor("nan"), None, 0x7F00_0000_0100))
    expected = struct.pack("<Q4qBB", 0x7F00_0000_0100, 64, 48, 48, 1, 1, 0) + struct.pack("<2i", 64, 48)
    assert found == expected + struct.pack("<2q", 48, 1)


def test_a_descriptor_is_a_tensor_map_with_sizes_and_strides() -> None:
    described = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [16, 32], "fp4_padded": False}
    content, *rest = descriptor_bytes(descriptor(), described, 0x7F00_0000_0100)
    words = struct.unpack("<32I", content)
    assert words[0] | words[1] << 32 == 0x7F00_0000_0100
    assert words[2] == 1 << 4 | 6 << 7 | 3 << 13  # two dimensions of float16, in the order of the 128-byte swizzle
    assert words[3] == 48 * 2 // 16  # the stride of rows, in units of 16 bytes
    assert words[8:10] == (47, 63)
    assert words[13] >> 24 == 31 and words[14] == 15
    assert b"".join(rest) == struct.pack("<2i2q", 64, 48, 48, 1)
    with pytest.raises(GemmsimError, match="im2col"):
        list(descriptor_bytes(descriptor(), described | {"is_im2col": True}, 256))


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gemmsim", "run", "--gpu", "h200", *args], capture_output=True, text=True
    )


def test_tensors_of_pytorch_are_on_the_gpu() -> None:
    pytest.importorskip("torch")
    done = run(str(HERE / "torch_program.py"))
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("132 SMs, ") and float(first.split()[2]) > 0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("graph", "CUDA graphs of PyTorch, which gemmsim does not simulate"),
        ("pool", "memory pools of PyTorch, which gemmsim does not simulate"),
        ("second", "cuda:1: gemmsim simulates one GPU a process, cuda:0"),
        ("own", "PyTorch's own CUDA code, which gemmsim does not simulate: "),
    ],
)
def test_what_pytorch_cannot_have_is_named(kind: str, said: str) -> None:
    pytest.importorskip("torch")
    done = run(str(HERE / "torch_program.py"), kind)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: the program uses {said}")


RUNTIME = """
import ctypes, glob, site
(path,) = glob.glob(site.getsitepackages()[0] + "/nvidia/*/lib/libcudart.so.1*")
runtime = ctypes.CDLL(path)
error = runtime.cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))
runtime.cudaGetErrorName.restype = ctypes.c_char_p
raise RuntimeError(runtime.cudaGetErrorName(error).decode())
"""
CUPY = "import cupy; cupy.arange(3)"


@pytest.mark.parametrize(("needs", "text"), [("nvidia", RUNTIME), ("cupy", CUPY)])
def test_the_cuda_runtime_is_named_with_what_to_do_instead(tmp_path: Path, needs: str, text: str) -> None:
    pytest.importorskip(needs)
    (tmp_path / "program.py").write_text(text)
    done = run(str(tmp_path / "program.py"))
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("error: the program uses the CUDA runtime (libcudart), as CuPy does")
    assert said.endswith("load the same kernel by cuda.core, or write it in numba.cuda or Triton")


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    (tmp_path / "test_own.py").write_text("def test_one():\n    assert True\n")
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stderr
    done = run("-m", "no_such_module")
    assert (done.returncode, done.stderr) == (2, "error: there is no module no_such_module\n")


CUBLAS = """
import torch, triton
from triton._C.libtriton import nvidia
a, b, c = (torch.randn(32, 32, device="cuda").half() for _ in range(3))
expected = (2 * (a.float() @ b.float().T) + c.float()).half()
blas = nvidia.cublas.CublasLt(torch.empty(1024, device="cuda", dtype=torch.uint8))
blas.gemm(a, b, c, c, 2.0, 1.0)
assert c.equal(expected)
@triton.jit
def nothing(n): pass
nothing[(1,)](1)
import triton.profiler
triton.profiler.start("name")
"""


def test_cublas_of_triton_multiplies_and_its_profiler_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    program = tmp_path / "blas.py"
    program.write_text(CUBLAS)
    done = run(str(program))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: the program uses Triton's profiler Proton, ")
    assert "calls of cuBLAS" in " ".join(done.stdout.split())
