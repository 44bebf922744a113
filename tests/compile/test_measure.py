"""Measuring, with a GPU that is none: parameters, plans of samples, resuming, failures, and a stand-in for ncu."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from fake_gpu import LAUNCH_US, FakeGpu
from gemmsim_validate.gpu_files.device import preset_of
from gemmsim_validate.measure import timing
from gemmsim_validate.measure.bundle import Bundle, read_bundle
from gemmsim_validate.measure.dispatcher import machine_code
from gemmsim_validate.measure.operands import check, host_operands, packed_parameter, parameters
from gemmsim_validate.measure.options import Options
from gemmsim_validate.measure.prepare import prepare
from gemmsim_validate.measure.run import launch_once, measure
from gemmsim_validate.measure.spec import Spec, case_id, parse_spec
from gemmsim_validate.ncu.profile import Profiler, profile
from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.files import SCHEMA, read_records
from gemmsim_validate.records.store import store

from gemmsim.launch.tensor_maps import MapFields, read, written
from gemmsim.support.errors import GemmsimError

TIMES_ONLY = Options(no_counters=True, samples=20)
PROBLEM = {"m": 3, "n": 5, "k": 4, "dtype": "f32", "result_dtype": "f32"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("bundle")
    specs = [spec for text in ("tiled:tile=8@64,40x24x16t", "coalesced@48") for spec in parse_spec(text)]
    return prepare(specs, "sm_90", "h200", folder)


def test_specs() -> None:
    assert parse_spec("tiled@256,40x50x60t") == [
        Spec("tiled", 256, 256, 256),
        Spec("tiled", 40, 50, 60, counters=False),
    ]
    assert parse_spec("x:f64:a=1,b=2@7") == [Spec("x", 7, 7, 7, "f64", {"a": 1, "b": 2})]
    assert case_id("x", "f64", {"a": 1, "b": 2}, 7, 8, 9) == "x-f64-a=1,b=2-7x8x9"
    for wrong in ("tiled", "@5", "tiled@", "tiled@0", "tiled@5x6", "tiled:tile=x@5", "tiled@5x6xt"):
        with pytest.raises(GemmsimError, match=r"tiled|@5"):
            parse_spec(wrong)


def test_a_bundle_is_read_as_it_was_written(bundle: Bundle, tmp_path: Path) -> None:
    again = read_bundle(bundle.folder)
    assert again == bundle
    assert [case["id"] for case in again.cases] == [
        "tiled-f32-tile=8-40x24x16", "coalesced-f32-48x48x48", "tiled-f32-tile=8-64x64x64",
    ]  # fmt: skip
    assert again.counters_wanted == {"coalesced-f32-48x48x48", "tiled-f32-tile=8-64x64x64"}
    sha256 = again.cases[0]["subject"]["cubin_sha256"]
    assert len(machine_code(again.cubin(sha256))) % 16 == 0
    damaged = tmp_path / "damaged"
    shutil.copytree(bundle.folder, damaged)
    (damaged / f"{sha256[:16]}.cubin").write_bytes(b"\x7fELF\x02 another")
    with pytest.raises(GemmsimError, match="not the cubin"):
        read_bundle(damaged).cubin(sha256)
    (damaged / "manifest.json").write_text("{}")
    with pytest.raises(GemmsimError, match="version"):
        read_bundle(damaged)


def test_measured_records_follow_the_schema_and_are_right(bundle: Bundle, tmp_path: Path) -> None:
    gpu = FakeGpu()
    records = measure(bundle, gpu, tmp_path / "run.json", TIMES_ONLY, [])
    assert read_records(tmp_path / "run.json") == records
    jsonschema.validate({"schema_version": 2, "records": records}, json.loads(SCHEMA.read_text()))
    for record in records:
        assert record["correctness"]["status"] == "correct" and "errors" not in record
        assert record["correctness"]["relative_error"] < 1e-6
        assert record["time"]["back_to_back"]["median_us"] == pytest.approx(LAUNCH_US)
        assert record["time"]["back_to_back"]["samples"] == 20 and record["time"]["back_to_back"]["copies"] == 1
        assert record["time"]["back_to_back"]["sm_clock_mhz"] == [1500, 1500, 1500]
    one = records[0]  # 40 x 24 x 16 in tiles of 8: 3 x 5 blocks of 64 threads on 4 SMs
    assert one["launch"]["grid"] == [3, 5, 1]
    assert one["placement"]["smid"] == [i % 4 for i in range(15)]
    assert one["placement"]["blocks_per_sm"] == [3, 4]
    # 2.5 times 1 MiB of L2 over 4 (40 x 16 + 16 x 24 + 40 x 24) bytes
    assert one["time"]["rotated"]["copies"] == 331


def test_operands_rotate(bundle: Bundle, tmp_path: Path) -> None:
    gpu = FakeGpu()
    measure(bundle, gpu, tmp_path / "run.json", TIMES_ONLY, [])
    launches = [call for call in gpu.launches if call.grid == [8, 8, 1] and call.function != "placement"]
    a = [call.values[4].value for call in launches]
    copies = -(-int(2.5 * (1 << 20)) // (3 * 64 * 64 * 4))
    assert len(set(a)) == copies
    rotated = a[-copies:]
    assert len(set(rotated)) == copies  # consecutive launches never share operands


def test_each_kernel_of_a_cubin_is_launched(bundle: Bundle, tmp_path: Path) -> None:
    """A file of several kernels is one cubin, in which each record names its own."""
    one = bundle.cases[0]
    other = {**one, "id": f"{one['id']}-other", "subject": {**one["subject"], "symbol": "gemm_v2"}}
    gpu = FakeGpu()
    measure(replace(bundle, cases=(one, other)), gpu, tmp_path / "run.json", TIMES_ONLY, [])
    assert {call.function for call in gpu.launches} == {one["subject"]["symbol"], "gemm_v2", "placement"}


def test_short_launches_are_replayed_as_graphs() -> None:
    """5 us: 400 launches a sample, here 3 copies, so 402; the graph holds them all, in turn."""
    gpu, order = FakeGpu(launch_us=5.0), []

    def launch(i: int) -> None:
        order.append(i)
        gpu.launch(
            SimpleNamespace(function="placement", grid=(1,), values=(SimpleNamespace(value=memory.ctypes.data), 0))
        )

    memory = np.zeros(1, np.int32)
    series = timing.measure(gpu, [lambda i=i: launch(i) for i in range(3)], 20)
    assert (series["method"], series["launches_per_sample"], series["copies"]) == ("graph", 402, 3)
    assert series["median_us"] == pytest.approx(5.0)
    assert order == [0, 0] + [0, 1, 2] * 134  # estimated, then captured once


def test_what_is_measured_is_not_measured_again(bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    first = measure(bundle, FakeGpu(), tmp_path / "run.json", TIMES_ONLY, [])
    gpu = FakeGpu()
    assert measure(bundle, gpu, tmp_path / "run.json", TIMES_ONLY, []) == first
    assert gpu.launches == [] and "measured already" in capsys.readouterr().err


def test_a_failed_case_loses_no_other_and_is_tried_again(bundle: Bundle, tmp_path: Path) -> None:
    broken = bundle.cases[1]["subject"]["symbol"]
    records = measure(bundle, FakeGpu(broken=broken), tmp_path / "run.json", TIMES_ONLY, [])
    assert [bool(record.get("errors")) for record in records] == [False, True, False]
    assert records[1]["errors"] == ["run: RuntimeError: CUDA_ERROR_LAUNCH_FAILED and more lines"]
    jsonschema.validate({"schema_version": 2, "records": records}, json.loads(SCHEMA.read_text()))
    again = measure(bundle, FakeGpu(), tmp_path / "run.json", TIMES_ONLY, [])
    assert not any(record.get("errors") for record in again)


def test_a_wrong_result_is_said(bundle: Bundle, tmp_path: Path) -> None:
    wrong = bundle.cases[0]["subject"]["symbol"]
    records = measure(bundle, FakeGpu(wrong=wrong), tmp_path / "run.json", TIMES_ONLY, [])
    assert [record["correctness"]["status"] for record in records] == ["wrong", "correct", "wrong"]
    assert "never written" in records[0]["correctness"]["why"]


def test_another_gpu_is_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(GemmsimError, match=r"sm_90, this GPU .* is sm_89"):
        measure(bundle, FakeGpu((8, 9)), tmp_path / "run.json", TIMES_ONLY, [])


def test_store_merges_by_id_and_keeps_cubins(bundle: Bundle, tmp_path: Path) -> None:
    run, into = tmp_path / "run.json", tmp_path / "kept"
    into.mkdir()
    measure(bundle, FakeGpu(wrong=bundle.cases[1]["subject"]["symbol"]), run, TIMES_ONLY, [])
    stored, skipped = store(run, bundle.folder, into)
    assert stored == 2 and len(skipped) == 1 and "coalesced" in skipped[0]
    assert {case.id for case in load_cases(into)} == {"tiled-f32-tile=8-40x24x16", "tiled-f32-tile=8-64x64x64"}
    run.unlink()
    measure(bundle, FakeGpu(), run, TIMES_ONLY, [])
    assert store(run, bundle.folder, into) == (3, [])
    assert {case.cubin.is_file() for case in load_cases(into)} == {True}
    assert sorted(path.name for path in into.iterdir()) == ["coalesced.json", "cubins", "tiled.json"]


def test_parameters_of_either_abi() -> None:
    arrays = {
        name: FakeGpu().upload(array)
        for name, array in host_operands(PROBLEM, {"arguments": ["A", "B", "C"]}).arrays.items()
    }
    names = ["m", "n", "k", "alpha", "A", "B", "beta", "C"]
    c = [value.value for value in parameters("c", names, PROBLEM, arrays, {})]
    assert c[:4] == [3, 5, 4, 1.0] and c[4] == arrays["A"].values.ctypes.data and c[6] == 0.0
    vector = {"bias": FakeGpu().upload(np.zeros(5, np.float32))}
    numba = [value.value for value in parameters("numba", ["bias", "beta"], PROBLEM, vector, {})]
    assert numba == [None, None, 5, 4, vector["bias"].values.ctypes.data, 5, 4, 0.0]


def test_a_parameter_of_bytes_holds_addresses_and_maps_as_the_driver_makes_them() -> None:
    arrays = {name: FakeGpu().upload(np.zeros(4, np.float32)) for name in ("A", "C")}
    places = [{"at_byte": 4, "argument": 1, "plus_bytes": 0}, {"at_byte": 16, "argument": 0, "plus_bytes": 8}]
    fields = MapFields(10, (64, 4096, 9), (1 << 36, 256), (64, 8, 1), (1, 2, 1), 3, 1)
    map_bytes = written(fields)
    assert read(map_bytes) == fields and map_bytes[:8] == bytes(8)
    listed = {
        "bytes": "07000000" + "00" * 8 + "05000000" + map_bytes.hex(),
        "addresses": places,
        "maps": [{"at_byte": 16, "l2_promotion": 3}],
    }
    asked = []

    def encode(*what: object) -> bytes:
        asked.append(what)
        return b"\1" * 128

    value = packed_parameter(listed, ["A", "C"], arrays, encode)
    a, c = (arrays[name].values.ctypes.data for name in ("A", "C"))
    assert bytes(value) == (7).to_bytes(4, "little") + c.to_bytes(8, "little") + b"\5\0\0\0" + b"\1" * 128
    assert asked == [(fields, a + 8, 3)]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8"])
def test_the_check_takes_rounding_and_no_more(dtype: str) -> None:
    problem = PROBLEM | {"dtype": dtype, "result_dtype": {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(dtype, dtype)}
    host = host_operands(problem, {"arguments": ["A", "B", "C", "bias"]})
    from gemmsim_validate.measure.operands import as_float64

    exact = as_float64(host.arrays["A"], dtype) @ as_float64(host.arrays["B"], dtype)
    exact = exact + host.arrays["bias"]
    good = exact.astype(host.arrays["C"].dtype)
    assert check(problem, host, good)["status"] == "correct"
    bad = good.copy()
    bad[1, 2] += 1 if dtype == "i8" else 1e-4
    assert check(problem, host, bad)["status"] == "wrong"
    assert check(problem | {"relu": True}, host, np.maximum(good, 0))["status"] == "correct"


def test_large_problems_are_checked_by_rows() -> None:
    problem = PROBLEM | {"m": 1200, "n": 8, "k": 8}
    host = host_operands(problem, {"arguments": ["A", "B", "C"]})
    c = host.arrays["A"] @ host.arrays["B"]
    assert check(problem, host, c) | {"relative_error": 0} == {
        "status": "correct", "rows_checked": 64, "relative_error": 0,
    }  # fmt: skip
    c[:, 3] += 1
    assert check(problem, host, c)["status"] == "wrong"


def test_plans() -> None:
    """A short launch: a graph of whole rounds; a long one: single launches, warmed up for 50 ms."""
    assert timing.plan(5.0, 1) == timing.Plan(400, True, 25)
    assert timing.plan(5.0, 157) == timing.Plan(471, True, 22)
    assert timing.plan(500.0, 40) == timing.Plan(4, False, 25)
    assert timing.plan(200_000.0, 2) == timing.Plan(1, False, 1)
    assert timing.copies_beyond_cache(200 << 20, 60 << 20, 1 << 37) == 2
    assert timing.copies_beyond_cache(1 << 20, 60 << 20, 1 << 37) == 150
    assert timing.copies_beyond_cache(1 << 20, 60 << 20, 16 << 20) == 8


def test_summary() -> None:
    """1 to 5: quartiles 2 and 4, as NumPy has them."""
    assert timing.summary([5, 1, 4, 2, 3]) == {
        "median_us": 3, "quartiles_us": [2, 4], "samples_us": [5, 1, 4, 2, 3], "samples": 5,
    }  # fmt: skip


NCU = """#!{python}
import json, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("NVIDIA (R) Nsight Compute\\nVersion 2099.1.0.0 (build 1)")
elif "--import" in words:
    names = open(words[words.index("--import") + 1]).read().split()
    print("==PROF== Connected\\nsome program's output")
    print('"ID","Kernel Name","Grid Size","Block Size","smsp__inst_executed.sum","dram__bytes_read.sum","text__x"')
    print('"","","","","inst","Kbyte","%"')
    for i, name in enumerate(names):
        print(f'"{{i}}","k","(2, 3, 1)","(32, 1, 1)","1,{{100 + len(name)}}","1.5","n/a"')
else:
    assert words[words.index("--clock-control") + 1] == "none" and words[words.index("--cache-control") + 1] == "all"
    metrics = words[words.index("--metrics") + 1].split(",") if "--metrics" in words else []
    if {refused!r}:
        print({refused!r})
        sys.exit(1)
    if "lts__t_sectors.sum" in metrics:
        print("==ERROR== Failed to find metric lts__t_sectors.sum")
        sys.exit(1)
    target = words[words.index("--export") + 1] + ".ncu-rep"
    child = words[words.index("--export") + 2:]
    subprocess.run(child, check=True)
    open(target, "w").write(open(child[-1] + ".launched").read())
"""
CHILD = """
import sys
names = open(sys.argv[1]).read().split()
print("\\n".join(names[:-1]), file=open(sys.argv[1] + ".launched", "w"))
"""


def fake_ncu(folder: Path, refused: str = "") -> Profiler:
    path = folder / "ncu"
    path.write_text(NCU.format(python=sys.executable, refused=refused))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Profiler(str(path))


def test_profiling_drops_what_ncu_does_not_know_and_matches_launches_to_cases(tmp_path: Path) -> None:
    """The child launches all but the last case, which then has no counters; the count tells names by their length."""
    profiler = fake_ncu(tmp_path)
    assert profiler.version() == "ncu 2099.1.0.0"
    counters = profile(profiler, [sys.executable, "-c", CHILD], ["a", "bbb", "c"], 60)
    assert counters == {
        "a": {"smsp__inst_executed.sum": 1101, "dram__bytes_read.sum": 1500},
        "bbb": {"smsp__inst_executed.sum": 1103, "dram__bytes_read.sum": 1500},
    }
    assert "lts__t_sectors.sum" not in profiler.metrics and "lts__t_sectors_op_read.sum" in profiler.metrics
    assert str(tmp_path) not in profiler.shown_command()


def test_counters_refused_are_said_once(tmp_path: Path) -> None:
    profiler = fake_ncu(tmp_path, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters")
    with pytest.raises(GemmsimError, match=r"ERR_NVGPUCTRPERM: .* only times"):
        profile(profiler, ["true"], ["a"], 60)


def test_counters_reach_the_records(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiler = fake_ncu(tmp_path)
    monkeypatch.setattr(Profiler, "find", classmethod(lambda cls: profiler))
    records = measure(bundle, FakeGpu(), tmp_path / "run.json", Options(samples=20), [sys.executable, "-c", CHILD])
    assert ["counters" in record for record in records] == [False, True, False]
    assert records[1]["profile"]["status"] == "profiled" and records[1]["profile"]["cache_control"] == "all"
    assert records[2]["profile"] == {"status": "unavailable", "why": "it did not run under ncu"}
    monkeypatch.setattr(Profiler, "find", classmethod(lambda cls: None))
    (tmp_path / "run.json").unlink()
    without = measure(bundle, FakeGpu(), tmp_path / "run.json", Options(samples=20), [])
    assert "not installed" in without[1]["profile"]["why"]
    jsonschema.validate({"schema_version": 2, "records": records + without}, json.loads(SCHEMA.read_text()))


def test_the_profiled_child_launches_each_case_once(bundle: Bundle, tmp_path: Path) -> None:
    names = [bundle.cases[2]["id"], bundle.cases[1]["id"]]
    (tmp_path / "cases").write_text("\n".join(names))
    gpu = FakeGpu(broken=bundle.cases[1]["subject"]["symbol"])
    launch_once(bundle, gpu, tmp_path / "cases")
    assert len(gpu.launches) == 1
    assert (tmp_path / "cases.launched").read_text().split() == names[:1]


def test_presets_by_the_drivers_names() -> None:
    names = {
        "NVIDIA H200": "h200", "NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA A100-SXM4-80GB": "a100-80gb",
        "Tesla T4": "t4", "NVIDIA GeForce RTX 5070 Ti": "rtx5070ti", "NVIDIA RTX A6000": "rtxa6000",
        "NVIDIA GeForce RTX 3050 Laptop GPU": "nvidia-geforce-rtx-3050-laptop-gpu", "NVIDIA X1": "nvidia-x1",
        "NVIDIA H100 80GB HBM3": "h100", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H200 NVL": "nvidia-h200-nvl",
        "NVIDIA A10": "a10", "NVIDIA A10G": "a10g", "NVIDIA RTX A1000": "nvidia-rtx-a1000", "NVIDIA L40S": "l40s",
        "NVIDIA GeForce RTX 4070": "rtx4070", "NVIDIA GeForce RTX 4070 Ti": "nvidia-geforce-rtx-4070-ti",
        "NVIDIA GeForce RTX 4070 Ti SUPER": "rtx4070tisuper", "NVIDIA GeForce RTX 3060 Laptop GPU": "rtx3060-laptop",
        "NVIDIA A100-PCIE-40GB": "nvidia-a100-pcie-40gb", "NVIDIA RTX 6000 Ada Generation": "rtx6000ada",
    }  # fmt: skip
    assert {device: preset_of(device) for device in names} == names
