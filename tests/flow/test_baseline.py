"""compare --baseline: the launches of a bundle beside rungs, predicted and as they were measured."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cubins import cuda

import gemmsim
from gemmsim.cli.main import main
from gemmsim.compile.library_code import FOLDERS, section_sha256
from gemmsim.gpu import load_gpu
from gemmsim.report.studies import comparison_data
from gemmsim.studies.baseline import BUNDLES, find_bundle
from gemmsim.support.errors import GemmsimError

# C = A B of 64 x 64, the loop over K in two launches: the second adds to what the first stored.
SOURCE = """
extern "C" __global__ void half_of_k(const float *a, const float *b, float *c, int from) {
    int row = blockIdx.x, column = threadIdx.x;
    float sum = from ? c[row * 64 + column] : 0.0f;
    for (int k = from; k < from + 32; k++) sum += a[row * 64 + k] * b[k * 64 + column];
    c[row * 64 + column] = sum;
}
"""
SMALL = ["compare", "--size", "64", "--kernel", "naive", "--kernel", "tiled", "--jobs", "1", "--gpu", "h200"]


def record(begin: int, median_us: float, cubin: bytes) -> dict[str, Any]:
    places = [{"bytes": "00" * 8, "addresses": [{"at_byte": 0, "argument": one, "plus_bytes": 0}]} for one in range(3)]
    names = ["memory0", "memory1", "memory2"]
    return {
        "gpu": "h200",
        "subject": {
            "name": f"half_from_{begin}",
            "symbol": "half_of_k",
            "abi": "c",
            "arch": "sm_90",
            "cubin_sha256": hashlib.sha256(cubin).hexdigest(),
        },
        "problem": {"m": 64, "n": 64, "k": 64, "dtype": "f32", "result_dtype": "f32"},
        "launch": {
            "grid": [64, 1, 1],
            "block": [64, 1, 1],
            "arguments": names,
            "zeros": {name: {"dtype": "u8", "shape": [4 * 64 * 64]} for name in names},
            "parameters": [*places, {"bytes": begin.to_bytes(4, "little").hex(), "addresses": []}],
        },
        "machine": {"device": "NVIDIA H200"},
        "time": {"activity": {"median_us": median_us, "samples": 23}},
    }


def bundle(folder: Path, change: dict[str, Any] | None = None) -> Path:
    """Write a bundle of two launches; `change` replaces entries of both records, None removes one."""
    cubin = cuda(SOURCE).cubin
    records = [record(0, 2.0, cubin) | (change or {}), record(32, 3.5, cubin) | (change or {})]
    records = [{key: value for key, value in one.items() if value is not None} for one in records]
    folder.mkdir()
    (folder / f"{hashlib.sha256(cubin).hexdigest()[:16]}.cubin").write_bytes(cubin)
    (folder / "manifest.json").write_text(json.dumps({"version": 1, "cases": records}))
    return folder


def data(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main([*args, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_it_is_predicted_as_the_rungs_are_and_measured_on_its_own_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bundle(tmp_path / "bundle")
    found = data(capsys, *SMALL, "--baseline", str(folder))
    schema = Path(comparison_data.__file__).parents[1] / "comparison.schema.json"
    jsonschema.validate(found, json.loads(schema.read_text()))
    ((one,),) = (group["baselines"] for group in found["groups"])
    # Each launch by itself; the second finds what the first left in L2.
    first = data(capsys, "analyze", f"{folder}#1", "--gpu", "h200")["time"]["us"]
    second = data(capsys, "analyze", f"{folder}#2", "--gpu", "h200", "--caches", "warm")["time"]["us"]
    assert one["predicted_us"] == first + second
    overhead = load_gpu("h200").launch.overhead_us
    assert one["predicted_kernel_us"] == pytest.approx(first + second - 2 * overhead)
    assert one["measured_kernel_us"] == 5.5 and one["kernels"] == ["half_from_0", "half_from_32"]
    assert one["measured_tflops"] == pytest.approx(2 * 64**3 / 5.5e-6 / 1e12)
    assert found["groups"][0]["rows"] == data(capsys, *SMALL)["groups"][0]["rows"]


def test_the_text_says_which_is_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = bundle(tmp_path / "bundle")
    assert main([*SMALL, "--baseline", str(folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("M=64 N=64 K=64: predicted, but what is called measured; caches cold")
    flat = " ".join(text.split())
    assert "bundle, predicted" in flat and "bundle, measured 5.5 us" in flat
    assert "half_from_0 and half_from_32 on an NVIDIA H200, median of 23 in a row with L2 warm" in flat
    assert main([*SMALL, "--baseline", str(folder), "--format", "md"]) == 0
    assert "| bundle, measured | 5.5 us | 0.10 |" in capsys.readouterr().out
    assert main([*SMALL, "--baseline", str(folder), "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and sum("half_from_0 + half_from_32" in line for line in lines) == 2


def test_on_another_gpu_it_is_predicted_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = bundle(tmp_path / "bundle")
    for options in (["--gpu", "h100"], ["--set", "l2.size=25MiB"]):  # the H200 of --set is none that was measured
        found = data(capsys, *SMALL, *options, "--baseline", str(folder))
        (one,) = found["groups"][0]["baselines"]
        assert one["measured_kernel_us"] is None and one["predicted_us"] > 0
    assert main([*SMALL, "--gpu", "a100", "--baseline", str(folder)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "predicted, not measured" in out and "is machine code for sm_90: a100-80gb is sm_80" in out


def test_gpus_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = bundle(tmp_path / "bundle")
    words = ["compare", "--size", "64", "--kernel", "tiled", "--gpus", "h200,h100", "--jobs", "1"]
    (group,) = data(capsys, *words, "--baseline", str(folder))["groups"]
    assert [(one["gpu"], one["measured_kernel_us"]) for one in group["baselines"]] == [("h200", 5.5), ("h100", None)]
    assert main([*words, "--baseline", str(folder)]) == 0
    assert "bundle h100, predicted" in capsys.readouterr().out


def test_without_the_library_the_measured_time_stands_and_a_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(FOLDERS, "")
    cubin = cuda(SOURCE).cubin
    code = {"file": "libfake.so.1", "package": "fake-blas", "version": "1.2"}
    subject = record(0, 2.0, cubin)["subject"] | {
        "code_in": code | {"section_sha256": section_sha256(cubin, "half_of_k")}
    }
    folder = bundle(tmp_path / "bundle", {"subject": subject})
    assert main([*SMALL, "--baseline", str(folder)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "bundle, predicted" not in out and "bundle, measured 5.5 us" in out
    assert "f32: the kernel's code is in libfake.so.1 of fake-blas 1.2: pip install fake-blas==1.2" in out


def test_launches_of_ones_own_are_named_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A captured bundle says nothing of what its kernels compute. What they do most tells where they belong."""
    folder = bundle(tmp_path / "bundle", {"problem": None})
    found = data(capsys, *SMALL, "--kernel", "dgemm", "--baseline", f"{folder}#2")
    single, double = found["groups"]
    assert [one["measured_kernel_us"] for one in single["baselines"]] == [3.5] and double["baselines"] == []
    assert main(["compare", "--size", "64", "--kernel", "dgemm", "--gpu", "h200", "--baseline", f"{folder}#2"]) == 0
    assert "nothing compared computes in fp32 arithmetic" in " ".join(capsys.readouterr().out.split())


def test_what_has_no_launch_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, own = bundle(tmp_path / "bundle"), bundle(tmp_path / "own", {"problem": None})
    assert main([*SMALL, "--kernel", "dgemm", "--baseline", str(folder)]) == 0
    assert "it has no launch of f64 at this size, but of f32" in " ".join(capsys.readouterr().out.split())
    for size, baseline, message in (
        ("32", str(folder), "has no launch of 32: it has 64"),
        ("64", str(own), "its records name no problem; say which launches"),
        ("64", f"{folder}#1,3", "the bundle has launches 1 to 2, not 3"),
        ("64", "cublass", "that is no bundle of `gemmsim-validate capture`; known by name: cublas"),
        ("5000", "cublas", "has no launch of 5000: it has 256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 4096x512x4096"),
    ):
        assert main(["compare", "--size", size, "--kernel", "naive", "--baseline", baseline]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("error: ") and message in err and err.count("\n") == 1


def test_cublas_is_known_by_name() -> None:
    found = find_bundle("cublas")
    assert found.folder == BUNDLES / "h200_cublas" and len(found.records) == 74
    assert found.solving((256, 256, 256), "f32") == (1, 2)  # split in K, and a reduction
    assert found.solving((4096, 512, 4096), "tf32") == (23,)
    assert found.kinds((8192, 8192, 8192)) == "f32, tf32, f16, bf16, e4m3, i8, f64"
    with pytest.raises(GemmsimError, match="it has 256, 512"):
        found.check_size((256, 256, 512))


def test_from_python(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "bundle")
    found = gemmsim.compare(["naive"], gpu="h200", size=64, baseline=str(folder))
    assert found.value.groups[0].baselines[0].measured_us == 5.5
    assert [row["name"] for row in comparison_data.rows(found.value)] == [
        "naive",
        "bundle, predicted",
        "bundle, measured",
    ]
