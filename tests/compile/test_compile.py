"""From kernel source to Program through the real toolchain, which needs no GPU; and each way that can go wrong."""

from __future__ import annotations

import builtins
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from cubins import EACH, SOURCES, cuda, python_kernel

from gemmsim.analysis.code.source_lines import source_line
from gemmsim.compile import ArgType, CubinKernel, CudaKernel, PtxKernel, PythonKernel, compile_kernel, kernel_file
from gemmsim.compile import python_kernel as python_kernel_module
from gemmsim.compile.link import link
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError

ARRAYS = ("f32[]", "f32[]", "f32")
SGEMM = """
template <int TILE> __global__ void sgemm(const float* a, float* c) {
    __shared__ float s[TILE];
    s[threadIdx.x % TILE] = a[threadIdx.x];
    __syncthreads();
    c[threadIdx.x] = s[(threadIdx.x + 1) % TILE];
}
"""
PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 out)
{
    .reg .b64 %rd<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [out];
    ld.global.f32 %f1, [%rd1];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""


def opcodes(program: Program) -> list[str]:
    return [one.mnemonic for one in program.instructions]


@pytest.mark.parametrize("arch", EACH)
def test_numba_kernel_for_every_architecture(arch: str) -> None:
    program = compile_kernel(python_kernel("scale", *ARRAYS), arch, None)
    assert (program.name, program.arch, program.abi) == ("scale", arch, "numba")
    # a 1-D array is 5 + 2 words of 8 bytes: meminfo, parent, nitems, itemsize, data, shape, stride; then the scalar
    assert [one.size_bytes for one in program.parameters] == [8] * 14 + [4]
    assert sum(name.startswith("LDG") for name in opcodes(program)) == 1
    assert sum(name.startswith("FMUL") for name in opcodes(program)) == 1
    source = SOURCES / "python_kernels.py"
    (line,) = {one.sources[0].line for one in program.instructions if one.opcode == "FMUL"}
    assert source.read_text().splitlines()[line - 1].strip() == "y[i] = factor * x[i]"
    assert program.source[str(source)] == source.read_text()
    assert program.toolchain["numba-cuda"] and program.toolchain["nvidia-nvjitlink"]


def test_decorator_options_count() -> None:
    assert compile_kernel(python_kernel("bounded", *ARRAYS), "sm_90", None).max_threads == 256
    limited = compile_kernel(python_kernel("limited", *ARRAYS), "sm_90", None)
    free = compile_kernel(python_kernel("free", *ARRAYS), "sm_90", None)
    assert limited.max_threads is free.max_threads is None
    assert limited.registers <= 24 < free.registers


def test_device_functions_need_no_gpu_and_keep_their_lines() -> None:
    program = compile_kernel(python_kernel("free", *ARRAYS), "sm_90", None)
    text = (SOURCES / "python_kernels.py").read_text().splitlines()
    chains = {tuple(text[place.line - 1].strip() for place in one.sources) for one in program.instructions}
    called = text.index("def free(x, y, factor):") + 1
    assert ("total += x[i + 7 * k] * x[i * k]", text[called].strip()) in chains


def test_plain_function_is_compiled_as_jit_would() -> None:
    assert "FMUL" in opcodes(compile_kernel(python_kernel("plain", *ARRAYS), "sm_90", None))


def test_factory_is_called_with_its_tunables() -> None:
    program = compile_kernel(python_kernel("build", *ARRAYS, tunables=(("times", 5),)), "sm_90", None)
    assert program.name == "repeated"
    assert sum(name.startswith("FMUL") for name in opcodes(program)) == 5


@pytest.mark.parametrize(("dtype", "multiply", "load"), [
    ("f16", "HMUL2", "LDG.E.U16"), ("bf16", "HMUL2.BF16_V2", "LDG.E.U16"), ("f64", "DMUL", "LDG.E.64"),
    ("u8", "IMAD", "LDG.E.U8"), ("i64", "IMAD", "LDG.E.64"), ("i32", "IMAD", "LDG.E"),
])  # fmt: skip
def test_numba_element_types(dtype: str, multiply: str, load: str) -> None:
    names = opcodes(compile_kernel(python_kernel("plain", f"{dtype}[]", f"{dtype}[]", dtype), "sm_90", None))
    assert load in names
    assert any(name == multiply or name.startswith(multiply + ".") for name in names)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_arithmetic_of_halves_stands_on_the_line_that_uses_it(dtype: str) -> None:
    """NVRTC compiles it, from lines of numba's own files, which are not the user's."""
    program = compile_kernel(python_kernel("plain", f"{dtype}[]", f"{dtype}[]", dtype), "sm_90", None)
    (text,) = program.source.values()
    (product,) = (one for one in program.instructions if one.opcode == "HMUL2")
    line = source_line(program, product)
    assert line is not None and "*" in text.splitlines()[line.line - 1]
    assert all(one.sources for one in program.instructions if one.opcode not in ("NOP", "BRA"))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_the_same_machine_code_as_numbas_dispatcher(dtype: str) -> None:
    """numba's own code library makes the cubin that a launch would load: all but the device query is called here. It
    has no line information, so that this also shows that ours changes no instruction."""
    from numba import cuda as numba_cuda
    from numba.cuda import types
    from numba.cuda.compiler import compile_cuda, kernel_fixup

    from gemmsim.compile.decode import decode_cubin

    source = python_kernel("plain", f"{dtype}[]", f"{dtype}[]", dtype)
    ours = compile_kernel(source, "sm_90", None)
    function = python_kernel_module.load_kernel(source)
    scalar = python_kernel_module.numba_type(dtype)
    array = types.Array(scalar, 1, "C")
    lto = numba_cuda.jit(function).targetoptions["lto"]
    arguments = (array, array, scalar)
    options = {"fastmath": False, "opt": 3}
    made = compile_cuda(function, types.void, arguments, nvvm_options=options, cc=(9, 0), lto=lto)
    kernel_fixup(made.library.get_function(made.fndesc.llvm_func_name), False)
    theirs = decode_cubin(bytes(made.library.get_cubin(cc=(9, 0, "a")).code))
    assert [one.encoding for one in theirs.instructions] == [one.encoding for one in ours.instructions]
    assert theirs.registers == ours.registers


def test_cuda_template_by_name_expression() -> None:
    source = CudaKernel(SGEMM, SOURCES / "sgemm.cu", "sgemm<256>")
    program = compile_kernel(source, "sm_80", None)
    assert (program.name, program.abi, program.static_shared_bytes) == ("sgemm<256>", "c", 1024)
    assert [one.size_bytes for one in program.parameters] == [8, 8]
    other = compile_kernel(dataclasses.replace(source, entry="sgemm<512>"), "sm_80", None)
    assert other.static_shared_bytes == 2048


def test_cuda_options_and_includes(tmp_path: Path) -> None:
    (tmp_path / "width.cuh").write_text("#define WIDTH 64\n")
    text = """#include "width.cuh"
#include <cuda_fp16.h>
__global__ void k(__half* a) { __shared__ int s[WIDTH * TIMES];
s[threadIdx.x] = 1; __syncthreads(); a[0] = s[threadIdx.x ^ 1]; }"""
    path = tmp_path / "k.cu"
    path.write_text(text)
    source = kernel_file(path, "k", options=("-DTIMES=3",))
    assert compile_kernel(source, "sm_80", None).static_shared_bytes == 64 * 3 * 4
    with pytest.raises(GemmsimError, match=r"^NVRTC cannot compile 'k.cu' for sm_80: .*k.cu\(3\): error: .*TIMES"):
        compile_kernel(dataclasses.replace(source, options=()), "sm_80", None)


def test_ptx(tmp_path: Path) -> None:
    path = tmp_path / "twice.ptx"
    path.write_text(PTX)
    program = compile_kernel(kernel_file(path, None), "sm_120", None)
    assert (program.name, program.abi, program.arch) == ("twice", "c", "sm_120")
    assert "FADD" in opcodes(program)


def test_cubin_file(tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cuda(SGEMM, "sm_86", "sgemm<64>").cubin)
    program = compile_kernel(kernel_file(path, "sgemm"), "sm_86", None)
    assert program.name == "sgemm"
    assert program.origin == "the sm_86 cubin in k.cubin"
    assert program.toolchain == {
        "ptxas": tool_versions()["nvidia-cuda-nvrtc"],
        "nvidia-cuda-nvdisasm": tool_versions()["nvidia-cuda-nvdisasm"],
    }
    with pytest.raises(GemmsimError, match="holds no code for sm_90, only cubin for sm_86: compile it for sm_90"):
        compile_kernel(kernel_file(path, "sgemm"), "sm_90", None)


def test_numba_abi_is_told_from_the_symbol(tmp_path: Path) -> None:
    cubin = python_kernel_module.compile_python(python_kernel("plain", *ARRAYS), "sm_80")
    assert compile_kernel(CubinKernel(cubin, tmp_path / "k.cubin"), "sm_80", None).abi == "numba"


def test_nothing_loads_a_driver() -> None:
    """The whole flow in a process where opening libcuda fails, as on a machine without a GPU."""
    script = f"""
import ctypes, os
real = ctypes.CDLL
def guarded(name, *rest, **named):
    if name and "libcuda.so" in str(name): raise OSError("no driver here")
    return real(name, *rest, **named)
ctypes.CDLL = guarded
from pathlib import Path
from gemmsim.compile import *
signature = (ArgType("f32", 1), ArgType("f32", 1), ArgType("f32"))
source = PythonKernel(Path({str(SOURCES / "python_kernels.py")!r}), "plain", signature)
print(compile_kernel(source, "sm_89", None).name)
print("libcuda.so" in Path("/proc/self/maps").read_text() if Path("/proc/self/maps").exists() else False)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "plain\nFalse\n"


@pytest.mark.parametrize(("function", "message"), [
    ("unknown_name", "numba cannot compile 'unknown_name' for sm_90: .*nowhere"),
    ("scael", r"'python_kernels.py' has no function 'scael' \(did you mean 'scale'\?\)"),
    ("number", "python_kernels.py:number is no kernel, but of type int"),
])  # fmt: skip
def test_bad_python_kernels(function: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        compile_kernel(python_kernel(function, *ARRAYS), "sm_90", None)
    assert "\n" not in str(caught.value)


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(GemmsimError, match="numba cannot compile 'plain' for sm_90: ") as caught:
        compile_kernel(python_kernel("plain", "f32[]"), "sm_90", None)
    assert "\n" not in str(caught.value)


def test_factory_with_unknown_tunable() -> None:
    with pytest.raises(GemmsimError, match=r"python_kernels.py:build failed: TypeError: .*'tile'"):
        compile_kernel(python_kernel("build", *ARRAYS, tunables=(("tile", 3),)), "sm_90", None)


@pytest.mark.parametrize(("text", "message"), [
    ("import nothing_of_that_name", "cannot be loaded: ModuleNotFoundError: "),
    ("1 / 0", "cannot be loaded: ZeroDivisionError: "),
    ("def (", "cannot be loaded: SyntaxError: "),
])  # fmt: skip
def test_python_file_that_fails(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(GemmsimError, match=message):
        compile_kernel(PythonKernel(path, "f", ()), "sm_90", None)


def test_python_file_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "gemmsim_test_neighbour.py").write_text("FACTOR = 3\n")
    (tmp_path / "mine.py").write_text(
        "from gemmsim_test_neighbour import FACTOR\n\ndef f(x):\n    x[0] = FACTOR * x[1]\n"
    )
    before = list(sys.path)
    program = compile_kernel(PythonKernel(tmp_path / "mine.py", "f", (ArgType("i32", 1),)), "sm_90", None)
    assert program.name == "f"
    assert sys.path == before


@pytest.mark.parametrize(("name", "content", "entry", "message"), [
    ("k.txt", b"", None, "is no kernel file: gemmsim reads FILE.py:function, FILE.cu, FILE.ptx, cubins, fatbins"),
    ("k.py", b"", None, "needs a function: k.py:function"),
    ("k.cu", b"\xff\xfe", None, "it is not UTF-8 text"),
])  # fmt: skip
def test_files_that_are_no_kernels(tmp_path: Path, name: str, content: bytes, entry: str | None, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GemmsimError, match=message):
        kernel_file(tmp_path / name, entry)
    with pytest.raises(GemmsimError, match=r"cannot read .*: No such file or directory"):
        kernel_file(tmp_path / f"absent{Path(name).suffix if name != 'k.txt' else '.cu'}", entry)


def test_bad_types_and_architectures() -> None:
    with pytest.raises(GemmsimError, match=r"unknown type 'f23' \(did you mean 'f32'\?\): known are f16, bf16"):
        ArgType("f23")
    with pytest.raises(GemmsimError, match="'hopper' is no architecture: write sm_80"):
        compile_kernel(python_kernel("scale", *ARRAYS), "hopper", None)
    with pytest.raises(GemmsimError, match="sm_35"):
        compile_kernel(CudaKernel(SGEMM, SOURCES / "s.cu", "sgemm<1>"), "sm_35", None)


def test_bad_cuda_and_ptx() -> None:
    with pytest.raises(GemmsimError, match=r"has no kernel 'gemm<1>' \(did you mean 'sgemm'\?\): a template needs"):
        compile_kernel(CudaKernel(SGEMM, SOURCES / "s.cu", "gemm<1>"), "sm_80", None)
    with pytest.raises(GemmsimError, match=r"'s.cu' holds no kernel"):
        compile_kernel(CudaKernel(SGEMM, SOURCES / "s.cu"), "sm_80", None)
    with pytest.raises(GemmsimError, match=r"nvJitLink cannot make a cubin for sm_80: .*does not match type"):
        link(["add.f32"], "sm_80")
    with pytest.raises(GemmsimError, match=r"nvJitLink cannot make a cubin for sm_80 of 'k.ptx': .*higher than"):
        compile_kernel(PtxKernel(PTX.replace("sm_75", "sm_90").replace("7.0", "8.0"), SOURCES / "k.ptx"), "sm_80", None)


@pytest.mark.parametrize(("source", "hidden", "message"), [
    (python_kernel("scale", *ARRAYS), "numba", "^numba-cuda is not installed"),
    (CudaKernel(SGEMM, SOURCES / "s.cu", "sgemm<64>"), "cuda.bindings", r"^NVRTC \(cuda.bindings\) is not installed"),
    (PtxKernel(PTX, SOURCES / "k.ptx"), "cuda.core", r"^nvJitLink \(cuda.core\) is not installed"),
])  # fmt: skip
def test_missing_toolchain(source, hidden: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest):
        if name == hidden or name.startswith(hidden + "."):
            raise ModuleNotFoundError(f"No module named '{name}'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(GemmsimError, match=message + ', .*: pip install "numba-cuda\\[cu13\\]"') as caught:
        compile_kernel(source, "sm_80", None)
    assert "\n" not in str(caught.value)


def test_numba_without_numba_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba alone brings an older numba.cuda, which must not answer in numba-cuda's place."""
    monkeypatch.setattr(python_kernel_module, "tool_versions", lambda: {"numba": "0.61"})
    with pytest.raises(GemmsimError, match=r"^numba-cuda is not installed"):
        compile_kernel(python_kernel("scale", *ARRAYS), "sm_80", None)
