"""Atomic operations on an H200 (h200_atomics.json): packets as counted, and the time of the busiest slice of L2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from timed import timing
from trace_builder import program

from gemmsim.memory.requests.access import access_of
from gemmsim.memory.requests.atomics import packets_of
from gemmsim.memory.requests.banks import held_longer, wavefronts

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_atomics.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "atomics.cu").read_text(encoding="utf-8")
OPERATIONS = list(dict.fromkeys(row[0] for row in RECORD["global"]))
WORD_BYTES = {"add double": 8, "add int64": 8}
INSTANCES = tuple(f"global_atomics<{number}>" for number in range(len(OPERATIONS)))
LAUNCH_US = 1.4


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sectors_of_packets_are_as_counted(operation: str) -> None:
    """Slices of L2 are busy for a cycle for each sector of a packet. Compare and swap is busy for two cycles where
    several words of a sector are asked for, doubles as well."""
    for name, blocks, warps, count, mask, *_, by_lane, lanes_wrap, _us, _sectors, _waves, _most, cycles in RECORD[
        "global"
    ]:
        if name != operation:
            continue
        lane = np.arange(32)
        offsets = (lane * by_lane % lanes_wrap * WORD_BYTES.get(name, 4))[None]
        active = (int(mask, 16) >> lane & 1 > 0)[None]
        packets = packets_of(offsets, active, np.array([True]))
        sectors = int(packets.sectors.sum()) * blocks * warps * count
        if name in ("cas int", "add double"):
            assert cycles in (sectors, 2 * sectors), (name, mask, by_lane, lanes_wrap)
        else:
            assert cycles == sectors, (name, mask, by_lane, lanes_wrap)


def cycles_in_shared_memory(operation: str) -> list[tuple[float, int]]:
    """Measured cycles an operation of a warp, of 32 warps on words of their own, and what the data stage is held."""
    found = []
    access = access_of(program({"add int": "ATOMS.ADD", "cas int": "ATOMS.CAS"}[operation]).instructions[0])
    assert access is not None
    for name, warps, own, share, apart, measured in RECORD["shared"]:
        if (name, warps, own) == (operation, 32, 1):
            offsets = (np.arange(32) // share * apart * 4)[None]
            active = np.ones((1, 32), bool)
            held = wavefronts(offsets, active, 4, merges=False) + held_longer(offsets, active, access)
            found.append((measured, int(held[0])))
    return found


@pytest.mark.parametrize("operation", ["add int", "cas int"])
def test_lanes_of_shared_atomics_take_a_cycle_each(operation: str) -> None:
    for measured, held in cycles_in_shared_memory(operation):
        assert measured == pytest.approx(held, rel=0.06, abs=0.5)


# operation, row of its patterns, by how many percent it may differ
@pytest.mark.parametrize(
    ("operation", "pattern", "pct"),
    [
        ("add int", 0, 4),  # one lane of 1056 warps, one word
        pytest.param("add float", 0, 4, marks=pytest.mark.slow),
        pytest.param("add half2", 0, 4, marks=pytest.mark.slow),
        ("add double", 0, 4),
        ("add int, returned", 0, 4),
        ("add int", 23, 4),  # all lanes, one word
        ("add float", 23, 4),
        ("add int", 28, 4),  # a line
        ("add float", 28, 4),
        ("add float", 9, 12),  # words of four lines, in two slices
        ("add int", 41, 8),  # all lanes, sectors of their own
        ("add int", 35, 15),  # lines of their own
        ("add float", 35, 15),
    ],
)
def test_times(operation: str, pattern: int, pct: float) -> None:
    of_operation = [row for row in RECORD["global"] if row[0] == operation]
    _, blocks, warps, count, mask, by_warp, by_time, wrap, by_lane, lanes_wrap, us, *_ = of_operation[pattern]
    numbers = (count, int(mask, 16), by_warp, by_time, wrap, by_lane, lanes_wrap)
    types = ("i32", "u32", *["i32"] * 5)
    found = timing(
        SOURCE,
        file="atomics.cu",
        instances=INSTANCES,
        entry=f"global_atomics<{OPERATIONS.index(operation)}>",
        grid=blocks,
        block=32 * warps,
        args=("i8[33554432]=0", *(f"{kind}={number}" for kind, number in zip(types, numbers, strict=True)), "f32[1]=0"),
        gpu="h200",
        caches="warm",
    )
    assert found.cycles / 1.98e3 == pytest.approx(us - LAUNCH_US, rel=pct / 100)


SWEEPS: dict[str, Any] = json.loads(Path(__file__).with_name("h200_atomic_sweeps.json").read_text(encoding="utf-8"))
SWEEP_SOURCE = (Path(__file__).parents[1] / "sources" / "atomic_sweeps.cu").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("loads", "lines", "blocks", "warps", "shift", "pct"),
    [
        (0, 8, 528, 8, 0, 8),
        (0, 32, 528, 8, 0, 4),  # 54 % too fast where all slices were taken to be busy
        (0, 32, 528, 8, 37, 12),  # blocks that begin elsewhere
        (0, 128, 2112, 1, 37, 6),
        (2, 32, 528, 8, 0, 9),
        (2, 128, 528, 8, 0, 5),  # 61 %
        (0, 32, 2112, 8, 0, 13),  # two blocks at each place
    ],
)
def test_sweeps(loads: int, lines: int, blocks: int, warps: int, shift: int, pct: float) -> None:
    """Warps in step that go through the same memory."""
    found, us = sweep(loads, lines, blocks, warps, shift)
    assert found == pytest.approx(us, rel=pct / 100)


@pytest.mark.parametrize(
    ("lines", "blocks", "warps", "least_pct", "most_pct"),
    [(128, 528, 8, 14, 23), (128, 528, 1, 42, 52), (128, 2112, 8, 36, 46)],
)
def test_how_far_off_long_sweeps_and_few_warps_are(
    lines: int, blocks: int, warps: int, least_pct: float, most_pct: float
) -> None:
    """Deviation 9: they drift apart faster on an H200."""
    found, us = sweep(0, lines, blocks, warps, 0)
    assert least_pct < 100 * (found / us - 1) < most_pct


def sweep(loads: int, lines: int, blocks: int, warps: int, shift: int) -> tuple[float, float]:
    """Return the predicted and the measured us of a launch of the record, without what a launch takes by itself."""
    [us] = [row[-1] for row in SWEEPS["rows"] if row[:-1] == ["float", loads, lines, blocks, warps, shift]]
    found = timing(
        SWEEP_SOURCE,
        file="atomic_sweeps.cu",
        instances=("atomic_sweep<float,0>", "atomic_sweep<float,2>"),
        entry=f"atomic_sweep<float,{loads}>",
        grid=blocks,
        block=32 * warps,
        args=(f"f32[{max(1, loads * blocks * warps * lines) * 32}]=0", "f32[65536]=0", f"i32={lines}", f"i32={shift}"),
        gpu="h200",
        caches="warm",
    )
    return found.cycles / 1.98e3, us - LAUNCH_US
