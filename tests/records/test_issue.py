"""Loops of the ladder's own machine code, timed on an H200, replayed: issue, pipes and register ports alone.

Without barriers and loads the warps of these loops advance alike there: with the youngest first, one would end long
before the other and the last be alone (known deviation 17). So they are replayed with the policy that lets them advance
alike.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Instruction, Program
from gemmsim.sm.code import issue_table
from gemmsim.sm.compiled.core import CompiledCore
from gemmsim.sm.memory_path import Rates
from gemmsim.sm.streams import WarpStream

DATA = json.loads((Path(__file__).parent / "h200_issue.json").read_text())
H200 = load_gpu("h200")
LENGTH = 256  # instructions of a pass, then the three of the loop
END = ("EXIT", "000fea0003800000000000000000794d")
WARPS = ("4", "8", "16")


def cycles_a_pass(sequence: list[int], warps: int) -> float:
    rows = [DATA["instructions"][i] for i in sequence] * (LENGTH // len(sequence))
    rows += [*DATA["tail"], END]
    labels = {".L_x_0": 0}
    code: list[Instruction] = [
        parse_instruction(16 * i, text, int(encoding, 16), labels=labels) for i, (text, encoding) in enumerate(rows)
    ]
    table = issue_table(Program("loop", "loop", "sm_90", "c", tuple(code), (), 72, 0, 0, 1, (), 0), H200)

    def cycles(passes: int) -> float:
        pcs = np.array([*list(range(len(rows) - 1)) * passes, len(rows) - 1], np.int32)
        stream = WarpStream(pcs, np.zeros((0, 6), np.int64))
        core = CompiledCore(table, H200, Rates.share(H200, 1, 1.98e9), oldest_block_first=False)
        return core.run([[stream] * warps], 1).cycles

    return (cycles(6) - cycles(2)) / 4


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[str, float]]:
    """Loop -> warps -> (replayed - measured) / measured."""
    return {
        loop["name"]: {w: cycles_a_pass(loop["sequence"], int(w)) / loop["cycles"][w] - 1 for w in WARPS}
        for loop in DATA["loops"]
    }


def of(errors: dict[str, dict[str, float]], first: str, warps: str) -> np.ndarray:
    return np.array([error[warps] for name, error in errors.items() if name.startswith(first)])


@pytest.mark.parametrize("warps", WARPS)
def test_one_opcode_alone(errors, warps):
    assert len(of(errors, "s", warps)) > 80
    assert np.abs(of(errors, "s", warps)).max() < 0.03


@pytest.mark.parametrize("warps", WARPS)
def test_a_uniform_instruction_beside_a_vector_one(errors, warps):
    assert np.abs(of(errors, "p", warps)).max() < 0.03  # without a uniform operand
    assert np.abs(of(errors, "q", warps)).max() < 0.03  # with one


@pytest.mark.parametrize(
    ("warps", "mean", "within_3_pct"), [("4", 0.018, 0.90), ("8", 0.025, 0.87), ("16", 0.015, 0.88)]
)
def test_neighbours_in_the_ladder(errors, warps, mean, within_3_pct):
    found = np.abs(of(errors, "c2", warps))
    assert len(found) > 300
    assert found.mean() < mean
    assert (found < 0.03).mean() > within_3_pct


@pytest.mark.parametrize(("warps", "mean"), [("4", 0.02), ("8", 0.042), ("16", 0.04)])
def test_stretches_of_32_and_64_instructions(errors, warps, mean):
    found = of(errors, "w", warps)
    assert len(found) > 50
    assert np.abs(found).mean() < mean
