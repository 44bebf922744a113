"""Floating-point operations: by precision, per thread, weighted by the blocks that each executed one stands for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gemmsim.analysis.code.operations import floating_point_operations
from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program

TEXTS = (
    "FFMA R0, R1, R2, R3",
    "HFMA2 R0, R1, R2, R3",
    "HFMA2.MMA R3, -RZ, RZ, 0, 0",
    "HFMA2 R3, -RZ, RZ, 1, 1",
    "EXIT",
)


def test_constants_that_hfma2_loads_are_no_operations() -> None:
    """An FFMA is 2, an HFMA2 is 4 a thread; two blocks of 32 threads, of which the second one stands for three."""
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate(TEXTS))
    program = Program("test", "test", "sm_80", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    threads = np.full((2, len(TEXTS)), 32)
    trace = SimpleNamespace(weight=np.array([1.0, 3.0]), threads_executed=threads)
    found = floating_point_operations(program, trace)  # type: ignore[arg-type]
    assert found.by_precision == {"fp32": 2 * 32 * 4, "fp64": 0, "fp16": 4 * 32 * 4}
    assert (found.precision, found.total) == ("fp16", 512)
