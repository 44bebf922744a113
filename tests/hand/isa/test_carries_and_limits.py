"""Carries out of sums of three terms, shifts that wrap at 64, and conversions at the ends of 64 bits."""

from __future__ import annotations

import pytest
from opcode_harness import ALL, f32, f64, run

_LOW_63, _HIGH_63 = f64(2.0**63)
_LOW_64, _HIGH_64 = f64(2.0**64)
_NEAR_63 = f64(2.0**63 - 2.0**10)  # the largest float64 below

CASES = [
    # 0xFFFFFFFE_00000001 + 0x1_FFFFFFFF is 2**64
    ("IMAD.WIDE.U32 R0, P0, R2, R3, R4", {"R2": ALL, "R3": ALL, "R4": ALL, "R5": 1}, {"R0": 0, "R1": 0, "P0": ALL}),
    (
        "IMAD.WIDE.U32 R0, P0, R2, R3, R4",
        {"R2": ALL, "R3": ALL, "R4": ALL - 1, "R5": 1},
        {"R0": ALL, "R1": ALL, "P0": 0},
    ),
    # and with the carry that comes in, where the sum without it is 2**64 - 1
    (
        "IMAD.WIDE.U32.X R0, P0, R2, R3, R4, P1",
        {"R2": ALL, "R3": ALL, "R4": ALL - 1, "R5": 1, "P1": True},
        {"R0": 0, "R1": 0, "P0": ALL},
    ),
    ("LEA R0, P0, R1, -R2, 0x2", {"R1": 5, "R2": 3}, {"R0": 17, "P0": ALL}),
    ("LEA R0, P0, R1, -R2, 0x2", {"R1": 5, "R2": 21}, {"R0": ALL, "P0": 0}),
    ("LEA.X R0, ~R1, R2, 0x2, P0", {"R1": 5, "R2": 3, "P0": True}, {"R0": ALL - 16}),  # ~20 + 3 + 1
    ("LEA.HI R0, R1, -R2, R3, 0x4", {"R1": 0xF0000000, "R2": 1, "R3": 2}, {"R0": 46}),
    ("SHF.L.W.U64.HI R0, R1, R2, R3", {"R1": 5, "R2": 97, "R3": 9}, {"R0": 10}),  # by 97 - 64
    ("SHF.R.W.U64 R0, R1, R2, R3", {"R1": 5, "R2": 97, "R3": 18}, {"R0": 9}),
    ("F2I.S64.F64.TRUNC R0, R2", {"R2": _LOW_63, "R3": _HIGH_63}, {"R0": ALL, "R1": 0x7FFFFFFF}),
    ("F2I.S64.F64.TRUNC R0, R2", {"R2": _NEAR_63[0], "R3": _NEAR_63[1]}, {"R0": 0xFFFFFC00, "R1": 0x7FFFFFFF}),
    ("F2I.S64.F64.TRUNC R0, R2", {"R2": _LOW_63, "R3": _HIGH_63 | 1 << 31}, {"R0": 0, "R1": 0x80000000}),
    ("F2I.U64.F64.TRUNC R0, R2", {"R2": _LOW_63, "R3": _HIGH_63}, {"R0": 0, "R1": 0x80000000}),
    ("F2I.U64.F64.TRUNC R0, R2", {"R2": _LOW_64, "R3": _HIGH_64}, {"R0": ALL, "R1": ALL}),
    ("I2F.U64 R0, R2", {"R2": ALL, "R3": ALL}, {"R0": f32(2.0**64)}),
    ("I2F.U64.RZ R0, R2", {"R2": ALL, "R3": ALL}, {"R0": f32(2.0**64 - 2.0**40)}),
    # half way between two floats, to even; one more, up
    ("I2F.U64 R0, R2", {"R2": 0, "R3": 0xFFFFFF80}, {"R0": f32(2.0**64)}),
    ("I2F.U64 R0, R2", {"R2": 1, "R3": 0xFFFFFE80}, {"R0": f32(2.0**64 - 2.0**40)}),
    ("I2F.U64 R0, R2", {"R2": 0, "R3": 0xFFFFFE80}, {"R0": f32(2.0**64 - 2.0**41)}),
]


@pytest.mark.parametrize(("text", "given", "expected"), CASES)
def test_a_result(text: str, given: dict[str, object], expected: dict[str, int]) -> None:
    after = run(text, **given)
    assert {name: int(after[name][0]) for name in expected} == expected
