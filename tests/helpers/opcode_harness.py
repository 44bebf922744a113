"""Runs one SASS instruction, as text, through parser, lowering and compiled executor, from given registers."""

from __future__ import annotations

import struct

import numpy as np

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor
from gemmsim.trace.lower.context import Context
from gemmsim.trace.types import Launch

ALL = 0xFFFFFFFF


def f32(value: float) -> int:
    """The bits of a float32."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def f64(value: float) -> tuple[int, int]:
    """The low and the high word of a float64."""
    low, high = struct.unpack("<2I", struct.pack("<d", value))
    return low, high


def program(text: str | list[str], arch: str) -> Program:
    """Parse instructions, one or several, and add EXIT."""
    """Parse instructions, one or several, and add EXIT."""
    texts = [*([text] if isinstance(text, str) else text), "EXIT"]
    instructions = tuple(parse_instruction(16 * i, t, 0) for i, t in enumerate(texts))
    return Program("test", "test", arch, "c", instructions, (), 64, 1024, 0, 1, (), 0x210)


def _row(context: Context, name: str) -> int:
    """R3, UR4, P0, UP1."""
    kind = name.rstrip("0123456789")
    base = {
        "R": 0,
        "UR": context.uniform_base,
        "P": context.predicate_base,
        "UP": context.uniform_predicate_base,
    }[kind]
    return base + int(name[len(kind) :])


def run(text: str | list[str], arch: str = "sm_90", warps: int = 1, **given: object) -> dict[str, np.ndarray]:
    """Execute `text`, one instruction or several, for full warps; returns all registers of the last one by name.

    given   R1=5, UR2=7, P0=True: a word (or one a lane); predicates are truth values. Others start at 0.
    """
    code = program(text, arch)
    context, executor = Context(code), Executor(code, Launch((1, 1, 1), (32 * warps, 1, 1), ()))
    rows = executor.initial.reshape(warps, -1, 32)
    for name, value in given.items():
        words = np.broadcast_to(np.asarray(value), 32)
        if name.lstrip("U").startswith("P"):
            words = np.where(words, ALL, 0)
        rows[:, _row(context, name)] = words.astype(np.int64) & ALL
    executor.trace([0])
    after = executor.state.registers.reshape(warps, -1, 32)[-1]
    names = [f"{kind}{i}" for kind, count in (("R", 64), ("UR", 60), ("P", 7), ("UP", 7)) for i in range(count)]
    return {name: after[_row(context, name)].copy() for name in names}


def one(text: str, result: str, **given: object) -> int | bool:
    """The value of one register after `text`; all lanes must agree."""
    row = run(text, **given)[result]
    assert (row == row[0]).all(), row
    return bool(row[0]) if result.lstrip("U").startswith("P") else int(row[0])
