"""gemmsim decode: the kernels of a file, and launches of kernels in binaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from containers import Entry, elf, fatbin

from gemmsim.cli.main import main
from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda

SOURCE = """
namespace own {
template <int N> __global__ __launch_bounds__(N) void scale(float* x, float by, int) {
    __shared__ float kept[N];
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = kept[threadIdx.x ^ 1] * by;
}
template __global__ void scale<32>(float*, float, int);
template __global__ void scale<64>(float*, float, int);
}
__constant__ float table[8];
__device__ int counter = 3;
extern "C" __global__ void plain(double* x) { x[threadIdx.x] += table[1] + counter; }
"""
LAUNCH = ["--grid", "1", "--block", "64", "--arg", "f32[64]", "--arg", "f32=3", "--arg", "i32=0"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An executable with cubins for sm_80 and sm_86, in two fatbins of one section."""
    path = tmp_path_factory.mktemp("binaries") / "prog"
    cubins = {arch: compile_cuda(CudaKernel(SOURCE, path), f"sm_{arch}")[0] for arch in (80, 86)}
    section = b"".join(fatbin(Entry(cubin + bytes(-len(cubin) % 8), arch)) for arch, cubin in cubins.items())
    path.write_bytes(elf({".text": b"code", ".nv_fatbin": section}))
    return path


def decoded(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert main(["decode", *words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found: list[dict] = document["kernels"]
    return found


def test_every_kernel_of_every_architecture_is_listed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = decoded(capsys, str(program))
    assert sorted((one["arch"], one["name"]) for one in kernels) == [
        (arch, name)
        for arch in ("sm_80", "sm_86")
        for name in ("plain", "void own::scale<32>(float*, float, int)", "void own::scale<64>(float*, float, int)")
    ]
    (wide,) = (one for one in kernels if one["arch"] == "sm_86" and "64" in one["name"])
    assert wide["static_shared_bytes"] == 256 and wide["max_threads"] == 64
    assert wide["maximal_dynamic_shared_bytes"] == 99 * 1024 - 256  # CUDA programming guide: 99 KB a block on 8.6
    assert wide["parameters"] == [
        {"type": "float*", "offset_bytes": 0, "size_bytes": 8},
        {"type": "float", "offset_bytes": 8, "size_bytes": 4},
        {"type": "int", "offset_bytes": 12, "size_bytes": 4},
    ]
    (plain,) = (one for one in kernels if one["arch"] == "sm_86" and one["name"] == "plain")
    assert plain["variables"] == [
        {"name": "counter", "space": "global", "size_bytes": 4},
        {"name": "table", "space": "constant", "size_bytes": 32},
    ]
    assert wide["missing"] == [] and wide["problem"] == "" and wide["barriers"] == 1
    assert wide["origin"] == "the sm_86 cubin in prog" and "ptxas" in wide["toolchain"]


def test_a_gpu_gets_the_code_that_it_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = decoded(capsys, str(program), "--gpu", "rtx4090", "--entry", "scale")
    assert [(one["arch"], one["symbol"][:14]) for one in kernels] == [("sm_86", "_ZN3own5scaleI")] * 2
    assert main(["decode", str(program), "--gpu", "h200"]) == 2
    assert "'prog' holds no code for sm_90: without --gpu all of its kernels are listed" in capsys.readouterr().err


def test_a_source_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.cu"
    path.write_text(SOURCE)
    assert main(["decode", str(path), "--entry", "own::scale<64>"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{path}: 1 kernel, of which gemmsim executes 1\n")
    assert "missing     nothing: gemmsim executes it" in text
    assert all(len(line) <= 80 for line in text.splitlines()[1:])


@pytest.mark.parametrize("entry", ["own::scale<64>(float*, float, int)", "scale<64>", "Li64E"])
def test_a_kernel_of_a_program_is_launched(program: Path, entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["analyze", str(program), "--entry", entry, *LAUNCH, "--gpu", "rtx4090", "--format", "json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kernel"]["symbol"] == "_ZN3own5scaleILi64EEEvPffi" and report["kernel"]["arch"] == "sm_86"
    assert "the machine code is the sm_86 cubin in prog" in report["notes"]
    assert "ptxas" in report["versions"] and "nvidia-cuda-nvrtc" not in report["versions"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--entry", "scale"], "'scale' names 2 kernels of 'prog', say more of the name: void own::scale<"),
        ([], "'prog' holds 3 kernels, choose one as the entry (--entry): "),
        (["--entry", "skale"], "'prog' has no kernel 'skale' (did you mean 'scale'?); it holds: "),
        (
            ["--entry", "plain", "--gpu", "h200"],
            "'prog' holds no code for sm_90, only cubin for sm_80, cubin for sm_86",
        ),
    ],
)
def test_what_cannot_be_launched_is_said_in_one_line(
    program: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(program), *LAUNCH, *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


def test_a_python_function_is_not_decoded_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.py").write_text("")
    assert main(["decode", str(tmp_path / "my.py"), "--entry", "f"]) == 2
    assert "is compiled for the types of its arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (elf({".text": b"code"}), "the file holds no device code (no fatbin): was it compiled by nvcc?"),
        (fatbin(Entry(b"\x7fELF", 80))[:-1], "the fatbin is truncated"),
        (fatbin(Entry(b"\x7fELF" + bytes(60), 80)), "not a cubin"),
    ],
)
def test_a_file_without_code_is_named(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "no.cubin"
    file.write_bytes(content)
    for command in (["decode", str(file)], ["analyze", str(file), *LAUNCH]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: 'no.cubin': ") and error.count("\n") == 1
        assert said in error or "truncated or damaged" in error
