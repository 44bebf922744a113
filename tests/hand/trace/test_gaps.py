"""What a kernel needs and gemmsim lacks is named all at once, each thing once."""

from __future__ import annotations

import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.lower import lower
from gemmsim.trace.lower.gaps import UnsupportedError


def program(*texts: str) -> Program:
    instructions = tuple(parse_instruction(16 * number, text, 0) for number, text in enumerate(texts))
    return Program("test", "test", "sm_90", "c", instructions, (), 64, 0, 0, 1, (), 0x210)


def refusal(*texts: str) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as error:
        lower(program(*texts))
    return error.value


def test_one_missing_opcode_is_named_with_its_instruction_and_no_guess() -> None:
    """LEAC is near to LEA, and no other opcode can stand for it."""
    assert str(refusal("FADD R0, R0, R1", "LEAC R20, 0x10", "EXIT")) == (
        "opcode LEAC in 'LEAC R20, 0x10' at 0x0010 of kernel 'test' (sm_90): gemmsim has no semantics for it yet, "
        "and it cannot be passed over: other instructions need what it does"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FADD.ODD R0, R0, R1", "and it cannot be passed over: other instructions need its result"),
        ("STG.E.ODD desc[UR4][R2.64], R0", "and it cannot be passed over: other instructions need what it stores"),
        ("BRA.ODD `(0x0)", "and it cannot be passed over: other instructions need its threads where it leads"),
        ("WARPSYNC.ODD R0", "and it cannot be passed over: other instructions need the order that it keeps"),
        ("BPT.DRAIN 0x0", "and it could be passed over: the kernel computes the same without it"),
        ("CCTLT.IVALL", "and it could be passed over: the kernel computes the same without it"),
    ],
)
def test_a_refusal_says_whether_the_gap_could_be_passed_over(text: str, said: str) -> None:
    assert str(refusal(text, "EXIT")).endswith(f"gemmsim has no semantics for it yet, {said}")


def test_one_of_several_gaps_could_be_passed_over() -> None:
    assert str(refusal("CCTLT.IVALL", "LEAC R20, 0x10", "EXIT")).endswith(
        "; could be passed over, since the kernel computes the same without: opcode CCTLT"
    )


def test_all_that_is_missing_is_named_once() -> None:
    error = refusal(
        "LEAC R20, 0x10",
        "FADD.ODD R0, R0, R1",
        "FADD R0, R0, R1",
        "LEAC R21, 0x20",
        "@P0 ABSENT R1",
        "SEL R0, R1",
        "EXIT",
    )
    assert [(gap.name, gap.offset, gap.count) for gap in error.gaps] == [
        ("opcode LEAC", 0x00, 2),
        ("modifier .ODD of FADD.ODD", 0x10, 1),
        ("opcode ABSENT", 0x40, 1),
        ("operand form of SEL", 0x50, 1),
    ]
    assert str(error) == (
        "kernel 'test' (sm_90) needs 4 things without semantics yet: opcode LEAC, 'LEAC R20, 0x10' at 0x0000; "
        "modifier .ODD of FADD.ODD, 'FADD.ODD R0, R0, R1' at 0x0010; opcode ABSENT, '@P0 ABSENT R1' at 0x0040; "
        "operand form of SEL, 'SEL R0, R1' at 0x0050; "
        "none of them can be passed over: other instructions need what they do"
    )


def test_what_is_complete_is_lowered() -> None:
    assert len(lower(program("FADD R0, R0, R1", "EXIT")).start) == 3
