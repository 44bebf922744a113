"""Capturing: the library that is loaded into a program, called by a stand-in for CUPTI, and its bundle replayed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gemmsim_validate.capture.compare
import jsonschema
import numpy as np
import pytest
from cubins import cuda
from gemmsim_validate.capture import build as building
from gemmsim_validate.capture.bundle import Written, write_bundle
from gemmsim_validate.capture.compare import captured_section, compare, shown
from gemmsim_validate.capture.log import read_log
from gemmsim_validate.capture.owners import owner_of
from gemmsim_validate.capture.run import Options, capture
from gemmsim_validate.records.files import SCHEMA, cubin_name

from gemmsim import api
from gemmsim.cli.main import main
from gemmsim.compile import library_code
from gemmsim.compile.library_code import FOLDERS, section_sha256
from gemmsim.gpu import load_gpu
from gemmsim.launch.recorded import recorded_launch
from gemmsim.studies.baseline import BUNDLES
from gemmsim.support.errors import GemmsimError

HELPERS = Path(__file__).parents[1] / "helpers"
# Launched with p = 2048 bytes into an allocation of 4096 bytes, n = 5, and the allocation's address in a tensor map.
SOURCE = """
struct alignas(64) Map { const int *q; char rest[120]; };
extern "C" __global__ void add(int *p, int n, const __grid_constant__ Map map) {
    int i = blockIdx.x * 32 + threadIdx.x;
    p[i] = map.q[i] + n;
}
"""
MACHINE = SimpleNamespace(
    name="NVIDIA H200",
    capability=(9, 0),
    described={"device": "NVIDIA H200", "compute_capability": [9, 0], "driver": "580"},
)


def compiled(source: Path, target: Path, *options: str) -> Path:
    subprocess.run(["g++", "-std=c++17", "-w", str(source), "-o", str(target), *options], check=True)
    return target


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    """The bundle of the program in `fake_cupti.cpp`."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    try:
        headers, cupti = building._cupti()
    except GemmsimError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("capture")
    fake, includes = HELPERS / "fake_cupti.cpp", [f"-isystem{header}" for header in headers]
    name = next(line for line in ("libcupti.so.13", "libcupti.so.12", cupti.name) if (cupti.parent / line).exists())
    made = compiled(fake, folder / "fake.o", *includes, "-c", "-fPIC")
    stand_in = compiled(made, folder / name, "-shared")
    shutil.copy(stand_in, folder / "libcuda.so.1")
    program = compiled(made, folder / "program", str(stand_in), "-ldl", "-rdynamic")
    (folder / "add.cubin").write_bytes(cuda(SOURCE).cubin)
    (folder / "logs").mkdir()
    library = building.build(folder)
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(folder),
        "GEMMSIM_CAPTURE": str(folder / "logs"),
        "GEMMSIM_CAPTURE_CONTENTS": "4096",
    }
    subprocess.run([str(program), str(library), str(folder / "add.cubin"), "add"], env=environment, check=True)
    (log,) = (folder / "logs").iterdir()
    return folder / "bundle", write_bundle([read_log(log)], MACHINE, [1200.0, 1500.0, 1980.0], folder / "bundle")  # type: ignore[arg-type]


def test_the_launches_of_a_program_are_recorded_each_once(written: tuple[Path, Written]) -> None:
    first, second = written[1].records
    assert first["launch"]["grid"] == [4, 1, 1] and first["launch"]["dynamic_shared_bytes"] == 16
    assert "cluster" not in first["launch"] and second["launch"]["cluster"] == [2, 1, 1]
    # The first was launched as the first and the third of four calls, 100 and 300 ns long.
    assert first["time"]["activity"]["samples_us"] == [0.1, 0.3] and first["time"]["activity"]["median_us"] == 0.2
    assert written[1].notes == ("1 launches of CUDA graphs are not captured",)
    pointer, number, tensor_map = first["launch"]["parameters"]
    assert pointer == {"bytes": "00" * 8, "addresses": [{"at_byte": 0, "argument": 0, "plus_bytes": 2048}]}
    assert number == {"bytes": "05000000", "addresses": []}
    assert tensor_map == {"bytes": "00" * 128, "addresses": [{"at_byte": 0, "argument": 0, "plus_bytes": 0}]}


def test_its_records_are_those_of_the_schema(written: tuple[Path, Written]) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate({"schema_version": 2, "records": list(written[1].records)}, schema)


def test_a_recorded_launch_executes_the_code_on_the_memory_that_it_had(written: tuple[Path, Written]) -> None:
    counted = api.count(recorded_launch(f"{written[0]}#1", load_gpu("h200")))
    (memory,) = counted.execution.outputs
    assert memory is not None
    words = np.asarray(memory).view(np.int32)
    assert (words[512:640] == 0x07070707 + 5).all()  # 128 threads; each byte was 7 before
    assert (words[:512] == 0x07070707).all() and (words[640:] == 0x07070707).all()


def test_analyze_takes_it_and_nothing_that_it_brings(
    written: tuple[Path, Written], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", f"{written[0]}#2", "--gpu", "h200", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"]["name"] == "add"
    for words, said in (
        ((f"{written[0]}#3", "--gpu", "h200"), "the bundle has launches 1 to 2"),
        ((f"{written[0]}#1", "--gpu", "h200", "--grid", "4"), "--grid:"),
        ((f"{written[0]}#1", "--gpu", "a100"), "is machine code for sm_90: a100-80gb is sm_80"),
    ):
        assert main(["analyze", *words]) == 2
        assert said in capsys.readouterr().err


def library(folder: Path, version: str, cubin: bytes) -> None:
    """Install a wheel whose library holds a cubin."""
    info = folder / f"fake_blas-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-blas\nVersion: {version}\n")
    (info / "RECORD").write_text("fake/libfake.so.1,,\n")
    (folder / "fake").mkdir()
    (folder / "fake/libfake.so.1").write_bytes(cubin)


def bundle_of(folder: Path, cubin: bytes, code: dict[str, str] | None) -> None:
    subject = {"symbol": "add", "abi": "c", "arch": "sm_90", "cubin_sha256": hashlib.sha256(cubin).hexdigest()}
    launch: dict[str, Any] = {"grid": [1, 1, 1], "block": [32, 1, 1], "arguments": ["memory0"]}
    launch["zeros"] = {"memory0": {"dtype": "u8", "shape": [4096]}}
    place = {"bytes": "00" * 8, "addresses": [{"at_byte": 0, "argument": 0, "plus_bytes": 0}]}
    launch["parameters"] = [place, {"bytes": "05000000", "addresses": []}, {**place, "bytes": "00" * 128}]
    record = {"subject": subject | ({"code_in": code} if code else {}), "launch": launch}
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"version": 1, "cases": [record]}))


def test_the_code_of_a_library_is_found_in_its_wheel_by_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "cache"))
    cubin, gpu = cuda(SOURCE).cubin, load_gpu("h200")
    code = {"file": "libfake.so.1", "package": "fake-blas", "version": "1.2"}
    bundle_of(tmp_path / "bundle", cubin, code | {"section_sha256": section_sha256(cubin, "add")})
    bundle_of(tmp_path / "other", cubin, code | {"section_sha256": "0" * 64})
    with pytest.raises(GemmsimError, match=r"libfake.so.1 of fake-blas 1.2: pip install fake-blas==1.2"):
        recorded_launch(f"{tmp_path}/bundle#1", gpu)
    library(tmp_path / "old", "1.1", cubin)
    monkeypatch.setenv(FOLDERS, str(tmp_path / "old"))
    with pytest.raises(GemmsimError, match=r"fake-blas 1.2; 1.1 is installed"):
        recorded_launch(f"{tmp_path}/bundle#1", gpu)
    library(tmp_path / "new", "1.2", cubin)
    monkeypatch.setenv(FOLDERS, f"{tmp_path}/old{os.pathsep}{tmp_path}/new")
    with pytest.raises(GemmsimError, match="does not hold the captured code of add"):
        recorded_launch(f"{tmp_path}/other#1", gpu)
    spec = recorded_launch(f"{tmp_path}/bundle#1", gpu)
    (memory,) = api.count(spec).execution.outputs
    assert memory is not None and (np.asarray(memory).view(np.int32)[:32] == 5).all()


def test_code_that_a_library_compresses_elsewhere_is_found_too(tmp_path: Path) -> None:
    """cuBLAS keeps most of its kernels in data of its own. Here a frame of zstd stands behind bytes that look like one,
    and the fatbin holds another kernel."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    zstandard = pytest.importorskip("zstandard")
    cubin, other = cuda(SOURCE).cubin, cuda(SOURCE.replace("+ n", "- n")).cubin
    entry = struct.pack("<HHIQIIIIIIQQQ", 2, 0x101, 64, len(other), 0, 0, 0, 90, 0, 0, 0, 0, 0) + other
    (tmp_path / "fatbin").write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry)
    (tmp_path / "data").write_bytes(bytes.fromhex("28b52ffd") * 2 + b"-" + zstandard.compress(cubin) + b"behind it")
    (tmp_path / "library.cpp").write_text(
        f'''asm(".section .held,\\"a\\"\\n.incbin \\"{tmp_path}/data\\"\\n"
        ".section .nv_fatbin,\\"a\\"\\n.incbin \\"{tmp_path}/fatbin\\"\\n.previous");'''
    )
    held = compiled(tmp_path / "library.cpp", tmp_path / "library.so", "-shared", "-fPIC").read_bytes()
    assert [len(one) for one in library_code._cubins(held, "sm_90")] == [len(other), len(cubin)]
    assert list(library_code._cubins(held, "sm_80")) == [cubin]  # what is found elsewhere does not say what it is for


def test_launches_are_set_beside_what_was_measured(tmp_path: Path) -> None:
    cubin = cuda(SOURCE).cubin
    bundle_of(tmp_path / "bundle", cubin, None)
    data = json.loads((tmp_path / "bundle/manifest.json").read_text())
    first = data["cases"][0]
    first["subject"]["name"] = "add"
    other = {**first, "subject": {**first["subject"], "cubin_sha256": "0" * 64, "name": "gone"}}
    first["problem"] = {"dtype": "f32", "m": 1, "n": 2, "k": 3}
    first["counters"] = {"smsp__inst_executed.sum": 1}
    first["time"] = {"activity": {"median_us": 4.0, "samples": 20}}
    (tmp_path / "bundle/manifest.json").write_text(json.dumps(data | {"cases": [first, other]}))
    (tmp_path / f"bundle/{cubin_name(first['subject']['cubin_sha256'])}").write_bytes(cubin)
    one, gone = compare(tmp_path / "bundle", "h200", lambda _: True)
    evidence = api.analyze(
        replace(recorded_launch(f"{tmp_path}/bundle#1", load_gpu("h200")), warm_caches=True)
    ).evidence
    launch = evidence.gpu.launch
    us = evidence.timing.duration_us - launch.overhead_us + launch.activity_overhead_us
    assert one.instructions == (sum(evidence.executed), 1) and one.time_us == (pytest.approx(us), 4.0)
    assert one.error_pct == pytest.approx(100 * (us / 4 - 1))
    assert gone.error.startswith("cannot read") and gone.error_pct is None
    section = captured_section([one, gone], "title")
    assert section.text == (
        f"2 launches, 1 predicted. Times are off by {abs(one.error_pct):.1f} % on average, "
        f"{abs(one.error_pct):.1f} % in the median.",
    )
    assert section.table is not None and [row[1:3] for row in section.table.rows] == [
        ("f32 1x2x3", "add"),
        ("", "gone"),
    ]
    assert [one.number for one in compare(tmp_path / "bundle", "h200", lambda text: text == "f32 1x2x3")] == [1]


def test_the_bundle_of_cublas_names_code_and_holds_none() -> None:
    folder = BUNDLES / "h200_cublas"
    records = json.loads((folder / "manifest.json").read_text())["cases"]
    jsonschema.validate({"schema_version": 2, "records": records}, json.loads(SCHEMA.read_text()))
    assert [one.name for one in folder.iterdir()] == ["manifest.json"]
    assert {(one["subject"]["code_in"]["file"], one["subject"]["code_in"]["version"]) for one in records} == {
        ("libcublasLt.so.13", "13.1.0.3")
    }
    assert len({shown(one)[0] for one in records}) == 70  # seven types, ten sizes


@pytest.mark.parametrize("problem", ["f32 512x512x512", "tf32 1024x1024x1024", "i8 256x256x256"])
def test_cublas_executes_as_many_instructions_as_on_the_gpu(problem: str) -> None:
    """Kernels with wgmma wait in loops, so that the number is not the same each time. It needs cuBLAS's wheel."""
    folder = BUNDLES / "h200_cublas"
    found = list(compare(folder, "h200", lambda text: text == problem))
    if found[0].error:
        assert "pip install nvidia-cublas==13.1.0.3" in found[0].error
        pytest.skip(found[0].error)
    for one in found:
        predicted, measured = one.instructions
        assert predicted == measured if problem[0] != "t" else predicted == pytest.approx(measured, rel=0.002)
        assert one.error_pct is not None and abs(one.error_pct) < 25


def test_whose_code_a_kernel_is(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    site = tmp_path / "site-packages"
    library(site, "1.2", b"")
    (tmp_path / "code.cpp").write_text('__attribute__((section(".nv_fatbin"))) int code = 1;')
    (tmp_path / "none.cpp").write_text("int code = 1;")
    held = site / "fake/libfake.so.1"
    compiled(tmp_path / "code.cpp", held, "-shared", "-fPIC")
    bindings = compiled(tmp_path / "none.cpp", site / "bindings.so", "-shared", "-fPIC")
    own = compiled(tmp_path / "code.cpp", tmp_path / "libcode.so", "-shared", "-fPIC")
    runtime, python = str(site / "libcudart.so.13"), "/usr/bin/python3"
    found = owner_of([runtime, str(held), python])
    assert found is not None and (found.file, found.package, found.version) == ("libfake.so.1", "fake-blas", "1.2")
    assert owner_of([str(bindings), str(held), python]) is None  # what compiled a moment ago is launched by bindings
    assert owner_of([runtime, str(own)]) is None  # a library that no wheel installed is the user's own
    assert owner_of([python]) is None


def test_without_a_gpu_one_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(GemmsimError, match="capturing needs a machine with an NVIDIA GPU"):
        capture(["true"], tmp_path / "new", Options())
    (tmp_path / "file").touch()
    with pytest.raises(GemmsimError, match="is not empty: give a new folder"):
        capture(["true"], tmp_path, Options())


@pytest.mark.slow
@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_the_best_configuration_of_tritons_matmul_is_found(size: int) -> None:
    """The tutorial's eleven configurations that an H200 can launch, with the code that Triton 3.6 made there: what is
    predicted to be best took at most 5 % longer than what was."""
    folder = Path(gemmsim_validate.capture.compare.__file__).with_name("h200_triton")
    found = list(compare(folder, "h200", lambda text: text == f"f16 {size}x{size}x{size}"))
    assert len(found) == 11 and not any(one.error for one in found)
    measured = {one.number: one.time_us[1] or 0.0 for one in found}
    chosen = min(found, key=lambda one: one.time_us[0]).number
    assert measured[chosen] <= 1.05 * min(measured.values())
