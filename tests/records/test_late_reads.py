"""Registers read by instructions of variable latency, and IMAD.WIDE's two passes: measured on an H100, replayed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sm_builder import EXIT, ins, program, simulate

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.program import Instruction, Operand, OperandKind
from gemmsim.sm.streams import RecordCycles

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h100_late_reads.json").read_text(encoding="utf-8"))
H100 = load_gpu("h100")
GPU = replace(H100, clock=replace(H100.clock, sm_load_hz=1.98e9))
WARPS, SLOTS = 8, 497
ALONE = {filler: cycles for instead, filler, _, _, cycles in RECORD["runs"] if not instead}
TEXTS: dict[str, str] = RECORD["fillers"] | RECORD["instead"]


def operand(text: str) -> Operand:
    register = re.fullmatch(r"(\[?)R(Z|\d+)(\.64)?]?", text)
    if register is None:
        return Operand(OperandKind.IMMEDIATE)
    kind = OperandKind.ADDRESS if register[1] else OperandKind.REGISTER
    return Operand(kind, index=-1 if register[2] == "Z" else int(register[2]), wide=register[3] is not None)


def instruction(text: str) -> Instruction:
    mnemonic, operands = text.split(" ", 1)
    return ins(mnemonic, 1, operands=tuple(map(operand, operands.split(", "))))


def cycles_of(body: list[Instruction]) -> float:
    """Of a pass through `body` by one of eight warps of a sub-partition."""
    code = program(*body, ins("BRA", 5), EXIT)
    pcs, idle = [*range(len(body) + 1)], [len(body) + 1]

    def cycles(passes: int) -> float:
        streams = [pcs * passes + idle if warp % 4 == 0 else idle for warp in range(4 * WARPS)]
        return simulate(code, streams=streams, cost=RecordCycles(1, 0, 0, 0), gpu=GPU, warm_code=True).cycles

    return (cycles(6) - cycles(2)) / (4 * WARPS)


@cache
def predicted(instead: str, filler: str, period: int) -> float:
    """FADDs and FFMAs write R40 to R43 in turn."""
    fillers = [instruction(TEXTS[filler].replace("R40", f"R{40 + n}")) for n in range(4)]
    other = instruction(TEXTS[instead]) if instead else fillers[0]
    return cycles_of([other if n % period == 0 else fillers[n % 4] for n in range(SLOTS)])


def slots(instead: str, filler: str, period: int, how_many: int, cycles: float) -> tuple[float, float]:
    """The cycles that one of the other instructions takes: predicted, and on the H100."""
    alone = predicted("", filler, 8)
    model = (predicted(instead, filler, period) - alone) / how_many + alone / SLOTS
    return model, (cycles - ALONE[filler]) / how_many + ALONE[filler] / SLOTS


def few(instead: str) -> list[tuple[str, int, int, float]]:
    """One instruction in 16, or 32 where queues are full at 16."""
    runs = {(filler, period): rest for one, filler, period, *rest in RECORD["runs"] if one == instead}
    found = []
    for filler in ALONE:
        period = 16 if instead != "LDGSTS" else 32
        if (filler, period) in runs:
            found.append((filler, period, *runs[filler, period]))
    return found


@pytest.mark.parametrize(
    "instead", ["LDG", "STG", "STG128", "LDS", "LDSodd", "LDSM", "STS", "STS128", "LDGSTS", "SHFL", "MUFU"]
)
def test_registers_read_late_take_slots_where_their_bank_is_busy(instead: str) -> None:
    seen = 0
    for run in few(instead):
        model, measured = slots(instead, *run)
        assert model == pytest.approx(measured, abs=0.2), run
        seen += 1
    assert seen >= 6


# Slots that IMAD.WIDE takes too many or, below 0, too few: deviation 58.
WIDE_IS_OFF = {
    ("WIDE", "E3"): 1,
    ("WIDE", "O2"): -1,
    ("WIDEodd", "E3"): 1,
    ("WIDEodd", "EO"): -1,
    ("WIDEodd", "O1"): -1,
    ("WIDEodd", "O2"): -1,
}


@pytest.mark.parametrize("instead", ["WIDE", "WIDEodd"])
def test_two_passes_take_three_slots(instead: str) -> None:
    """Three beside instructions that read no register of its banks; more where its reads need them."""
    runs = few(instead)
    assert len(runs) == 9
    for run in runs:
        model, measured = slots(instead, *run)
        assert model - WIDE_IS_OFF.get((instead, run[0]), 0) == pytest.approx(measured, abs=0.15), run


NAMES = {
    "FADDi": "FADD R40, RZ, 1",
    "IADDR,R": "IADD3 R40, RZ, RZ, RZ",
    "s W16,14": "IMAD.WIDE R36, R16, 4, R14",
}


@pytest.mark.parametrize(
    "names",
    [["FADDi"], ["FADDi", "IADDR,R"], ["2 FADDi", "IADDR,R"], ["2 IADDR,R"], ["2 FADDi"], ["4 FADDi"], ["8 FADDi"]],
)
def test_nothing_issues_in_the_two_cycles_behind(names: list[str]) -> None:
    """Loops that no register port limits: 4, 5, 6, 6, 6, 8 and 12 cycles."""
    loops = {name: (times, cycles) for name, times, cycles in RECORD["loops"]}
    times, cycles = loops["FADDi"]
    closing = cycles - times  # what the end of a pass takes, beside one FADD a cycle
    times, cycles = loops[" + ".join(["s W16,14", *names])]
    body = [instruction(NAMES["s W16,14"])]
    for one in names:
        count, what = one.split(" ") if " " in one else ("1", one)
        body += [instruction(NAMES[what])] * int(count)
    assert cycles_of(body * times) == pytest.approx(cycles - closing, rel=0.06)
