"""Resources, parameters, constants, source lines and damage: what is read from a cubin."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from cubins import EACH, ZOO, cuda, zoo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmsim.compile import toolchain
from gemmsim.compile.decode import decode_cubin
from gemmsim.compile.elf import read_cubin
from gemmsim.compile.names import is_numba_symbol, readable_name
from gemmsim.isa.program import Program, SourceLine
from gemmsim.support.errors import GemmsimError

TWO = """
__device__ int counter = 5;
extern "C" __global__ void first(int* a) { a[threadIdx.x] = atomicAdd(&counter, 1); }
extern "C" __global__ void second(char c, double d, short s, float* f) { f[0] = c + d + s; }
template <int N> __global__ void many(int* a) { a[0] = N; }
template __global__ void many<1>(int*);
template __global__ void many<2>(int*);
"""


def ptxas_report(arch: str) -> dict[str, int]:
    """What ptxas says of the zoo: another reader of the same compilation."""
    from cuda.bindings import nvrtc

    options = [f"-arch={arch}", "--ptxas-options=-v", "-lineinfo"]
    options += [f"-I{folder}" for folder in toolchain.header_folders()]
    _, program = nvrtc.nvrtcCreateProgram(ZOO.read_bytes(), b"zoo.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    used = next(line for line in log.decode().splitlines() if "Used" in line)
    found = {name: int(number) for number, name in re.findall(r"(\d+) (registers|barriers|bytes smem)", used)}
    stack = re.search(r"(\d+) bytes cumulative stack size", used)
    return found | {"stack": int(stack[1]) if stack else 0}


@pytest.mark.parametrize("arch", EACH)
def test_architecture_is_read_from_the_file(arch: str) -> None:
    assert zoo(arch).program.arch == arch


def test_architecture_of_an_older_abi() -> None:
    """Up to CUDA 12, ABI version 7 had the SM version in the lowest byte of e_flags (at 0x30; the version at 8)."""
    cubin = bytearray(zoo("sm_86").cubin)
    cubin[8] = 7
    struct.pack_into("<I", cubin, 0x30, 0x00560556)
    assert read_cubin(bytes(cubin)).arch == "sm_86"
    struct.pack_into("<I", cubin, 0x30, 0x00460546)
    with pytest.raises(GemmsimError, match="the cubin is for sm_70; gemmsim reads sm_75 and later"):
        read_cubin(bytes(cubin))


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100", "sm_120"])
def test_resources_equal_what_ptxas_reports(arch: str) -> None:
    program = zoo(arch).program
    said = ptxas_report(arch)
    assert program.registers == said["registers"]
    assert program.barriers == said["barriers"] == 1
    assert program.static_shared_bytes == said["bytes smem"]
    assert program.local_bytes == said["stack"] >= 64 * 4  # the kernel's local array
    assert program.max_threads == 128
    assert program.reserved_shared_bytes == (1024 if arch in ("sm_90", "sm_100", "sm_120") else 0)


@pytest.mark.parametrize("arch", EACH)
def test_parameters_lie_where_c_puts_them(arch: str) -> None:
    # six pointers, struct { int[70]; float } of 284 bytes aligned to 4, int
    parameters = zoo(arch).program.parameters
    assert [one.size_bytes for one in parameters] == [8] * 6 + [284, 4]
    assert [one.offset_bytes for one in parameters] == [0, 8, 16, 24, 32, 40, 48, 332]
    assert [one.ordinal for one in parameters] == list(range(8))
    assert zoo(arch).program.parameter_base == {"sm_90": 0x210, "sm_100": 0x380, "sm_120": 0x380}.get(arch, 0x160)


def test_small_parameters_are_aligned() -> None:
    program = decode_cubin(cuda(TWO, entry="second").cubin, "second")
    assert [(one.offset_bytes, one.size_bytes) for one in program.parameters] == [(0, 1), (8, 8), (16, 2), (24, 8)]


@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_constants_and_device_globals(arch: str) -> None:
    text = '__device__ int counter = 5; extern "C" __global__ void k(int* a) { *a = atomicAdd(&counter, 1); }'
    program = cuda(text, arch).program
    (relocation,) = program.relocations
    assert relocation.bank == 4
    assert struct.unpack_from("<i", program.global_data, relocation.addend_bytes) == (5,)
    text = '__constant__ float t[3] = {1, 2, 4}; extern "C" __global__ void k(float* o, int i) { *o = t[i]; }'
    filled = cuda(text, arch)
    assert struct.unpack("<3f", filled.program.constants[3]) == (1, 2, 4)


def test_encodings_are_those_of_the_file() -> None:
    entry = zoo("sm_90")
    words = b"".join(one.encoding.to_bytes(16, "little") for one in entry.program.instructions)
    assert words in entry.cubin
    assert [one.offset for one in entry.program.instructions] == list(range(0, len(words), 16))


def test_source_lines_carry_inlining_innermost_first() -> None:
    program = zoo("sm_90").program
    text = ZOO.read_text().splitlines()
    chain = {name: 1 + next(n for n, line in enumerate(text) if key in line) for name, key in {
        "inner": "float inner", "outer": "float outer", "call": "outer(f, n)",
    }.items()}  # fmt: skip
    expected = tuple(SourceLine(str(ZOO), chain[name]) for name in ("inner", "outer", "call"))
    assert expected in {one.sources for one in program.instructions if one.opcode in ("LDG", "FADD", "FFMA")}
    assert program.source[str(ZOO)] == ZOO.read_text()


def test_entry_selection() -> None:
    cubin = cuda(TWO, entry="first").cubin
    assert decode_cubin(cubin, "second").name == "second"
    assert decode_cubin(cubin, "_Z4manyILi2EEvPi").name == "many"
    with pytest.raises(GemmsimError, match=r"holds 4 kernels, choose one as the entry \(--entry\): .*first.*"):
        decode_cubin(cubin)
    with pytest.raises(GemmsimError, match=r"no kernel 'frist' \(did you mean 'first'\?\); it holds: "):
        decode_cubin(cubin, "frist")
    with pytest.raises(GemmsimError, match="'many' names 2 kernels of the cubin, say more of the name: void many"):
        decode_cubin(cubin, "many")
    with pytest.raises(GemmsimError, match="is for sm_90, but the GPU asked for is sm_80: compile it for sm_80"):
        decode_cubin(cubin, "first", arch="sm_80")


@pytest.mark.parametrize(
    ("symbol", "name", "numba"),
    [
        ("zoo", "zoo", False),
        ("_Z5sgemmILi32EEvPKfPfi", "sgemm", False),
        ("_ZN4mine5sgemmILi2EEEvPf", "sgemm", False),
        ("_ZZ1kPfE13local_counter", "local_counter", False),
        ("_ZZN2ns1kILi4EEEvPfE4E12x", "E12x", False),
        ("_ZN1k11plain_tiledB3v11B128cw51cXTLSUwv1sDUaKthqaNgoKmjg", "plain_tiled", True),
        ("_ZN15gemmsim_kernels5tiled5build12_3clocals_3e5tiledB2v1B96cw51cX", "tiled", True),
    ],
)
def test_names(symbol: str, name: str, numba: bool) -> None:
    assert readable_name(symbol) == name
    assert is_numba_symbol(symbol) is numba


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a cubin"),
        (b"hello", "not a cubin"),
        (b"\x7fELF", "truncated or damaged"),
        (b"\x7fELF\x02\x01\x01" + bytes(57), "not a cubin|truncated or damaged"),
    ],
)
def test_what_is_no_cubin(data: bytes, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        decode_cubin(data)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_truncation_is_one_clear_line(data: st.DataObject) -> None:
    cubin = cuda(TWO, entry="first").cubin
    cut = data.draw(st.integers(0, len(cubin) - 1))
    with pytest.raises(GemmsimError) as caught:
        read_cubin(cubin[:cut])
    assert "\n" not in str(caught.value)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damage_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    cubin = bytearray(cuda(TWO, entry="first").cubin)
    for _ in range(data.draw(st.integers(1, 8))):
        cubin[data.draw(st.integers(0, len(cubin) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_cubin(bytes(cubin))
    except GemmsimError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most of what comes out is read without an error


def test_without_nvdisasm(monkeypatch: pytest.MonkeyPatch) -> None:
    cubin = cuda(TWO, entry="first").cubin
    monkeypatch.setattr(toolchain, "installed_files", lambda package: [])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GemmsimError, match=r"^nvdisasm is not installed, .* pip install .*nvidia-cuda-nvdisasm"):
        decode_cubin(cubin, "first")


def test_nvdisasm_from_path(monkeypatch: pytest.MonkeyPatch) -> None:
    cubin = cuda(TWO, entry="first").cubin
    folder = toolchain.find_nvdisasm().parent
    monkeypatch.setattr(toolchain, "installed_files", lambda package: [])
    monkeypatch.setenv("PATH", str(folder))
    assert isinstance(decode_cubin(cubin, "first"), Program)


def test_nvdisasm_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "nvdisasm"
    broken.write_text("#!/bin/sh\necho 'nvdisasm fatal: no such thing' >&2\nexit 1\n")
    monkeypatch.setattr(toolchain, "find_nvdisasm", lambda: broken)
    with pytest.raises(GemmsimError, match="cannot start"):
        decode_cubin(cuda(TWO, entry="first").cubin, "first")
    broken.chmod(0o755)
    with pytest.raises(GemmsimError, match="nvdisasm cannot read the cubin: nvdisasm fatal: no such thing"):
        decode_cubin(cuda(TWO, entry="first").cubin, "first")
