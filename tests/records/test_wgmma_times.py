"""Chains of wgmma, timed on an H200, replayed through the model of the SM with the machine code that ran there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sm_builder import EXIT, ins, issues, program

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.parse import parse_operand
from gemmsim.isa.program import Instruction, Operand

H200 = load_gpu("h200")
RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_wgmma.json").read_text(encoding="utf-8"))
FIELDS = ("section", "a", "d", "columns", "a_in_registers", "multiplies", "passes", "groups", "cycles")
RUNS = [dict(zip(FIELDS, run, strict=True)) for run in RECORD["runs"]]
OPCODES = {"f16": "HGMMA.64x{}x16", "bf16": "HGMMA.64x{}x16", "tf32": "HGMMA.64x{}x8", "s8": "IGMMA.64x{}x32"}


@cache
def operands(text: str) -> tuple[Operand, ...]:
    return tuple(parse_operand(part.strip()) for part in text.split(",") if part.strip())


def instruction(run: dict[str, Any], code: list[Any]) -> Instruction:
    name, stall, hint, write, read, wait = code
    opcode, _, ending = name.partition(" ")
    if opcode == "close":
        opcode, ending = "HGMMA.64x8x16.F16", f"RZ, gdesc[URZ], RZ, {ending}"
    elif opcode == "multiply":
        opcode = OPCODES.get(run["a"], "QGMMA.64x{}x32").format(run["columns"])
        ending = f"R24, {'R4, ' if run['a_in_registers'] else ''}gdesc[UR8], R24, {ending}"
    return ins(opcode, stall, hint=bool(hint), write=write, read=read, wait=wait, operands=operands(ending))


def replay(run: dict[str, Any]) -> int:
    """Cycles from the first to the last clock, of the second of two repetitions that a barrier divides."""
    section = RECORD["sections"][run["section"]]
    begin, end = section["loop"]
    timed = [instruction(run, code) for code in section["code"]]
    code = program(*timed, ins("BAR.SYNC", 6), EXIT, arch="sm_90a")
    once = [*range(begin), *list(range(begin, end)) * run["passes"], *range(end, len(timed) + 1)]
    seen = issues(code, warps=4 * run["groups"], gpu=H200, pcs=[*once, *once, len(timed) + 1])
    first, last = ([cycle for cycle, _, i in seen.seen if i == of] for of in (0, len(timed) - 1))
    return max(last) - min(first[4 * run["groups"] :])


def errors(runs: list[dict[str, Any]]) -> np.ndarray:
    return np.array([replay(run) / run["cycles"] - 1 for run in runs])


@pytest.mark.parametrize(("multiplies", "most"), [(1, 0.05), (8, 0.025), (64, 0.005)])
def test_chains_of_one_warpgroup(multiplies: int, most: float) -> None:
    """Every type, A in registers and in shared memory, 8 to 256 columns."""
    runs = [r for r in RUNS if (r["groups"], r["multiplies"]) == (1, multiplies)][::2]
    assert len(runs) > 35
    assert np.abs(errors(runs)).max() < most


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_long_chains_of_several_warpgroups_are_a_little_short(groups: int) -> None:
    """What a warpgroup loses to another one is not modelled."""
    runs = [r for r in RUNS if (r["groups"], r["multiplies"], r["a"]) == (groups, 64, "f16")][::4]
    assert len(runs) >= 4
    found = errors(runs)
    assert found.min() > -0.07
    assert found.max() < 0
    assert found.mean() > -0.045
