"""Which accesses make blocks take turns: global atomics with a result, and strong loads, both in loops only."""

from __future__ import annotations

import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace import micro
from gemmsim.trace.turns import takes_turns, with_turns


def marks(*texts: str) -> list[int]:
    """TAKES_TURN or POLLS of each of the instructions, 0 for the others."""
    instructions = tuple(parse_instruction(16 * number, text, 0) for number, text in enumerate(texts))
    lowered = with_turns(Program("test", "test", "sm_90", "c", instructions, (), 64, 1024, 0, 1, (), 0x210))
    found = [0] * len(texts)
    for row in lowered.code.tolist():
        found[row[micro.INSTRUCTION]] |= row[micro.FLAGS] & (micro.TAKES_TURN | micro.POLLS)
    assert takes_turns(lowered) == any(found)
    return found


ATOMIC, POLL = "ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR4][R2.64], R5", "LDG.E.STRONG.GPU R5, desc[UR4][R2.64]"
BACK = "@P0 BRA `(0x10)"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["NOP", POLL, BACK, "EXIT"], [0, micro.POLLS, 0, 0]),
        (["NOP", ATOMIC, BACK, "EXIT"], [0, micro.TAKES_TURN, 0, 0]),
        ([POLL, "NOP", BACK, ATOMIC, "EXIT"], [0] * 5),  # neither is in the loop
        (["NOP", "LDG.E R5, desc[UR4][R2.64]", BACK, "EXIT"], [0] * 4),  # another block's store need not be seen
        (["NOP", "RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", BACK, "EXIT"], [0] * 4),  # returns nothing
        (["NOP", "ATOMG.E.ADD.STRONG.GPU PT, RZ, desc[UR4][R2.64], R5", BACK, "EXIT"], [0] * 4),
        (["NOP", "ATOMS.ADD R5, [R2], R5", BACK, "EXIT"], [0] * 4),  # of the block's own memory
        (["NOP", "LD.E.STRONG.SYS R5, desc[UR4][R2.64]", BACK, "EXIT"], [0, micro.POLLS, 0, 0]),
        # A function counts as in a loop where it is called from one; its own end is its first return.
        (
            ["NOP", "CALL.REL.NOINC `(0x40)", BACK, "EXIT", POLL, "RET.REL.NODEC R2 `(0x0)", POLL],
            [0, 0, 0, 0, micro.POLLS, 0, 0],
        ),
        (["NOP", "CALL.REL.NOINC `(0x30)", "EXIT", POLL, "RET.REL.NODEC R2 `(0x0)"], [0] * 5),
        (
            ["CALL.REL.NOINC `(0x20)", "EXIT", POLL, "@P0 CALL.REL.NOINC `(0x20)", "RET.REL.NODEC R2 `(0x0)"],
            [0, 0, micro.POLLS, 0, 0],
        ),
    ],
)
def test_marks(texts: list[str], expected: list[int]) -> None:
    assert marks(*texts) == expected
