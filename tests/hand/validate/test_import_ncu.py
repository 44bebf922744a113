"""Nsight Compute's files read and held against predictions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from gemmsim_validate.cli.main import main
from gemmsim_validate.ncu.comparison import compared
from gemmsim_validate.ncu.launches import read_launches, select
from gemmsim_validate.ncu.raw_page import parse_raw_page
from gemmsim_validate.records.case import load_file
from gemmsim_validate.records.files import FOLDER, SCHEMA
from gemmsim_validate.records.replay import launch_of

from gemmsim.support.errors import GemmsimError

COLUMNS = {
    "ID": ("", "0", "1"),
    "Kernel Name": ("", "warm_up(float *)", "void gemm<128, 8>(float *)"),
    "Block Size": ("", "(32, 1, 1)", "(256, 1, 1)"),
    "Grid Size": ("", "(1, 1, 1)", "(8, 8, 1)"),
    "dram__bytes_read.sum": ("Mbyte", "0.5", "1.25"),
    "gpu__time_duration.sum": ("us", "1.5", "2,000.5"),
    "launch__registers_per_thread": ("register/thread", "16", "40"),
    "smsp__inst_executed.sum": ("inst", "1,024", "1,234,567"),
    "lts__t_sector_hit_rate.pct": ("%", "n/a", "99.5"),
    "dram__x.sum.per_second": ("Gbyte/s", "2", "2"),
}
ROWS = [list(COLUMNS), *([column[i] for column in COLUMNS.values()] for i in range(3))]
RAW = "\n".join(
    ["==PROF== Connected to process 1", "hello from the program", *(",".join(f'"{c}"' for c in row) for row in ROWS)]
)


def test_a_raw_page_in_scaled_units() -> None:
    """Base units: bytes, ns; thousands separators and n/a as Nsight Compute writes them."""
    first, second = parse_raw_page(RAW)
    assert (second.kernel, second.grid, second.block) == ("void gemm<128, 8>(float *)", (8, 8, 1), (256, 1, 1))
    assert second.metrics == pytest.approx({
        "dram__bytes_read.sum": 1.25e6, "gpu__time_duration.sum": 2_000_500, "launch__registers_per_thread": 40,
        "smsp__inst_executed.sum": 1_234_567, "lts__t_sector_hit_rate.pct": 99.5, "dram__x.sum.per_second": 2e9,
    })  # fmt: skip
    assert "lts__t_sector_hit_rate.pct" not in first.metrics


@pytest.mark.parametrize("text", ["", "ID,Kernel Name\n", '"ID","Kernel Name"\n"0","x"\n'])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(GemmsimError, match="raw page"):
        parse_raw_page(text)


def test_choosing_a_launch() -> None:
    launches = parse_raw_page(RAW)
    assert select(launches, "gemm", None) is launches[1]
    assert select(launches, None, 0) is launches[0]
    for pattern, index, says in ((None, None, "choose by --match"), ("x{", 0, "no launch"), ("(", 0, "regular"),
                                 ("gemm", 3, "1 launches fit"), ("none", 0, "warm_up")):  # fmt: skip
        with pytest.raises(GemmsimError, match=says):
            select(launches, pattern, index)


def test_ratios() -> None:
    rows = {
        row.metric: row.ratio
        for row in compared(
            {"a__x": 3, "b__x": 0, "c__x": 1, "d__x": None}, {"a__x": 2, "b__x": 0, "c__x": 0, "d__x": 1}
        )
    }
    assert rows == {"a__x": 1.5, "b__x": 1.0, "c__x": None}


def csv_of(counters: dict[str, float], kernel: str) -> str:
    names = list(counters)
    rows = [["ID", "Kernel Name", "Grid Size", "Block Size", *names], [""] * (4 + len(names)),
            ["0", kernel, "(8, 8, 1)", "(32, 32, 1)", *(str(counters[name]) for name in names)]]  # fmt: skip
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)


def test_counters_of_a_real_h200_beside_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The counters that an H200 recorded for the tiled rung, come back as a user's file, and as a record."""
    (case,) = (c for c in load_file(FOLDER / "h200" / "tiled.json") if c.tunables == {"tile": 32} and c.n == 256)
    (tmp_path / "mine.csv").write_text(csv_of(case.counters, "tiled_v1"))
    words = ["import-ncu", str(tmp_path / "mine.csv"), "--kernel", "tiled", "--size", "256", "--gpu", "h200"]
    assert main([*words, "-o", str(tmp_path / "mine.json")]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]}
    for exact in ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                  "smsp__inst_executed_op_shared_ld.sum", "launch__occupancy_limit_warps"):  # fmt: skip
        assert rows[exact][2] == "1.000"
        assert float(rows[exact][1].replace(",", "")) == case.counters[exact]
    assert "gpu__time_duration.sum" in rows
    data = json.loads((tmp_path / "mine.json").read_text())
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    (again,) = load_file(tmp_path / "mine.json")
    assert again.counters == case.counters and again.calibrated_time_us is None
    assert launch_of(again).labels.tunables == {"tile": 32}


def test_another_launch_shape_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "mine.csv").write_text(csv_of({"smsp__inst_executed.sum": 5}, "k"))
    words = ["import-ncu", str(tmp_path / "mine.csv"), "--kernel", "tiled", "--size", "512", "--gpu", "h200"]
    assert main(words) == 2
    assert "has grid (8, 8, 1)" in capsys.readouterr().err


def test_any_kernel_by_its_report(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "mine.csv").write_text(RAW)
    (tmp_path / "p.json").write_text(json.dumps({"counters": {"smsp__inst_executed.sum": 1_234_567, "x__y": 1}}))
    words = ["import-ncu", str(tmp_path / "mine.csv"), "--predicted", str(tmp_path / "p.json"), "--match", "gemm"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "smsp__inst_executed.sum",
        "1,234,567",
        "1,234,567",
        "1.000",
    ]
    (tmp_path / "p.json").write_text("[]")
    assert main(words) == 2


class FakeMetric(SimpleNamespace):
    def as_double(self) -> float:
        return float(self.value) if self.number else 0.0

    def as_string(self) -> str:
        return str(self.value)

    def unit(self) -> str:
        return self.in_unit

    def kind(self) -> int:
        return 2 if self.number else 1

    def has_value(self) -> bool:
        return self.value is not None


def test_a_report_file_by_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in that has the wheel's interface; without the wheel, one line says what to do."""
    metrics = {
        "smsp__inst_executed.sum": FakeMetric(value=7, number=True, in_unit="inst"),
        "dram__bytes_read.sum": FakeMetric(value=2, number=True, in_unit="Kbyte"),
        "device__attribute_display_name": FakeMetric(value="NVIDIA H200", number=False, in_unit=""),
        "gpu__nothing.sum": FakeMetric(value=None, number=True, in_unit=""),
    }
    for name, size in zip(("grid_dim_x", "grid_dim_y", "grid_dim_z", "block_dim_x", "block_dim_y", "block_dim_z"),
                          (4, 2, 1, 64, 1, 1), strict=True):  # fmt: skip
        metrics[f"launch__{name}"] = FakeMetric(value=size, number=True, in_unit="")
    action = SimpleNamespace(
        name=lambda: "k", metric_names=lambda: tuple(metrics), metric_by_name=lambda name: metrics[name]
    )
    part = SimpleNamespace(num_actions=lambda: 1, action_by_idx=lambda i: action)
    context = SimpleNamespace(num_ranges=lambda: 1, range_by_idx=lambda i: part)
    wheel = SimpleNamespace(load_report=lambda path: context, IMetric=SimpleNamespace(ValueKind_STRING=1))
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, "ncu_report", wheel)
    (launch,) = read_launches(path)
    assert (launch.kernel, launch.grid, launch.block, launch.device) == ("k", (4, 2, 1), (64, 1, 1), "NVIDIA H200")
    assert launch.metrics["dram__bytes_read.sum"] == 2000 and launch.metrics["smsp__inst_executed.sum"] == 7
    assert "gpu__nothing.sum" not in launch.metrics and "device__attribute_display_name" not in launch.metrics
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(GemmsimError, match="ncu-report wheel"):
        read_launches(path)
