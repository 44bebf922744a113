"""How long warps wait at memory fences: measured on an H200, predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from programs import cuda_program

from gemmsim import api
from gemmsim.calls.launches import launch_spec
from gemmsim.sm.observer import Observer
from gemmsim.sm.schedule import TimingOptions, schedule

HERE = Path(__file__).parent
RECORD: dict[str, Any] = json.loads((HERE / "h200_fences.json").read_text(encoding="utf-8"))
SOURCE = (HERE.parent / "sources" / "fences.cu").read_text(encoding="utf-8")
LOOPS = {tuple(row[:4]): row[4] for row in RECORD["loops"]}
NONE, BLOCK, GPU, THREADFENCE, SYSTEM, CLUSTER = range(6)
NOTHING, STORE, ROWS_STORED, LOAD, ROWS_LOADED, SHARED_STORE, REDUCTION, HIT, COPY, SHARED_LOAD = range(10)
SMS = 132


def cycles(scope: int, what: int, blocks: int, warps: int) -> float:
    """Return how long a step of a loop takes."""
    total = []
    for steps in (24, 56):
        args = ("u8[16777216]=0", "u32[65536]=0", f"i32={steps}")
        launch = {
            "entry": f"loops<{scope}, {what}>",
            "grid": blocks,
            "block": 32 * warps,
            "shared": 40000,
            "args": args,
        }
        spec = launch_spec(SOURCE, "h200", launch | {"caches": "warm", "engine": "native"})
        program = cuda_program("fences.cu", f"loops<{scope}, {what}>", spec.gpu.arch, INSTANCES)
        total.append(api.time(api.count(spec, program), spec).cycles)
    return (total[1] - total[0]) / 32


CASES = [
    (GPU, NOTHING, SMS, 1, 0.01),
    (CLUSTER, NOTHING, SMS, 16, 0.03),
    (THREADFENCE, SHARED_STORE, 1, 1, 0.04),
    (GPU, SHARED_LOAD, 1, 1, 0.02),
    (GPU, STORE, SMS, 1, 0.05),
    (GPU, STORE, SMS, 4, 0.07),
    (GPU, STORE, SMS, 16, 0.15),
    (CLUSTER, REDUCTION, SMS, 8, 0.11),
    (GPU, ROWS_STORED, SMS, 4, 0.17),
    (GPU, ROWS_STORED, SMS, 16, 0.06),
    (GPU, LOAD, SMS, 1, 0.05),
    (GPU, LOAD, SMS, 8, 0.03),
    (GPU, ROWS_LOADED, SMS, 8, 0.03),
    (GPU, COPY, SMS, 4, 0.05),
    (SYSTEM, NOTHING, 1, 1, 0.03),
    (BLOCK, LOAD, SMS, 1, 0.07),
    (BLOCK, SHARED_LOAD, 1, 1, 0.12),
]
INSTANCES = tuple(f"loops<{scope}, {what}>" for scope, what in sorted({case[:2] for case in CASES}))


@pytest.mark.parametrize(("scope", "what", "blocks", "warps", "within"), CASES)
def test_a_loop_with_a_fence(scope: int, what: int, blocks: int, warps: int, within: float) -> None:
    """A fence of the GPU took as long as a load from shared memory before, 43 cycles a round for 288. Some loops take
    4 cycles more here, as the code of another compiler's version."""
    assert cycles(scope, what, blocks, warps) == pytest.approx(LOOPS[scope, what, blocks, warps], rel=within)


class _Fences(Observer):
    """Notes when the fences of the GPU issue."""

    def __init__(self, fences: list[int]) -> None:
        self.fences, self.at = fences, list[int]()

    def on_issue(self, cycle: int, sub_partition: int, warp: int, instruction: int) -> None:
        if instruction in self.fences:
            self.at.append(cycle)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row, marks=pytest.mark.slow if row[:2] in ([2, 16384], [4, 16384], [2, 32768]) else (), id=str(row)
        )
        for row in RECORD["rings"]
        if row[0] > 1 or row[1] == 2048
    ],
)
def test_fences_beside_bulk_copies(row: list[Any]) -> None:
    """They wait for those under way. With a ring of one large copy they last one here, and nearly two on an H200."""
    stages, size, blocks, _, _, measured = row
    args = ("u8[67108864]=0", "u32[1024]=0", "i32=120", "i32=40")
    launch = {"entry": f"ring<{stages}, {size}>", "grid": blocks, "block": 64, "shared": stages * size, "args": args}
    spec = launch_spec(SOURCE, "h200", launch | {"caches": "warm", "compile_options": ("-arch=sm_90a",)})
    counted = api.count(spec)
    fences = [i for i, one in enumerate(counted.program.instructions) if one.text.endswith("MEMBAR.ALL.GPU")]
    seen = _Fences(fences)
    options = TimingOptions(engine="simpy", observer=seen)
    schedule(counted.program, counted.launch, counted.execution.trace, counted.traffic.cost, spec.gpu, 1, options)
    within = 0.26 if blocks == 1 else 0.42
    assert (seen.at[30] - seen.at[5]) / 25 == pytest.approx(measured, rel=within)
