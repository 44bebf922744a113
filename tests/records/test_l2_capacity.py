"""What L2 keeps from launch to launch, and what DRAM reads and writes: measured on an H200, predicted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import cuda_program

from gemmsim import api
from gemmsim.calls.launches import launch_spec
from gemmsim.memory.caches.l2 import L2State

HERE = Path(__file__).parent
RECORD: dict[str, Any] = json.loads((HERE / "h200_l2_capacity.json").read_text(encoding="utf-8"))
ROWS: list[Any] = RECORD["rows"]
SOURCE = (HERE.parent / "sources" / "l2_capacity.cu").read_text(encoding="utf-8")
INSTANCES = tuple(sorted({row[0] for row in ROWS if "<" in row[0]}))
SECTORS_PER_MIB = 32768
LAUNCH_US = 1.4
COUNTERS = ("dram__sectors_read.sum", "dram__sectors_write.sum")


def spec_of(row: list[Any]) -> Any:
    kernel, mib, more = row[:3]
    arrays = {"stored": "=", "copied": " =", "added": "  =", "raised": " ", "added_to": "  "}.get(kernel.split("<")[0])
    count = "i32={}".format
    if arrays is None:
        stores = kernel == "stored_behind"
        args = [f"u8[{mib << 20 or 16}]", f"u8[{more << 20 or 16}]" + "=0" * stores]
        args += ["u32[1]=0"] * (not stores) + [count(mib << 16), count(more << 16)]
        grid = 1056
    else:
        args = [f"u8[{mib << 20}]" + "=0" * (a == "=") for a in arrays] + [count(mib << 16)]
        grid = mib * 256
    launch = {"entry": kernel, "grid": grid, "block": 256, "args": tuple(args), "caches": "warm"}
    return launch_spec(SOURCE, "h200", launch)


def counted(row: list[Any], begins: L2State | None = None, sampled: bool = False) -> Any:
    spec = spec_of(row)
    if sampled:
        spec = replace(spec, settings=replace(spec.settings, full_below=1))
    return api.count(spec, cuda_program("l2_capacity.cu", row[0], spec.gpu.arch, INSTANCES), begins)


def dram_mib(row: list[Any], sampled: bool = False) -> tuple[float, ...]:
    """What DRAM reads and writes."""
    counters = counted(row, sampled=sampled).traffic.counters
    return tuple(counters[name] / SECTORS_PER_MIB for name in COUNTERS)


def behind_other_data(row: list[Any], launches: int = 3) -> float:
    """What DRAM reads for the last of some launches, where L2 was full of other data before the first."""
    l2 = spec_of(row).gpu.l2
    shape = (l2.size_bytes // (l2.line_bytes * l2.ways), l2.ways)
    other = np.arange(np.prod(shape)).reshape(shape) + (1 << 40)
    full = L2State(other, *np.full((2, *shape), [[[15]], [[0]]], np.uint8), np.full(shape, -1), l2.partitions)
    for _ in range(launches):
        found = counted(row, full).traffic
        full = found.l2_after
    return float(found.counters[COUNTERS[0]] / SECTORS_PER_MIB)


def cases(*kernels: str, fast: tuple[tuple[int, int], ...] = ()) -> list[Any]:
    """The rows of some kernels; those of other sizes than `fast` are slow."""
    rows = [row for row in ROWS if row[0].startswith(kernels)]
    marks = {False: (pytest.mark.slow,), True: ()}
    return [
        pytest.param(row, marks=marks[(row[1], row[2]) in fast], id="-".join(map(str, row[:3])))
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    cases(
        *("stored<", "raised", "copied<0,", "added", "stored_behind", "read_behind<0>"),
        fast=((16, 0), (24, 0), (36, 0), (48, 0), (32, 16)),
    ),
)
def test_what_dram_reads_and_writes(row: list[Any]) -> None:
    """What is stored takes room in both partitions of L2, of which no more than half is dirty. Before, copies of 24 MiB
    read 4 of 21 MiB, and stores of 40 MiB wrote 0.4 of 39."""
    read, written = dram_mib(row)
    assert read == pytest.approx(row[4], abs=7.5)
    assert written == pytest.approx(row[5], abs=9.0)


@pytest.mark.parametrize(
    "row",
    cases(*(f"read_behind<{how}>" for how in (1, 2, 3)), "copied<1,", fast=((0, 8), (8, 16), (16, 0), (24, 0))),
)
def test_what_is_read_to_be_evicted_first_is(row: list[Any]) -> None:
    """ld.cs, ld.L1::no_allocate and ld.lu do the same to L2. Before, they were loads like others: of up to 40 MiB
    DRAM read nothing again."""
    if sum(row[1:3]) <= 56:
        assert behind_other_data(row) == pytest.approx(row[4], abs=3.5)


@pytest.mark.parametrize(
    ("kernel", "mib"),
    [("stored<0>", 24), ("stored<0>", 40), ("copied<0,0>", 16), ("copied<0,0>", 28), ("raised", 24), ("added", 20)],
)
def test_a_sample_keeps_all_or_nothing_where_an_h200_does(kernel: str, mib: int) -> None:
    [row] = [row for row in ROWS if row[:2] == [kernel, mib]]
    assert dram_mib(row, sampled=True) == pytest.approx(row[4:6], abs=4.0)


def test_times_of_launches_about_as_large_as_l2() -> None:
    """Of 71 launches 5.4 % in the mean; before 44, those of 40 to 60 MiB were up to 35 % too fast."""
    errors = []
    for row in ROWS:
        if (row[0], *row[1:3]) in {
            ("copied<0,0>", 24, 0),
            ("copied<1,0>", 24, 0),
            ("added", 16, 0),
            ("added_to", 22, 0),
        }:
            spec, launch = spec_of(row), counted(row)
            found = api.time(launch, spec)
            errors.append((found.cycles * 1e6 / found.sm_clock_hz + LAUNCH_US) / row[3] - 1)
    assert len(errors) == 4
    assert max(map(abs, errors)) < 0.13
