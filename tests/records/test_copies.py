"""Copies to shared memory and loads that miss, of one SM of an H200: `tests/sources/copies.cu`, predicted.

Also what issues beside matrix multiplications: `tests/sources/beside_multiplications.cu`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timed import timing

from gemmsim.gpu.load import load_gpu

HERE = Path(__file__).parent
H200 = load_gpu("h200")
COPIES, BESIDE = (
    json.loads((HERE / f"h200_{name}.json").read_text(encoding="utf-8")) for name in ("copies", "beside_multiplications")
)
DATA, OUT, LOG = "u8[33554432]=0", "f32[1024]=0", "u32[64]=0"


def predicted_step(name: str, entry: str, warps: int, shared: int, arguments: list[str], steps: int = 16) -> float:
    """Return the cycles a step; "steps" among the arguments is how many there are."""
    cycles = []
    for number in (steps, 2 * steps):
        args = tuple(f"i32={number}" if argument == "steps" else argument for argument in arguments)
        file = f"{name}.cu"
        source = (HERE.parent / "sources" / file).read_text(encoding="utf-8")
        found = timing(source, file=file, entry=entry, grid=1, block=32 * warps, shared=shared, args=args, gpu=H200, caches="warm")
        cycles.append(found.cycles)
    return (cycles[1] - cycles[0]) / steps


def copies(entry: str, warps: int, row: int) -> float:
    arguments = [DATA, f"i32={row}", "steps", OUT, LOG]
    return predicted_step("copies", entry, warps, 512 * 16 * warps if warps < 24 else 0, arguments)


def beside(entry: str, warps: int, row: int) -> float:
    arguments = [DATA, f"i32={row}", "steps", "f32=1.0001", "f32=0.5", "i32=3", "i32=5", OUT, LOG]
    return predicted_step("beside_multiplications", entry, warps, 98304 if entry.startswith("wgmma") else 0, arguments)


if __name__ == "__main__":
    for part in ("bursts", "beside_loads", "misses"):
        for entry, warps, row, measured in COPIES[part]["rows"]:
            p = copies(entry, warps, row)
            print(part, entry, warps, row, f"{p:.0f} {measured} {100 * (p / measured - 1):+.0f}", flush=True)
    for entry, warps, row, measured in BESIDE["steps"]["rows"]:
        p = beside(entry, warps, row)
        print(entry, warps, row, f"{p:.0f} {measured} {100 * (p / measured - 1):+.0f}", flush=True)
