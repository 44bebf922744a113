"""Where accesses from one shared array into the next cannot be looked for, `--sanitize` says so, and why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import gemmsim
from gemmsim.api import sanitize
from gemmsim.cli.main import main
from gemmsim.compile import CudaKernel, python_kernel
from gemmsim.compile.apart import program_apart
from gemmsim.compile.kernel import build_kernel
from gemmsim.compile.shared_structs import shared_structs
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.support.errors import GemmsimError

SOURCE = Path(__file__).parents[1] / "sources" / "apart.cu"
SCHEMA = json.loads((Path(gemmsim.__file__).parent / "report" / "report.schema.json").read_text())
NOT_LOOKED = "sanitizer: accesses from one shared array into the next were not looked for"
LAUNCH = ("--grid", "1", "--block", "64", "--arg", "f32[128]", "--arg", "f32[64]=0", "--gpu", "h200", "--sanitize")


def cuda(entry: str, source: Path = SOURCE) -> CudaKernel:
    return CudaKernel(source.read_text(), source, entry)


def notes(target: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """The notes of a report as JSON that follow from the sanitizer."""
    main(["analyze", str(target), *LAUNCH, *more, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMA)
    found = [note for note in report["notes"] if note.startswith("sanitizer: ")]
    assert report["sanitizer"]["notes"] == found
    return found


def test_where_it_is_looked_for_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert notes(SOURCE, capsys, "--entry", "two_arrays") == []


def test_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    """6,144 and 6,140 floats have 49,136 bytes; 16 of 49,152 are left, and three gaps of 16 are the least."""
    said = f"{NOT_LOOKED}: arrays of 49,136 bytes leave no room for gaps in 48 KiB"
    assert notes(SOURCE, capsys, "--entry", "no_room") == [said]


def test_dynamic_shared_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """Alone, and beside static arrays, which are looked at."""
    said = f"{NOT_LOOKED}: to the compiler dynamic shared memory is one array"
    assert notes(SOURCE, capsys, "--entry", "dynamic", "--shared", "256") == [said]
    said = f"{NOT_LOOKED} within dynamic shared memory, to the compiler one array"
    assert notes(SOURCE, capsys, "--entry", "two_arrays", "--shared", "256") == [said]


def test_a_struct(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiles.cu"
    path.write_text(SOURCE.read_text().replace("__shared__ float a[64], b[64];", "__shared__ Tiles s;", 1)
                    .replace("a[t] =", "s.a[t] =", 1).replace("b[t] =", "s.b[t] =", 1)
                    .replace("a[63 - t] + b[63 - t]", "s.a[63 - t] + s.b[63 - t]", 1))  # fmt: skip
    said = f"{NOT_LOOKED} within the struct Tiles, to the compiler one array"
    assert notes(path, capsys, "--entry", "two_arrays") == [said]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ("struct S { float a[4]; }; __shared__ S s;", ("S",)),
        ("template <int N> struct S { float a[N]; }; __shared__ __align__(16) S<4> s, t;", ("S",)),
        ("typedef struct { float a[4]; } S; __shared__ alignas(16) S s[2];", ("S",)),
        ("__shared__ union { float a; int b; } s;", ("without a name",)),
        ("struct S {}; __shared__ struct S s;", ("S",)),
        ("enum class S { one }; __shared__ S s;", ()),
        ("struct S {}; extern __shared__ S s[]; // __shared__ S t;", ()),
        ("struct s {}; __shared__ float s[4];", ()),
    ],
)
def test_structs_in_source_text(declared: str, found: tuple[str, ...]) -> None:
    assert shared_structs(CudaKernel(declared, Path("s.cu"))) == found


def test_machine_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not of a kernel without shared memory. `check` and the text of `analyze` say it too."""
    path = tmp_path / "arrays.cubin"
    path.write_bytes(build_kernel(cuda("two_arrays"), "sm_90").cubin)
    said = f"{NOT_LOOKED}: machine code does not say which array an access is meant for"
    assert notes(path, capsys, "--entry", "two_arrays") == [said]
    assert notes(path, capsys, "--entry", "none") == []
    assert main(["analyze", str(path), *LAUNCH, "--entry", "two_arrays"]) == 0
    text = capsys.readouterr().out
    assert said in " ".join(text.split()) and max(map(len, text.splitlines())) <= 80
    assert main(["check", str(path), *LAUNCH, "--entry", "two_arrays"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_launch_that_would_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no report: the findings alone say it. x[t + 64] is outside of x."""
    path = tmp_path / "arrays.cubin"
    path.write_bytes(build_kernel(cuda("two_arrays"), "sm_90").cubin)
    short = [one.replace("f32[128]", "f32[64]") for one in LAUNCH]
    assert main(["analyze", str(path), *short, "--entry", "two_arrays"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("out of bounds") and f"{NOT_LOOKED}: machine code" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert main(["analyze", str(path), *short, "--entry", "two_arrays", "--format", "json"]) == 1
    outcome = json.loads(capsys.readouterr().out)["sanitizer"]
    jsonschema.validate(outcome, SCHEMA["properties"]["sanitizer"])
    assert len(outcome["notes"]) == 1


def test_nvcc() -> None:
    """Without nvcc, which need not be installed."""
    source = cuda("two_arrays")
    built = build_kernel(source, "sm_90")
    with pytest.raises(GemmsimError, match="not what nvcc does"):
        program_apart(replace(source, compiler="nvcc"), built.program, None)


def test_a_missing_toolchain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rung ships compiled, and numba is needed to compile it once more."""
    pytest.importorskip("numba_cuda")
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(python_kernel, "tool_versions", dict)
    (note,) = sanitize(ladder_launch(LadderCase("tiled", 32, 32, 32), load_gpu("h200"))).notes
    assert note.startswith(f"{NOT_LOOKED}: numba-cuda is not installed")
