"""A small Report made by hand: two warps' worth of a tiled kernel on a made-up launch, every number easy to check."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Verification
from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.analysis.limits.roofline import roofline
from gemmsim.analysis.verdict.advice import advise
from gemmsim.analysis.verdict.bottleneck import find_bottleneck
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Control, Instruction, Program, SourceLine
from gemmsim.launch.spec import Labels
from gemmsim.memory.types import InstructionTraffic
from gemmsim.report.report import Report, SamplingReport
from gemmsim.sm.types import STALL_REASONS, Timing
from gemmsim.support.provenance import Provenance

SOURCE = "def tiled(A, B, C):\n    a = A[row, k]\n    acc += tile_a[ty, k] * tile_b[k, tx]\n    C[row, col] = acc\n"
FILE = "tiled.py"


def instruction(index: int, mnemonic: str, line: int) -> Instruction:
    opcode, *modifiers = mnemonic.split(".")
    control = Control(1, False, None, None, 0, 0)
    return Instruction(
        16 * index, opcode, tuple(modifiers), (), None, control, (SourceLine(FILE, line),), f"{mnemonic} R0", 0
    )


def traffic(index: int, space: str, op: str, width_bytes: int, **values: float) -> InstructionTraffic:
    counted = [field.name for field in fields(InstructionTraffic)][4:]
    every: dict[str, Any] = dict.fromkeys(counted, 0.0) | values
    return InstructionTraffic(index=index, space=space, op=op, width_bytes=width_bytes, **every)


# mnemonic, source line, warp-level executions
CODE = (
    ("LDG.E", 2, 100.0),
    ("LDS.128", 3, 100.0),
    ("LDS", 3, 400.0),
    ("FFMA", 3, 400.0),
    ("IADD3", 3, 50.0),
    ("STG.E", 4, 10.0),
)
ROWS = (
    traffic(0, "global", "ld", 4, requests=100, sectors=3200, wavefronts=3200, l1_hit_sectors=2400, l2_sectors=800,
            ideal_sectors=400, dram_sectors=200, used_bytes=12800),
    traffic(1, "shared", "ld", 16, requests=100, wavefronts=200, used_bytes=1600),
    traffic(2, "shared", "ld", 4, requests=400, wavefronts=800, conflicts=400, used_bytes=51200),
    traffic(5, "global", "st", 4, requests=10, sectors=40, wavefronts=10, l2_sectors=40, ideal_sectors=40,
            used_bytes=1280),
)  # fmt: skip


def evidence(
    code: tuple[tuple[str, int, float], ...] = CODE,
    rows: tuple[InstructionTraffic, ...] = ROWS,
    grid: tuple[int, int, int] = (27, 8, 1),
    **timing: Any,
) -> Evidence:
    """On an A100: 216 blocks of 256 threads; 14,100 cycles, issue slots 40 % busy unless `timing` says otherwise."""
    gpu = load_gpu("a100-80gb")
    program = Program(
        name="tiled", symbol="_Z5tiled", arch="sm_80", abi="numba",
        instructions=tuple(instruction(i, mnemonic, line) for i, (mnemonic, line, _) in enumerate(code)),
        blocks=(), registers=32, static_shared_bytes=8192, local_bytes=0, barriers=1, parameters=(), parameter_base=0,
        toolchain={"numba-cuda": "0.30.4"}, source={FILE: SOURCE}, cubin_sha256="0" * 64,
    )  # fmt: skip
    clock_hz = 1.41e9
    base = Timing(
        cycles=14_100.0, duration_us=14_100 / clock_hz * 1e6 + gpu.launch.overhead_us, sm_clock_hz=clock_hz, waves=0.25,
        issue_active_pct=40.0, achieved_occupancy_pct=50.0, pipe_utilisation_pct={"fmaheavy": 20.0, "lsu": 30.0},
        stalls={"selected": 1.0, "short_scoreboard": 6.0, "barrier": 1.0},
        stall_samples=np.zeros((len(code), len(STALL_REASONS))), simulated_instructions=1060, simulated_cycles=14_100.0,
    )  # fmt: skip
    counters = {
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 100.0,
        "l1tex__data_pipe_lsu_wavefronts.sum": 4210.0,
        "smsp__inst_executed.sum": 1060.0,
    }
    blocks = grid[0] * grid[1] * grid[2]
    timed = replace(base, **timing)
    return Evidence(
        program=program, gpu=gpu, grid=grid, block=(256, 1, 1), dynamic_shared_bytes=0,
        executed=tuple(count for _, _, count in code), traffic=rows, counters=counters,
        provenance=dict.fromkeys(counters, Provenance.EXACT),
        occupancy=theoretical_occupancy(32, 8192, 256, gpu, None, blocks),
        roofline=roofline(25_600.0, 6400.0, 26_880.0, 107_520.0, timed.duration_us / 1e6, gpu),
        timing=timed,
    )  # fmt: skip


def report(given: Evidence | None = None) -> Report:
    given = given or evidence()
    return Report(
        labels=Labels("tiled", "square tiles", 8, 8, 200, {"tile": 32}),
        evidence=given,
        arguments=("f32[8,200]", "f32[200,8]", "f32[8,8]"),
        verified=Verification(True, 1.5e-7, "yes, relative error 1.5e-07"),
        sampling=SamplingReport(2, 216, 1060, ("2 of 216 blocks stand for all",)),
        bottleneck=find_bottleneck(given),
        advice=advise(given),
        notes=("caches start empty",),
        not_modelled=("instruction cache misses",),
        versions={"gemmsim": "0.1.0"},
    )
