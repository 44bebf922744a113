"""Clusters as an H200 has them: special registers, constants, results and occupancy, replayed."""

from __future__ import annotations

import json
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.gpu import load_gpu
from gemmsim.gpu.limits import clusters_at_once
from gemmsim.trace.execute import execute
from gemmsim.trace.launch_data.constant_bank import constant_bank
from gemmsim.trace.types import Argument, Launch

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_clusters.json").read_text(encoding="utf-8"))
H200 = load_gpu("h200")


def run(
    entry: str, grid: tuple[int, int, int], threads: int, cluster: Any, shape: tuple[int, ...], *numbers: int
) -> Any:
    out = Argument("u32", shape, np.zeros(shape, np.uint32))
    scalars = tuple(Argument("i32", (), number) for number in numbers)
    launch = Launch(grid, (threads, 1, 1), (out, *scalars), cluster=cluster)
    (found, *_) = execute(cuda_program("clusters.cu", entry, "sm_90"), launch).outputs
    assert found is not None
    return found.tolist()


@pytest.mark.parametrize("case", RECORD["numbers"])
def test_special_registers(case: str) -> None:
    cluster, grid = literal_eval(case)
    known = RECORD["numbers"][case]
    assert run("numbers", grid, 1, cluster, (len(known), 15)) == known


@pytest.mark.parametrize("case", RECORD["spaces"])
def test_spaces(case: str) -> None:
    cluster, target = literal_eval(case)
    assert run("spaces", (2, 1, 1), 32, cluster, (2, 6), target) == RECORD["spaces"][case]


@pytest.mark.parametrize("case", RECORD["bank"])
def test_constants_of_the_driver(case: str) -> None:
    program, known = cuda_program("clusters.cu", "numbers", "sm_90"), RECORD["bank"][case]
    out = Argument("u32", (1,), np.zeros(1, np.uint32))
    bank = constant_bank(program, Launch(tuple(known["grid"]), (32, 1, 1), (out,), cluster=literal_eval(case)), (0,))
    assert {at: f"{bank[int(at, 16) // 4]:#x}" for at in known["words"]} == known["words"]


@pytest.mark.parametrize("target", RECORD["instructions"])
def test_instructions(target: str) -> None:
    found = run("instructions", (4, 1, 1), 32, (4, 1, 1), (4, 32, 6), int(target))
    assert found == RECORD["instructions"][target]


@pytest.mark.parametrize("size", RECORD["ring"])
def test_ring(size: str) -> None:
    assert run("ring", (16, 1, 1), 32, (int(size), 1, 1), (16, 32), 7) == RECORD["ring"][size]


def test_clusters_at_once() -> None:
    """Clusters of one block tell how many blocks an SM holds."""
    one = {(threads, shared): n for size, threads, shared, n in RECORD["clusters_at_once"] if size == 1}
    for size, threads, shared, clusters in RECORD["clusters_at_once"]:
        blocks = one[threads, shared] // H200.sm.count
        assert clusters_at_once(blocks, size, H200) == clusters, (size, threads, shared)
