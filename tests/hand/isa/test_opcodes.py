"""Each opcode against results worked out by hand, edge values first."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import ALL, f32, f64, one, run

from gemmsim.support.errors import GemmsimError

T, F = True, False
NAN = 0x7FFFFFFF
TINY = 1  # the least subnormal float32
M = 0x80000000

INTEGER = [
    # IADD3: three addends; a minus is a complement plus one, whose carry counts
    ("IADD3 R0, R1, R2, R3", {"R1": 1, "R2": 2, "R3": 3}, {"R0": 6}),
    ("IADD3 R0, R1, -R2, RZ", {"R1": 5, "R2": 7}, {"R0": ALL - 1}),
    ("IADD3 R0, P0, R1, R2, RZ", {"R1": ALL, "R2": 1}, {"R0": 0, "P0": T}),
    ("IADD3 R0, P0, R1, R2, RZ", {"R1": ALL - 1, "R2": 1}, {"R0": ALL, "P0": F}),
    ("IADD3 R0, P0, R1, -R2, RZ", {"R1": 5, "R2": 5}, {"R0": 0, "P0": T}),  # no borrow
    ("IADD3 R0, P0, R1, -R2, RZ", {"R1": 5, "R2": 6}, {"R0": ALL, "P0": F}),  # borrow
    ("IADD3 R0, P0, R1, -R2, RZ", {"R1": 5, "R2": 0}, {"R0": 5, "P0": T}),  # x - 0 borrows nothing
    ("IADD3 R0, P0, P1, R1, R2, R3", {"R1": ALL, "R2": ALL, "R3": ALL}, {"R0": ALL - 2, "P0": T, "P1": T}),
    ("IADD3.X R0, R1, R2, RZ, P0, !PT", {"R1": 1, "R2": 2, "P0": T}, {"R0": 4}),
    ("IADD3.X R0, R1, ~R2, RZ, P0, !PT", {"R1": 9, "R2": 4, "P0": T}, {"R0": 5}),  # 9 - 4 with no borrow
    ("IADD3.X R0, R1, ~R2, RZ, P0, !PT", {"R1": 9, "R2": 4, "P0": F}, {"R0": 4}),
    ("UIADD3 UR0, UP0, UR1, UR2, URZ", {"UR1": ALL, "UR2": 2}, {"UR0": 1, "UP0": T}),
    ("UIADD3.X UR0, UR1, UR2, URZ, UP0, !UPT", {"UR1": 1, "UR2": 1, "UP0": T}, {"UR0": 3}),
    ("IADD R0, R1, -R2", {"R1": 1, "R2": 3}, {"R0": ALL - 1}),
    ("IADD.64 R0, R2, -R4", {"R2": 0, "R3": 1, "R4": 1, "R5": 0}, {"R0": ALL, "R1": 0}),
    ("VIADD R0, R1, 0xffffffff", {"R1": 4}, {"R0": 3}),
    # IMAD and its many names
    ("IMAD R0, R1, R2, R3", {"R1": 0x10000, "R2": 0x10000, "R3": 7}, {"R0": 7}),
    ("IMAD R0, R1, R2, -R3", {"R1": 3, "R2": 4, "R3": 2}, {"R0": 10}),
    ("IMAD R0, -R1, R2, R3", {"R1": 3, "R2": 4, "R3": 2}, {"R0": ALL - 9}),
    ("IMAD.MOV.U32 R0, RZ, RZ, R1", {"R1": 42}, {"R0": 42}),
    ("IMAD.IADD R0, R1, 0x1, R2", {"R1": 40, "R2": 2}, {"R0": 42}),
    ("IMAD.SHL.U32 R0, R1, 0x4, RZ", {"R1": 0x40000001}, {"R0": 4}),
    ("IMAD.X R0, R1, 0x1, R2, P0", {"R1": 1, "R2": 2, "P0": T}, {"R0": 4}),
    ("IMAD.WIDE R0, R2, R3, RZ", {"R2": ALL, "R3": 2}, {"R0": ALL - 1, "R1": ALL}),  # -1 * 2
    ("IMAD.WIDE.U32 R0, R2, R3, RZ", {"R2": ALL, "R3": 2}, {"R0": ALL - 1, "R1": 1}),
    ("IMAD.WIDE.U32 R0, R2, R3, R4", {"R2": ALL, "R3": ALL, "R4": ALL, "R5": 1}, {"R0": 0, "R1": 0}),  # wraps
    ("IMAD.HI.U32 R0, R1, R2, RZ", {"R1": ALL, "R2": ALL}, {"R0": ALL - 1}),
    ("IMAD.HI R0, R1, R2, RZ", {"R1": ALL, "R2": 2}, {"R0": ALL}),
    ("UIMAD UR0, UR1, UR2, UR3", {"UR1": 6, "UR2": 7, "UR3": 1}, {"UR0": 43}),
    # LEA: (a << s) + b, the high word of (c:a << s) plus b
    ("LEA R0, R1, R2, 0x2", {"R1": 5, "R2": 3}, {"R0": 23}),
    ("LEA R0, P0, R1, R2, 0x2", {"R1": 0x3FFFFFFF, "R2": 4}, {"R0": 0, "P0": T}),
    ("LEA.HI R0, R1, R2, RZ, 0x6", {"R1": M, "R2": 1}, {"R0": 33}),
    ("LEA.HI R0, R1, R2, R3, 0x4", {"R1": 0xF0000000, "R2": 1, "R3": 2}, {"R0": 48}),
    ("LEA.HI.X R0, R1, R2, R3, 0x2, P0", {"R1": 0xC0000000, "R2": 1, "R3": 1, "P0": T}, {"R0": 9}),
    ("LEA.HI.SX32 R0, R1, R2, 0x1", {"R1": ALL, "R2": 5}, {"R0": 4}),  # sign-extended -1 << 1: high word -1
    ("ULEA UR0, UR1, UR2, 0x18", {"UR1": 1, "UR2": 5}, {"UR0": 0x1000005}),
    # SHF: amounts of the width and more; .W wraps them; .HI keeps the high word
    ("SHF.L.U32 R0, R1, R2, RZ", {"R1": 3, "R2": 31}, {"R0": M}),
    ("SHF.L.U32 R0, R1, R2, RZ", {"R1": 3, "R2": 32}, {"R0": 0}),
    ("SHF.L.W.U32 R0, R1, R2, RZ", {"R1": 3, "R2": 33}, {"R0": 6}),
    ("SHF.L.U64.HI R0, R1, R2, R3", {"R1": M, "R2": 1, "R3": 1}, {"R0": 3}),
    ("SHF.L.U64.HI R0, R1, R2, R3", {"R1": 5, "R2": 33, "R3": 9}, {"R0": 10}),
    ("SHF.R.U32.HI R0, RZ, R1, R2", {"R1": 31, "R2": M}, {"R0": 1}),
    ("SHF.R.U32.HI R0, RZ, R1, R2", {"R1": 40, "R2": M}, {"R0": 0}),
    ("SHF.R.S32.HI R0, RZ, R1, R2", {"R1": 31, "R2": M}, {"R0": ALL}),
    ("SHF.R.S32.HI R0, RZ, R1, R2", {"R1": 99, "R2": M}, {"R0": ALL}),
    ("SHF.R.U64 R0, R1, R2, R3", {"R1": 2, "R2": 1, "R3": 1}, {"R0": M | 1}),
    ("SHF.R.S64 R0, R1, R2, R3", {"R1": 0, "R2": 36, "R3": M}, {"R0": 0xF8000000}),
    ("USHF.L.U32 UR0, UR1, 0x5, URZ", {"UR1": 3}, {"UR0": 96}),
    ("USHF.R.S64 UR0, UR1, 0x4, UR2", {"UR1": 0x10, "UR2": 1}, {"UR0": 0x10000001}),
    # the rest
    ("IMNMX R0, R1, R2, PT", {"R1": ALL, "R2": 1}, {"R0": ALL}),  # signed least
    ("IMNMX R0, R1, R2, !PT", {"R1": ALL, "R2": 1}, {"R0": 1}),
    ("IMNMX.U32 R0, R1, R2, PT", {"R1": ALL, "R2": 1}, {"R0": 1}),
    ("IABS R0, R1", {"R1": ALL}, {"R0": 1}),
    ("IABS R0, R1", {"R1": M}, {"R0": M}),
    ("POPC R0, R1", {"R1": 0xF00F}, {"R0": 8}),
    ("FLO.U32 R0, R1", {"R1": 0x400}, {"R0": 10}),
    ("FLO.U32 R0, R1", {"R1": 0}, {"R0": ALL}),
    ("BREV R0, R1", {"R1": 1}, {"R0": M}),
    ("SGXT R0, R1, 0x8", {"R1": 0x1FF}, {"R0": ALL}),
    ("SGXT.U32 R0, R1, 0x8", {"R1": 0x1FF}, {"R0": 0xFF}),
    ("BMSK R0, R1, R2", {"R1": 4, "R2": 3}, {"R0": 0x70}),
    ("MOV R0, R1", {"R1": 9}, {"R0": 9}),
    ("UMOV UR0, 0x400", {}, {"UR0": 0x400}),
]

LOGIC = [
    ("LOP3.LUT R0, R1, R2, RZ, 0xc0, !PT", {"R1": 0b1100, "R2": 0b1010}, {"R0": 0b1000}),  # and
    ("LOP3.LUT R0, R1, R2, RZ, 0xfc, !PT", {"R1": 0b1100, "R2": 0b1010}, {"R0": 0b1110}),  # or
    ("LOP3.LUT R0, R1, R2, RZ, 0x3c, !PT", {"R1": 0b1100, "R2": 0b1010}, {"R0": 0b0110}),  # xor
    ("LOP3.LUT R0, R1, R2, R3, 0x96, !PT", {"R1": 0b11110000, "R2": 0b11001100, "R3": 0b10101010}, {"R0": 0b10010110}),
    # with 0xf0, 0xcc and 0xaa as inputs, the result's low byte is the table itself
    *(
        (f"LOP3.LUT R0, R1, R2, R3, {table:#x}, !PT", {"R1": 0xF0, "R2": 0xCC, "R3": 0xAA}, {"low byte": table})
        for table in (0x01, 0x0F, 0x1B, 0x30, 0x33, 0x55, 0x6A, 0x80, 0xB8, 0xCA, 0xE2, 0xE8, 0xEA, 0xF8, 0xFE)
    ),
    ("LOP3.LUT P0, RZ, R1, 0x4, RZ, 0xc0, !PT", {"R1": 0b0100}, {"P0": T}),
    ("LOP3.LUT P0, RZ, R1, 0x4, RZ, 0xc0, !PT", {"R1": 0b1011}, {"P0": F}),
    ("LOP3.LUT P0, RZ, R1, RZ, RZ, 0xfc, P0", {"R1": 0, "P0": T}, {"P0": T}),  # or else P0
    ("LOP3.LUT P0, RZ, R1, RZ, RZ, 0xfc, P0", {"R1": 0, "P0": F}, {"P0": F}),
    ("LOP3.LUT P0, RZ, R1, RZ, RZ, 0xfc, !P0", {"R1": 1, "P0": T}, {"P0": T}),
    ("ULOP3.LUT UR0, UR1, 0xffffffe0, URZ, 0xc0, !UPT", {"UR1": 0x7F}, {"UR0": 0x60}),
    ("PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x0", {"P1": T, "P2": T}, {"P0": T}),
    ("PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x0", {"P1": T, "P2": F}, {"P0": F}),
    ("PRMT R0, R1, 0x3210, R2", {"R1": 0x44332211, "R2": 0x88776655}, {"R0": 0x44332211}),
    ("PRMT R0, R1, 0x7531, R2", {"R1": 0x44332211, "R2": 0x88776655}, {"R0": 0x88664422}),
    ("PRMT R0, R1, 0x000b, R2", {"R1": 0x84332211, "R2": 0}, {"R0": 0x111111FF}),  # bit 3: the byte's sign
    ("SEL R0, R1, R2, P0", {"R1": 1, "R2": 2, "P0": T}, {"R0": 1}),
    ("SEL R0, R1, R2, !P0", {"R1": 1, "R2": 2, "P0": T}, {"R0": 2}),
    ("USEL UR0, URZ, 0xffffffff, !UP0", {"UP0": T}, {"UR0": ALL}),
    ("ISETP.GE.AND P0, PT, R1, R2, PT", {"R1": ALL, "R2": 0}, {"P0": F}),  # -1 >= 0
    ("ISETP.GE.U32.AND P0, PT, R1, R2, PT", {"R1": ALL, "R2": 0}, {"P0": T}),
    ("ISETP.LT.AND P0, P1, R1, R2, P2", {"R1": 1, "R2": 2, "P2": F}, {"P0": F, "P1": F}),
    ("ISETP.LT.OR P0, P1, R1, R2, P2", {"R1": 3, "R2": 2, "P2": T}, {"P0": T, "P1": T}),
    ("ISETP.NE.XOR P0, PT, R1, R2, P2", {"R1": 3, "R2": 2, "P2": T}, {"P0": F}),
    # .EX: high words, then the low words' outcome
    ("ISETP.GE.AND.EX P0, PT, R1, R2, PT, P3", {"R1": 5, "R2": 5, "P3": F}, {"P0": F}),
    ("ISETP.GE.AND.EX P0, PT, R1, R2, PT, P3", {"R1": 5, "R2": 5, "P3": T}, {"P0": T}),
    ("ISETP.GT.AND.EX P0, PT, R1, R2, PT, P3", {"R1": ALL, "R2": 0, "P3": T}, {"P0": F}),
    ("ISETP.LT.U32.AND.EX P0, PT, R1, R2, PT, P3", {"R1": 4, "R2": 5, "P3": F}, {"P0": T}),
    ("ISETP.NE.AND.EX P0, PT, R1, R2, PT, P3", {"R1": 4, "R2": 4, "P3": T}, {"P0": T}),
    ("UISETP.GT.U32.AND UP0, UPT, UR1, URZ, UPT", {"UR1": 1}, {"UP0": T}),
    ("P2R R0, PR, RZ, 0x7f", {"P0": T, "P2": T, "P6": T}, {"R0": 0b1000101}),
    ("R2P PR, R1, 0x3", {"R1": 0b10, "P0": T, "P1": F}, {"P0": F, "P1": T}),
]

FLOAT = [
    ("FADD R0, R1, R2", {"R1": f32(1.5), "R2": f32(2.25)}, {"R0": f32(3.75)}),
    ("FADD R0, R1, -R2", {"R1": f32(1.5), "R2": f32(1.5)}, {"R0": f32(0.0)}),  # +0 in round to nearest
    ("FADD R0, -RZ, R1", {"R1": f32(-0.0)}, {"R0": f32(-0.0)}),
    ("FADD R0, R1, R2", {"R1": 0x7F7FFFFF, "R2": 0x7F7FFFFF}, {"R0": f32(np.inf)}),
    ("FADD R0, R1, R2", {"R1": f32(np.inf), "R2": f32(-np.inf)}, {"R0": NAN}),
    ("FADD R0, R1, R2", {"R1": 0xFFC12345, "R2": f32(1)}, {"R0": NAN}),  # one canonical NaN
    ("FADD R0, R1, R2", {"R1": TINY, "R2": TINY}, {"R0": 2}),  # subnormals kept
    ("FADD.FTZ R0, R1, R2", {"R1": TINY, "R2": TINY}, {"R0": 0}),
    ("FADD.FTZ R0, R1, R2", {"R1": M | TINY, "R2": M | TINY}, {"R0": M}),  # flushed with its sign
    ("FADD R0, R1, R2", {"R1": f32(2**24), "R2": f32(1)}, {"R0": f32(2**24)}),  # tie to even
    ("FADD R0, R1, R2", {"R1": f32(2**24 + 2), "R2": f32(1)}, {"R0": f32(2**24 + 4)}),
    ("FADD.SAT R0, R1, R2", {"R1": f32(3), "R2": f32(1)}, {"R0": f32(1)}),
    ("FADD.SAT R0, R1, R2", {"R1": f32(np.nan), "R2": f32(1)}, {"R0": 0}),
    ("FMUL R0, R1, |R2|", {"R1": f32(3), "R2": f32(-2)}, {"R0": f32(6)}),
    ("FMUL R0, R1, R2", {"R1": f32(0), "R2": f32(np.inf)}, {"R0": NAN}),
    ("FMUL R0, R1, R2", {"R1": f32(2.0**-126), "R2": f32(0.5)}, {"R0": 0x00400000}),
    ("FMUL.FTZ R0, R1, R2", {"R1": f32(2.0**-126), "R2": f32(0.5)}, {"R0": 0}),
    # one rounding: (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24 exactly
    ("FFMA R0, R1, R1, -R2", {"R1": f32(1 + 2.0**-12), "R2": f32(1)}, {"R0": f32(2.0**-11 + 2.0**-24)}),
    ("FFMA R0, -R1, R2, R3", {"R1": f32(2), "R2": f32(3), "R3": f32(7)}, {"R0": f32(1)}),
    ("FFMA R0, R1, R2, R3", {"R1": f32(np.inf), "R2": f32(0), "R3": f32(1)}, {"R0": NAN}),
    ("FFMA.FTZ R0, R1, R2, R3", {"R1": f32(1), "R2": f32(1), "R3": TINY}, {"R0": f32(1)}),
    ("FMNMX R0, R1, R2, PT", {"R1": f32(np.nan), "R2": f32(2)}, {"R0": f32(2)}),
    ("FMNMX R0, R1, R2, PT", {"R1": f32(-0.0), "R2": f32(0.0)}, {"R0": f32(-0.0)}),
    ("FMNMX R0, R1, R2, !PT", {"R1": f32(-1), "R2": f32(-2)}, {"R0": f32(-1)}),
    ("FSEL R0, R1, -R2, P0", {"R1": f32(1), "R2": f32(2), "P0": F}, {"R0": f32(-2)}),
    ("FSETP.GT.AND P0, P1, R1, R2, PT", {"R1": f32(2), "R2": f32(1)}, {"P0": T, "P1": F}),
    ("FSETP.GT.AND P0, P1, R1, R2, PT", {"R1": f32(np.nan), "R2": f32(1)}, {"P0": F, "P1": T}),
    ("FSETP.NEU.AND P0, PT, R1, R2, PT", {"R1": f32(np.nan), "R2": f32(1)}, {"P0": T}),
    ("FSETP.NEU.AND P0, PT, R1, R2, PT", {"R1": f32(-0.0), "R2": f32(0.0)}, {"P0": F}),
    ("FSETP.NEU.FTZ.AND P0, PT, R1, RZ, PT", {"R1": TINY}, {"P0": F}),
    ("FSETP.NEU.AND P0, PT, R1, RZ, PT", {"R1": TINY}, {"P0": T}),
    ("MUFU.RCP R0, R1", {"R1": f32(4)}, {"R0": f32(0.25)}),
    ("MUFU.RSQ R0, R1", {"R1": f32(16)}, {"R0": f32(0.25)}),
    ("MUFU.EX2 R0, R1", {"R1": f32(5)}, {"R0": f32(32)}),
    ("I2FP.F32.S32 R0, R1", {"R1": ALL}, {"R0": f32(-1)}),
    ("I2FP.F32.U32 R0, R1", {"R1": ALL}, {"R0": f32(2.0**32)}),
    ("F2I.TRUNC.NTZ R0, R1", {"R1": f32(-2.7)}, {"R0": ALL - 1}),
    ("F2I.U32.TRUNC.NTZ R0, R1", {"R1": f32(-2.7)}, {"R0": 0}),
    ("F2I.TRUNC.NTZ R0, R1", {"R1": f32(3e9)}, {"R0": 0x7FFFFFFF}),
    ("F2I.NTZ R0, R1", {"R1": f32(2.5)}, {"R0": 2}),
    ("UF2I.U32.FLOOR.NTZ UR0, UR1", {"UR1": f32(2.9)}, {"UR0": 2}),
    ("UF2I.U32.FLOOR.NTZ UR0, UR1", {"UR1": f32(-0.5)}, {"UR0": 0}),
    ("UF2I.TRUNC.NTZ UR0, UR1", {"UR1": f32(-2.7)}, {"UR0": ALL - 1}),
    ("HADD2 R0, R1, R2", {"R1": 0x3C003C00, "R2": 0x40003C00}, {"R0": 0x42004000}),  # (2,1) + (1,1)
    ("HFMA2.MMA R0, R1, R2, R3", {"R1": 0x3C004000, "R2": 0x42004200, "R3": 0x3C003C00}, {"R0": 0x44004700}),
    ("HMUL2 R0, R1, R2.H0_H0", {"R1": 0x3C004000, "R2": 0x00004200}, {"R0": 0x42004600}),
    ("F2FP.F16.F32.PACK_AB R0, R1, R2", {"R1": f32(2), "R2": f32(1)}, {"R0": 0x40003C00}),
    ("F2FP.BF16.F32.PACK_AB R0, R1, R2", {"R1": f32(2), "R2": f32(1)}, {"R0": 0x40003F80}),
    ("DADD R0, R2, R4", dict(zip(("R2", "R3", "R4", "R5"), f64(1.5) + f64(2.25), strict=True)), {"R0:R1": f64(3.75)}),
    ("DMUL R0, R2, -R4", dict(zip(("R2", "R3", "R4", "R5"), f64(1.5) + f64(2.0), strict=True)), {"R0:R1": f64(-3)}),
    (
        "DFMA R0, R2, R2, -R4",
        dict(zip(("R2", "R3", "R4", "R5"), f64(1 + 2.0**-30) + f64(1), strict=True)),
        {"R0:R1": f64(2.0**-29 + 2.0**-60)},
    ),
]


@pytest.mark.parametrize(
    ("text", "given", "expected"), INTEGER + LOGIC + FLOAT, ids=lambda v: v if isinstance(v, str) else ""
)
def test_by_hand(text: str, given: dict[str, int], expected: dict[str, object]) -> None:
    after = run(text, **given)
    for name, value in expected.items():
        if name == "low byte":
            assert after["R0"][0] & 0xFF == value
        elif name == "R0:R1":
            assert (int(after["R0"][0]), int(after["R1"][0])) == value
        else:
            row = after[name]
            assert (row == row[0]).all()
            assert (bool(row[0]) if isinstance(value, bool) else int(row[0])) == value, name


def test_predication_keeps_the_other_lanes() -> None:
    odd = np.arange(32) % 2 == 1
    after = run("@P0 IADD3 R0, R0, 0x1, RZ", R0=7, P0=odd)["R0"]
    np.testing.assert_array_equal(after, np.where(odd, 8, 7))
    after = run("@!P0 MOV R0, RZ", R0=7, P0=odd)["R0"]
    np.testing.assert_array_equal(after, np.where(odd, 7, 0))


def test_lane_numbers() -> None:
    np.testing.assert_array_equal(run("S2R R0, SR_TID.X")["R0"], np.arange(32))
    np.testing.assert_array_equal(run("S2R R0, SR_LANEID")["R0"], np.arange(32))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHFL.IDX PT, R0, R1, 0x3, 0x1f", np.full(32, 103)),
        ("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", 100 + (np.arange(32) ^ 1)),
        ("SHFL.DOWN PT, R0, R1, 0x1, 0x1f", 100 + np.minimum(np.arange(32) + 1, 31)),  # the last keeps its own
        ("SHFL.UP PT, R0, R1, 0x1, RZ", 100 + np.maximum(np.arange(32) - 1, 0)),
    ],
)
def test_shuffles(text: str, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(run(text, R1=100 + np.arange(32))["R0"], expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHFL.IDX PT, R0, R1, 0x14, 0x1f", np.zeros(16)),
        ("SHFL.IDX PT, R0, R1, 0x3, 0x1f", np.full(16, 103)),
        ("SHFL.BFLY PT, R0, R1, 0x10, 0x1f", np.zeros(16)),
        ("SHFL.DOWN PT, R0, R1, 0x8, 0x1f", np.where(np.arange(16) < 8, 108 + np.arange(16), 0)),
        ("SHFL.UP PT, R0, R1, 0x4, RZ", 100 + np.where(np.arange(16) < 4, np.arange(16), np.arange(16) - 4)),
    ],
)
@pytest.mark.parametrize("before", [[], ["@!P0 EXIT"]])
def test_shuffles_read_0_from_lanes_that_take_no_part(text: str, expected: np.ndarray, before: list[str]) -> None:
    """An H200 gave these values, for lanes from 16 on that were elsewhere and for lanes that had ended."""
    lanes = np.arange(32)
    after = run([*before, text if before else f"@P0 {text}"], R1=100 + lanes, R0=7, P0=lanes < 16)["R0"]
    np.testing.assert_array_equal(after, np.append(expected, np.full(16, 7)))


def test_votes() -> None:
    some = np.arange(32) < 5
    assert one("VOTE.ANY R0, PT, P1", "R0", P1=some) == 0b11111
    assert one("VOTE.ANY R0, P0, P1", "P0", P1=some) is True
    assert one("VOTE.ALL R0, P0, P1", "P0", P1=some) is False


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("WGMMA.FOO R0, R1", "opcode WGMMA"),
        ("FADD.ROUNDED R0, R1, R2", "modifier .ROUNDED"),
        ("IADD3.WIDE R0, R1, R2, R3", "modifier .WIDE"),
    ],
)
def test_what_has_no_semantics_is_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what) as caught:
        run(text)
    message = str(caught.value)
    assert text in message and "0x0000" in message and "sm_90" in message and "\n" not in message
