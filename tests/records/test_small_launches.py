"""What a launch on an H200 takes beside its kernel: those of `tests/sources/small_launches.cu`, predicted."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from timed import timing

from gemmsim.gpu.load import load_gpu

HERE = Path(__file__).parent
RECORD: dict[str, Any] = json.loads((HERE / "h200_small_launches.json").read_text(encoding="utf-8"))
SOURCE = (HERE.parent / "sources" / "small_launches.cu").read_text(encoding="utf-8")
WORDS = 4224 * 256  # of the largest launch
ARGUMENTS = {"empty": 0, "store": 1, "barriers": 1}  # how many pointers a kernel takes; the others take two
H200 = load_gpu("h200")


def beside() -> dict[str, list[float]]:
    """Return by column how many microseconds each launch takes beyond what its kernel is predicted to."""
    found: dict[str, list[float]] = {"graph": [], "activity": [], "profiler": []}
    for kernel, blocks, threads, shared, *measured in RECORD["rows"]:
        kind = {"wide": f"u32[{4 * WORDS}]=0", "big": f"f32[{WORDS}]=0"}.get(kernel, f"i32[{WORDS}]=0")
        predicted = timing(
            SOURCE,
            file="small_launches.cu",
            entry=kernel,
            grid=blocks,
            block=threads,
            shared=shared,
            args=(kind,) * ARGUMENTS.get(kernel, 2),
            gpu=H200,
            caches="warm",
        )
        kernel_us = predicted.duration_us - H200.launch.overhead_us
        for column, us in zip(found, measured, strict=True):
            found[column].append(us - kernel_us)
    return found


def test_what_a_launch_takes_beside_its_kernel() -> None:
    """Activity records add the same to every kernel. A CUDA graph hides part of what a large grid takes, and shows the
    last stores of a small one; the profiler adds more, and a first load of data half a microsecond again."""
    found = beside()
    assert mean(found["activity"]) == pytest.approx(H200.launch.activity_overhead_us, abs=0.03)
    assert max(abs(us - H200.launch.activity_overhead_us) for us in found["activity"]) < 0.16
    assert min(found["graph"]) > 0.35 and max(found["graph"]) < 0.68
    assert mean(found["profiler"]) == pytest.approx(H200.launch.overhead_us, abs=0.35)
