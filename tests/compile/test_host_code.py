"""CUDA C++ with host code beside the kernels, by NVRTC and by nvcc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gemmsim.compile import CudaKernel, compile_kernel
from gemmsim.compile.compilers import compiler_versions
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.host_headers import stand_ins
from gemmsim.compile.key import cache_key
from gemmsim.compile.nvcc import find_nvcc
from gemmsim.compile.toolchain import versions_of
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError

SOURCE = Path(__file__).parents[1] / "sources" / "with_host.cu"
# The kernel of SOURCE alone, as NVRTC takes it without any of what this file tests.
KERNEL = """
struct Shape { unsigned rows, columns; };
template <int TILE>
__global__ void __launch_bounds__(TILE *TILE) tiled(Shape shape, const float *A, float *B) {
  __shared__ float tile[TILE][TILE];
  const unsigned column = blockIdx.x * TILE + threadIdx.x;
  const unsigned row = blockIdx.y * TILE + threadIdx.y;
  const unsigned last = shape.rows - 1;
  tile[threadIdx.y][threadIdx.x] = A[(last < row ? last : row) * shape.columns + column];
  __syncthreads();
  const float value = tile[threadIdx.x][TILE / 2];
  B[row * shape.columns + column] = (value < 0.0f ? 0.0f : value) + sqrtf(value) + (float)3.14159265358979323846;
}
"""


def program(text: str, entry: str | None = None, path: Path = SOURCE, **fields: object) -> Program:
    return compile_kernel(CudaKernel(text, path, entry, **fields), "sm_80", None)  # type: ignore[arg-type]


def test_host_code_is_left_out_and_the_kernel_stays_what_it_is() -> None:
    beside, alone = program(SOURCE.read_text(), "tiled<16>"), program(KERNEL, "tiled<16>")
    assert [one.text for one in beside.instructions] == [one.text for one in alone.instructions]
    assert (beside.registers, beside.static_shared_bytes, beside.max_threads) == (alone.registers, 1024, 256)
    assert beside.parameters == alone.parameters and beside.parameters[0].size_bytes == 8
    lines = SOURCE.read_text().splitlines()
    named = {place.line for one in beside.instructions for place in one.sources if place.file == str(SOURCE)}
    assert named and all("__launch" in lines[n - 1] or 46 < n < 56 for n in named)  # lines are those of the file


def test_host_code_in_a_header_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "tools.h").write_text(
        "#include <string>\n#pragma once\nstd::string name() { return FACTOR; }\n"
        "__device__ inline float twice(float x) { return FACTOR * x; }\n"
    )
    text = (
        '#include "lib/tools.h"\n__global__ void f(float* x) { x[0] = twice(x[1]); }\nint main() { name(); throw 1; }'
    )
    path = tmp_path / "my.cu"
    found = program(text, None, path, options=("-DFACTOR=2",))
    files = {place.file for one in found.instructions for place in one.sources}
    assert files == {str(path), str(tmp_path / "lib" / "tools.h")}
    assert set(found.source) == files
    assert found.source[str(path)] == text  # which was never written to a file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "#include <vector>\nstd::vector<int> v;\n__global__ void f(float* x) { x[0] = y; }",
            'identifier "y" is undef',
        ),
        ('#include "absent.h"\n__global__ void f(float* x) {}', 'file "absent.h": give its folder with -I'),
        (  # a kernel that needs host code is not given a part of it
            "#include <string>\nstruct P { std::string s; int n; };\n__global__ void f(P p, int* x) { *x = p.n; }",
            'identifier "P" is undefined',
        ),
        (
            "#include <string>\nstruct P { std::string s; int n; };\n__global__ void f(P p, int* x) { *x = p.n; }",
            '(2): error: namespace "std" has no member "string"; --compiler nvcc compiles host code, too',
        ),
    ],
)
def test_errors_in_code_of_the_gpu_stay_errors(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(GemmsimError) as error:
        program(text, None, tmp_path / "my.cu")
    assert message in str(error.value) and "\n" not in str(error.value)


NAMES = """
namespace a { namespace { template <int N> __global__ void f(float* x) { x[0] = N; } } __global__ void g(float*) {} }
static __global__ void over(float* x) {}
__global__ void over(double* x) {}
"""


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("a::f<3>", "1fILi3EEEvPf"),
        ("f<3>", "1fILi3EEEvPf"),
        ("g", "_ZN1a1gEPf"),
        ("over(double*)", "_Z4overPd"),
        ("over", "'over' names 2 kernels of 'with_host.cu', say more of the name: "),
        ("f", "has no kernel 'f': a template needs its arguments, --entry 'NAME<...>'; there are a::f"),
        ("none", "has no kernel 'none'"),
        (None, "'with_host.cu' holds 3 kernels, choose one as the entry (--entry): "),
    ],
)
def test_names_of_kernels_need_no_namespaces(entry: str | None, found: str) -> None:
    if "_Z" in found or "EE" in found:
        assert program(NAMES, entry).symbol.endswith(found)
    else:
        with pytest.raises(GemmsimError) as error:
            program(NAMES, entry)
        assert found in str(error.value)


def test_templates_alone_are_no_kernels() -> None:
    with pytest.raises(GemmsimError, match=r"holds no kernel .*: a template needs its arguments, .*; there are tiled"):
        program(SOURCE.read_text())


def test_parts_of_the_cpp_library_on_the_gpu() -> None:
    text = (
        "#include <limits>\n#include <type_traits>\n"
        "template <class T> __global__ void f(T* x) {\n"
        "  x[0] = std::is_same<T, float>::value ? std::numeric_limits<T>::max() : 0; }\nint main() { return 0; }"
    )
    found = program(text, "f<float>")
    assert any("3.40282346" in one.text or "0x7f7fffff" in one.text for one in found.instructions)


def test_every_stand_in_can_be_included() -> None:
    text = "".join(f"#include <{name}>\n" for name in stand_ins(large=False))
    text += "#include <vector>\nstd::vector<int> v;\n__global__ void f(uint* x) { x[0] = (uint8_t)INT_MAX + FLT_MAX; }"
    assert program(text).symbol == "_Z1fPj"


def test_options_reach_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "constants.h").write_text("#define FROM_HEADER 3\n")
    text = "#include <constants.h>\n__global__ void f(int* x) { x[0] = FROM_HEADER * GIVEN; }"
    options = (f"-I{tmp_path}", "-DGIVEN=7", "--std=c++20", "--maxrregcount=32")
    source = CudaKernel(text, SOURCE.parent / "inline.cu", None, options)
    assert any("0x15" in one.text for one in compile_kernel(source, "sm_80", None).instructions)
    before = cache_key(source, "sm_80", {})
    (tmp_path / "constants.h").write_text("#define FROM_HEADER 4\n")
    assert cache_key(source, "sm_80", {}) != before  # a header of a folder that an option names is a part of the source


def test_the_report_names_nvrtc_and_its_headers() -> None:
    toolchain = program(KERNEL, "tiled<8>").toolchain
    assert toolchain == compiler_versions("nvrtc") and next(iter(toolchain)) == "NVRTC"


def has_nvcc() -> bool:
    try:
        return find_nvcc().is_file() and bool(shutil.which("c++") or shutil.which("g++"))
    except GemmsimError:
        return False


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc and a C++ compiler")
def test_nvcc_reads_host_code_and_instantiates_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "my.cu"
    text = (
        "#include <vector>\n#include <cstdio>\nnamespace own {\n"
        "template <int N> __global__ void f(float* x) { x[threadIdx.x] *= N; }\n}\n"
        'int main() { std::vector<float> v(3); own::f<3><<<1, 2>>>(v.data()); printf("%f", v[0]); }\n'
    )
    path.write_text(text)
    for entry, number in (("f<3>", 3), ("own::f<sizeof(double)>", 8)):  # launched in the file, and not
        found = program(text, entry, path, compiler="nvcc")
        assert found.symbol == f"_ZN3own1fILi{number}EEEvPf"
        assert {place.file for one in found.instructions for place in one.sources} == {str(path)}
    assert found.toolchain == compiler_versions("nvcc") and next(iter(found.toolchain)) == "nvcc"
    nvcc, nvrtc = (CudaKernel(text, path, "own::f<5>", (), compiler) for compiler in ("nvcc", "nvrtc"))
    assert cache_key(nvcc, "sm_80", {}) != cache_key(nvrtc, "sm_80", {})
    with pytest.raises(GemmsimError, match=r"nvcc cannot compile 'my.cu' for sm_80: .*my.cu.*\(7\): error"):
        program(text + "int broken = nothing;\n", "f<3>", path, compiler="nvcc")


def test_nvcc_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr("gemmsim.compile.nvcc.installed_files", lambda _: ())
    find_nvcc.cache_clear()
    try:
        with pytest.raises(GemmsimError, match=r"nvcc is neither on PATH nor installed: pip install 'gemmsim\[nvcc\]'"):
            compile_cuda(CudaKernel(KERNEL, SOURCE, None, (), "nvcc"), "sm_80")
    finally:
        find_nvcc.cache_clear()


@pytest.mark.skipif(not versions_of(("nvidia-cuda-crt",)), reason="needs nvidia-cuda-crt")
def test_headers_of_cuda_are_whole() -> None:
    text = (
        "#include <cooperative_groups.h>\n#include <cuda_fp8.h>\n#include <mma.h>\n#include <iostream>\n"
        "using namespace nvcuda;\n"
        "__global__ void f(const half* a, float* c) {\n"
        "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> one;\n"
        "  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> other;\n"
        "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;\n"
        "  wmma::fill_fragment(sum, 0.0f); wmma::load_matrix_sync(one, a, 16); wmma::load_matrix_sync(other, a, 16);\n"
        "  wmma::mma_sync(sum, one, other, sum); cooperative_groups::this_thread_block().sync();\n"
        "  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major); c[0] += float(__nv_fp8_e4m3(c[1]));\n"
        "}\n"
        'int main() { std::cout << "done"; }\n'
    )
    assert any(one.opcode == "HMMA" for one in program(text).instructions)


def test_instructions_of_one_architecture_alone_need_no_option() -> None:
    """ptxas takes wgmma for sm_90a only, and nothing older has it."""
    text = '__global__ void fence(float* x) { asm volatile("wgmma.fence.sync.aligned;"); x[threadIdx.x] = 1.0f; }'
    found = compile_kernel(CudaKernel(text, SOURCE), "sm_90", None)
    assert "WARPGROUP" in {instruction.opcode for instruction in found.instructions}
    with pytest.raises(GemmsimError, match=r"for sm_80: .* not supported on \.target 'sm_80'"):
        compile_kernel(CudaKernel(text, SOURCE), "sm_80", None)
