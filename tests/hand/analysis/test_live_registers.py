"""Live registers: small programs by hand, and bounds that hold for the ladder's."""

from __future__ import annotations

import pytest
from opcode_harness import program

from gemmsim.analysis.code.live_registers import live_registers
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch


def test_a_chain_by_hand() -> None:
    """R0 and R1 are written, added to R2, R2 is squared and stored at R4:R5, which were there from the start."""
    text = ["MOV R0, 0x1", "MOV R1, 0x2", "IADD3 R2, R0, R1, RZ", "IMAD R3, R2, R2, RZ", "STG.E [R4.64], R3"]
    #         R4 R5           + R0            + R1                   R4 R5 R2               R4 R5 R3          none
    assert live_registers(program(text, "sm_80")) == (2, 3, 4, 3, 3, 0)


def test_a_write_under_a_guard_ends_nothing() -> None:
    """Threads for which P0 does not hold keep R0, so that it is live before the second instruction, and before."""
    text = ["MOV R0, 0x1", "@P0 MOV R0, 0x2", "STG.E [R4.64], R0"]
    assert live_registers(program(text, "sm_80")) == (2, 3, 3, 0)


def test_what_is_not_known_is_not_counted() -> None:
    assert live_registers(program(["TEX R0, R1"], "sm_80")) == ()


@pytest.mark.parametrize(("kernel", "least"), [("tiled", 12), ("warptiled", 120)])
def test_of_the_ladder(kernel: str, least: int) -> None:
    """At most what a thread has; warptiled keeps 64 or more sums and what it multiplies; nothing before an EXIT."""
    gpu = load_gpu("a100-80gb")
    code = compile_kernel(ladder_launch(LadderCase(kernel, 256, 256, 256), gpu).kernel, gpu.arch, default_cache())
    live = live_registers(code)
    assert len(live) == len(code.instructions) and least < max(live) <= code.registers
    exits = [
        count for one, count in zip(code.instructions, live, strict=True) if one.opcode == "EXIT" and not one.predicate
    ]
    assert exits and min(exits) == 0
