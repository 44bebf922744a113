"""Registers that hold predicates in single bits: which of the operations on them a slice of the program keeps."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace import micro
from gemmsim.trace.execute import Executor
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.types import Launch

PRODUCT = "FFMA R2, R4, R5, R2"
CLEAR, SET = "LOP3.LUT R2, R2, 0xfffffffd, RZ, 0xc0, !PT", "@P0 LOP3.LUT R2, R2, 0x2, RZ, 0xfc, !PT"
OTHER = "LOP3.LUT R6, R2, 0x2, RZ, 0xfc, !PT"
READ, USE = "LOP3.LUT P1, RZ, R2, 0x2, RZ, 0xc0, !PT", "@P1 MOV R9, R9"


def kept(*texts: str) -> list[bool]:
    """Return which of these instructions are kept for the counts; the last one is guarded, which decides a count."""
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate([*texts, USE, "EXIT"]))
    program = Program("text", "text", "sm_80", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    one = Executor(program, Launch((1, 1, 1), (1, 1, 1), (), parameters=()))
    left = one.count_slice
    assert left is not None
    idle = np.isin(left[one.micro.start[:-1], micro.OP], (CONTROL_NUMBER["nop"], CONTROL_NUMBER["idle"]))
    return (~idle[: len(texts)]).tolist()


@pytest.mark.parametrize(
    ("texts", "needed"),
    [
        # The product's bits are behind bit 1, which is all that is read
        ((PRODUCT, CLEAR, SET, READ), [False, True, True, True]),
        # A bit is read that nothing has set since
        ((PRODUCT, SET, READ), [True, True, True]),
        ((PRODUCT, CLEAR, SET, READ.replace("0x2", "0x1")), [True, False, False, True]),
        ((PRODUCT, CLEAR, SET, READ.replace("0x2", "0x3")), [True, True, True, True]),
        # The whole register is read
        ((PRODUCT, CLEAR, SET, "ISETP.NE.AND P1, PT, R2, RZ, PT"), [True, True, True, True]),
        ((PRODUCT, CLEAR, SET, "LOP3.LUT P1, RZ, R2, R8, RZ, 0xc0, !PT"), [True, True, True, True]),
        # A copy of one bit is read, and one of other bits
        ((PRODUCT, CLEAR, SET, "LOP3.LUT R6, R2, 0x2, RZ, 0xc0, !PT", READ.replace("R2", "R6")), [False, *[True] * 4]),
        ((PRODUCT, CLEAR, SET, "MOV R6, R2", READ.replace("R2", "R6")), [True] * 5),
        # A copy with one bit more: of it another bit is read
        ((PRODUCT, CLEAR, SET, OTHER, READ.replace("R2", "R6").replace("0x2", "0x1")), [True] * 5),
        ((PRODUCT, CLEAR, SET, "LOP3.LUT R6, R2, 0x1, RZ, 0xfc, !PT", READ.replace("R2", "R6")), [True] * 5),
        # Another bit is set between, which changes nothing, and then the register, which changes all
        ((PRODUCT, CLEAR, SET, SET.replace("0x2", "0x4"), READ), [False, True, True, False, True]),
        ((CLEAR, SET, PRODUCT, READ), [True, True, True, True]),
        ((CLEAR, SET, PRODUCT.replace("R4, R5, R2", "R4, R5, R6"), READ), [False, False, True, True]),
        # More bits are cleared than are followed: what is left counts as read, but not the bit that is followed
        ((PRODUCT, SET, "LOP3.LUT R2, R2, 0xfffffffc, RZ, 0xc0, !PT", READ), [True, False, True, True]),
        ((PRODUCT, SET, "LOP3.LUT R2, R2, 0xfffffffe, RZ, 0xc0, !PT", READ), [True, True, True, True]),
        # Whether any bit of the result is set is asked as well
        ((PRODUCT, CLEAR, SET.replace("R2, R2", "P1, R2, R2", 1)), [True, True, True]),
    ],
)
def test_bits_that_are_set_alone_are_followed_alone(texts: tuple[str, ...], needed: list[bool]) -> None:
    assert kept(*texts) == needed
