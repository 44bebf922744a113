"""Rounding modes, transcendentals, conversions and packed halves against results worked out by hand, edges first."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from opcode_harness import ALL, f32, f64, run

from gemmsim.support.errors import GemmsimError

T, F = True, False
NAN = 0x7FFFFFFF
M = 0x80000000
TINY = 1  # the least subnormal float32
HALF_NAN = 0x7E00


def high(value: float) -> int:
    return f64(value)[1]


def doubles(**values: float) -> dict[str, int]:
    """R2=1.5 as the words of the pair R2, R3."""
    words = {}
    for name, value in values.items():
        number = int(name[1:])
        words[f"R{number}"], words[f"R{number + 1}"] = f64(value)
    return words


ROUNDING = [
    # 1 + 2^-30 lies between 1 and the next float
    ("FADD.RM R0, R1, R2", {"R1": f32(1), "R2": f32(2.0**-30)}, {"R0": f32(1)}),
    ("FADD.RP R0, R1, R2", {"R1": f32(1), "R2": f32(2.0**-30)}, {"R0": f32(1) + 1}),
    ("FADD.RZ R0, -R1, -R2", {"R1": f32(1), "R2": f32(2.0**-30)}, {"R0": f32(-1)}),
    ("FADD.RM R0, -R1, -R2", {"R1": f32(1), "R2": f32(2.0**-30)}, {"R0": f32(-1) + 1}),
    ("FADD.RM R0, R1, -R1", {"R1": f32(1)}, {"R0": M}),  # x - x is -0 when rounding down
    ("FADD.RP.SAT R0, R1, R2", {"R1": f32(1), "R2": f32(2.0**-30)}, {"R0": f32(1)}),
    ("FMUL.RZ R0, R1, R2", {"R1": 0x7F7FFFFF, "R2": f32(2)}, {"R0": 0x7F7FFFFF}),  # no infinity
    ("FMUL.RP R0, R1, R2", {"R1": TINY, "R2": f32(0.5)}, {"R0": TINY}),
    ("FMUL.RZ R0, R1, R2", {"R1": TINY, "R2": f32(0.5)}, {"R0": 0}),
    ("FMUL.RM R0, R1, R2", {"R1": f32(-0.0), "R2": f32(1)}, {"R0": M}),
    ("FMUL.RM R0, R1, R2", {"R1": f32(0.0), "R2": f32(1)}, {"R0": 0}),  # no addend: +0 stays
    ("FMUL.FTZ.RP R0, R1, R2", {"R1": TINY, "R2": f32(4)}, {"R0": 0}),
    # 2^-126 * (1 - 2^-24) is below the least normal number, to which it is rounded: flushed all the same
    ("FMUL.FTZ R0, R1, R2", {"R1": 0x00800000, "R2": 0x3F7FFFFF}, {"R0": 0}),
    ("FMUL R0, R1, R2", {"R1": 0x00800000, "R2": 0x3F7FFFFF}, {"R0": 0x00800000}),
    ("FMUL.FTZ.RP R0, R1, R2", {"R1": 0x00800000, "R2": 0x3F7FFFFF}, {"R0": 0}),
    # 2^-126 * (1 - 2^-26) rounds to 2^-126 with 24 bits, and is kept
    ("FMUL.FTZ R0, R1, R2", {"R1": 0x3F000400, "R2": 0x00FFF800}, {"R0": 0x00800000}),
    ("FFMA.FTZ R0, R1, R2, R3", {"R1": 0x00800000, "R2": 0x3F7FFFFF, "R3": 0}, {"R0": 0}),
    ("FFMA.FTZ.RZ R0, R1, R2, R3", {"R1": f32(3), "R2": f32(2), "R3": TINY}, {"R0": f32(6)}),
    ("FFMA.RP.SAT R0, R1, R2, R3", {"R1": f32(3), "R2": f32(2), "R3": f32(np.nan)}, {"R0": 0}),
    ("DADD.RP R0, R2, R4", doubles(R2=1, R4=2.0**-60), {"R0:R1": f64(1 + 2.0**-52)}),
    ("DADD.RM R0, R2, R4", doubles(R2=1, R4=2.0**-60), {"R0:R1": f64(1)}),
    ("DMUL.RZ R0, R2, R4", doubles(R2=1.7976931348623157e308, R4=2), {"R0:R1": f64(1.7976931348623157e308)}),
    ("DMUL.RP R0, R2, R4", doubles(R2=5e-324, R4=0.5), {"R0:R1": f64(5e-324)}),
    ("DFMA.RP R0, R2, R4, R6", doubles(R2=5e-324, R4=5e-324, R6=-1), {"R0:R1": f64(-1 + 2.0**-53)}),
    ("DFMA.RM R0, R2, R4, -R6", doubles(R2=3, R4=2, R6=6), {"R0:R1": f64(-0.0)}),
]

FUNCTIONS = [
    # the argument is in turns: a quarter of a turn is the top of the sine
    ("MUFU.SIN R0, R1", {"R1": f32(0.25)}, {"R0": f32(1)}),
    ("MUFU.SIN R0, R1", {"R1": f32(-7.75)}, {"R0": f32(1)}),
    ("MUFU.SIN R0, R1", {"R1": f32(2)}, {"R0": 0}),
    ("MUFU.SIN R0, R1", {"R1": f32(0.5)}, {"R0": M}),  # the second half of a turn is negative
    ("MUFU.SIN R0, R1", {"R1": f32(-0.0)}, {"R0": M}),
    ("MUFU.SIN R0, R1", {"R1": f32(np.inf)}, {"R0": NAN}),
    ("MUFU.COS R0, R1", {"R1": f32(0)}, {"R0": f32(1)}),
    ("MUFU.COS R0, R1", {"R1": f32(0.5)}, {"R0": f32(-1)}),
    ("MUFU.COS R0, R1", {"R1": f32(100.25)}, {"R0": 0}),
    ("MUFU.TANH R0, R1", {"R1": f32(np.inf)}, {"R0": f32(1)}),
    ("MUFU.TANH R0, R1", {"R1": f32(-200)}, {"R0": f32(-1)}),
    ("MUFU.TANH R0, R1", {"R1": f32(2.0**-20)}, {"R0": f32(2.0**-20)}),
    ("MUFU.EX2.F16 R0, R1", {"R1": 0x42004000}, {"R0": 0x4400}),  # 2^2; the high half is not read
    ("MUFU.EX2.F16 R0, R1.H1", {"R1": 0x42004000}, {"R0": 0x4800}),  # 2^3
    ("MUFU.TANH.BF16 R0, R1", {"R1": 0x4200}, {"R0": 0x3F80}),
    ("MUFU.RCP64H R0, R1", {"R1": high(4)}, {"R0": high(0.25)}),
    ("MUFU.RCP64H R0, R1", {"R1": M}, {"R0": high(-np.inf)}),
    ("MUFU.RSQ64H R0, R1", {"R1": high(16)}, {"R0": high(0.25)}),
    ("MUFU.RSQ64H R0, R1", {"R1": high(-1)}, {"R0": NAN}),
    # minima: NaN wins with .NAN, the signs are multiplied with .XORSIGN
    ("FMNMX.NAN R0, R1, R2, PT", {"R1": f32(np.nan), "R2": f32(1)}, {"R0": NAN}),
    ("FMNMX.NAN R0, R1, R2, PT", {"R1": f32(3), "R2": f32(1)}, {"R0": f32(1)}),
    ("FMNMX.XORSIGN R0, |R1|, |R2|, PT", {"R1": f32(-3), "R2": f32(2)}, {"R0": f32(-2)}),
    ("FMNMX.XORSIGN R0, |R1|, |R2|, !PT", {"R1": f32(-3), "R2": f32(-2)}, {"R0": f32(3)}),
    ("FMNMX3 R0, R1, R2, R3, PT, PT", {"R1": f32(3), "R2": f32(-2), "R3": f32(1)}, {"R0": f32(-2)}),
    ("FSET.BF.LT.AND R0, R1, R2, PT", {"R1": f32(1), "R2": f32(2)}, {"R0": f32(1)}),
    ("FSET.GEU.AND R0, R1, R2, PT", {"R1": f32(np.nan), "R2": f32(2)}, {"R0": ALL}),
    ("FSET.LT.AND R0, R1, R2, P0", {"R1": f32(1), "R2": f32(2), "P0": F}, {"R0": 0}),
    ("DSETP.MIN.AND P0, P1, R2, R4, PT", doubles(R2=1, R4=2), {"P0": T, "P1": F}),
    ("DSETP.MIN.AND P0, P1, R2, R4, PT", doubles(R2=np.nan, R4=2), {"P0": F, "P1": F}),
    ("DSETP.MAX.AND P0, P1, R2, R4, PT", doubles(R2=1, R4=np.nan), {"P0": T, "P1": F}),
    ("UFMNMX UR0, UR1, UR2, UPT", {"UR1": f32(3), "UR2": f32(1)}, {"UR0": f32(1)}),
    ("UFSEL UR0, UR1, UR2, UP0", {"UR1": 7, "UR2": 9, "UP0": F}, {"UR0": 9}),
    ("UFSET.BF.GT.AND UR0, UR1, UR2, UPT", {"UR1": f32(3), "UR2": f32(1)}, {"UR0": f32(1)}),
    ("UFRND.FLOOR UR0, UR1", {"UR1": f32(-2.5)}, {"UR0": f32(-3)}),
]

CONVERSIONS = [
    ("FRND.F64 R0, R2", doubles(R2=2.5), {"R0:R1": f64(2)}),
    ("FRND.F64.CEIL R0, R2", doubles(R2=-0.5), {"R0:R1": f64(-0.0)}),
    ("FRND.F16.TRUNC R0, R1", {"R1": 0x4300BD00}, {"R0": 0xBC00}),  # -1.25 to -1
    ("FRND.FTZ.CEIL R0, R1", {"R1": TINY}, {"R0": 0}),
    ("F2F.F32.F64.RP R0, R2", doubles(R2=1 + 2.0**-40), {"R0": f32(1) + 1}),
    ("F2F.F32.F64.RZ R0, R2", doubles(R2=1e300), {"R0": 0x7F7FFFFF}),
    ("F2F.F32.F64.RM R0, R2", doubles(R2=-1e-300), {"R0": M | 1}),
    # NaN keeps the top bits of its fraction between float types, and the second operand's NaN goes before the first's
    ("F2F.F32.F64 R0, R2", {"R2": 0x9ABCDEF0, "R3": 0xFFF81234}, {"R0": 0xFFC091A4}),
    ("F2F.F64.F32 R0, R1", {"R1": 0xFFC12345}, {"R0:R1": (0xA0000000, 0xFFF82468)}),
    ("F2F.F16.F64 R0, R2", {"R2": 0, "R3": 0xFFF81234}, {"R0": 0xFE04}),
    ("DADD R0, R2, R4", {"R2": 1, "R3": 0x7FF80000, "R4": 2, "R5": 0xFFF00000}, {"R0:R1": (2, 0xFFF80000)}),
    ("DADD R0, R2, -R4", {"R2": 0, "R3": 0, "R4": 2, "R5": 0x7FF80000}, {"R0:R1": (2, 0x7FF80000)}),
    ("DADD R0, -RZ, |R4|", {"R4": 2, "R5": 0xFFF80000}, {"R0:R1": (2, 0xFFF80000)}),
    ("DADD R0, -RZ, -|R4|", doubles(R4=-2), {"R0:R1": f64(-2)}),
    ("DFMA R0, R2, R4, R6", {"R3": 0x7FF80001, "R5": 0x3FF00000, "R7": 0x7FF80002}, {"R0:R1": (0, 0x7FF80002)}),
    ("DADD R0, R2, -R2", doubles(R2=np.inf), {"R0:R1": (0, 0xFFF80000)}),
    ("HADD2.F32 R0, -RZ, R1.H0_H0", {"R1": 0x7E00}, {"R0": NAN}),
    ("F2FP.TF32.F32.PACK_B R0, R1", {"R1": 0x7F800001}, {"R0": 0x7FFFE000}),
    ("FMNMX.NAN.XORSIGN R0, |R1|, |R2|, PT", {"R1": f32(-1), "R2": NAN}, {"R0": NAN}),
    ("F2F.F16.F32.RM R0, R1", {"R1": f32(1 + 2.0**-12)}, {"R0": 0x3C00}),
    ("F2F.F16.F32.RP R0, R1", {"R1": f32(1 + 2.0**-12)}, {"R0": 0x3C01}),
    # 1 + 2^-11 + 2^-50 is above the middle of two halves, which a float32 between them would forget
    ("F2F.F16.F64 R0, R2", doubles(R2=1 + 2.0**-11 + 2.0**-50), {"R0": 0x3C01}),
    ("F2F.F64.F16 R0, R1", {"R1": 0x3E00}, {"R0:R1": f64(1.5)}),
    ("F2FP.F16.F32.PACK_AB.RZ R0, R1, R2", {"R1": f32(1e9), "R2": f32(-1e9)}, {"R0": 0x7BFFFBFF}),
    ("F2FP.RELU.BF16.F32.PACK_AB R0, R1, R2", {"R1": f32(-1), "R2": f32(1)}, {"R0": 0x00003F80}),
    ("F2FP.RELU.BF16.F32.MERGE_C R0, R1, R2", {"R1": f32(1), "R2": 0xABCD1234}, {"R0": 0xABCD3F80}),
    ("F2FP.TF32.F32.PACK_B R0, R1", {"R1": 0x3F801000}, {"R0": 0x3F800000}),  # a tie, to even
    ("F2FP.TF32.F32.PACK_B R0, R1", {"R1": 0x3F803000}, {"R0": 0x3F804000}),
    ("F2FP.TF32.F32.PACK_B.RZ R0, R1", {"R1": 0x3F803FFF}, {"R0": 0x3F802000}),
    ("F2I.S8.NTZ R0, R1", {"R1": f32(-200)}, {"R0": ALL - 127}),
    ("F2I.U8.FLOOR.NTZ R0, R1", {"R1": f32(300)}, {"R0": 255}),
    ("F2I.U16.TRUNC.NTZ R0, R1", {"R1": f32(-1)}, {"R0": 0}),
    ("F2I.S16.F16.NTZ R0, R1", {"R1": 0x4100}, {"R0": 2}),  # 2.5 to even
    ("F2I.BF16.NTZ R0, R1", {"R1": 0xC020}, {"R0": ALL - 1}),  # -2.5 to -2
    ("F2IP.U8.F32.NTZ R0, R1, R2, R3", {"R1": f32(3), "R2": f32(999), "R3": 0x1234}, {"R0": 0x123403FF}),
    ("I2I.U8.S32.SAT R0, R1", {"R1": ALL}, {"R0": 0}),
    ("I2I.S16.S32.SAT R0, R1", {"R1": 40000}, {"R0": 32767}),
    ("I2IP.S8.S32.SAT R0, R1, R2, R3", {"R1": 1000, "R2": ALL, "R3": 0x55}, {"R0": 0x00557FFF}),
    ("I2IP.U16.S32.SAT R0, R1, R2, RZ", {"R1": 70000, "R2": ALL}, {"R0": 0xFFFF0000}),
    ("I2F.F64.RZ R0, R2", {"R2": ALL}, {"R0:R1": f64(-1)}),
    ("I2F.F64.U64.RZ R0, R2", {"R2": ALL, "R3": ALL}, {"R0:R1": f64(2.0**64 - 2.0**11)}),
    ("I2F.F64.S64.RM R0, R2", {"R2": 1, "R3": 0x80000000}, {"R0:R1": f64(-(2.0**63))}),
    ("I2F.F16.RP R0, R1", {"R1": 2049}, {"R0": 0x6801}),  # 2050
    ("I2F.BF16.U32 R0, R1", {"R1": 257}, {"R0": 0x4380}),  # a tie, to 256
]

HALVES = [
    ("HADD2.SAT R0, R1, R2", {"R1": 0x4000BC00, "R2": 0}, {"R0": 0x3C000000}),
    ("HADD2.FTZ R0, R1, R2", {"R1": 0x00013C00, "R2": 0}, {"R0": 0x00003C00}),
    ("HMUL2.SAT R0, R1, R2", {"R1": 0x7E003800, "R2": 0x3C003C00}, {"R0": 0x00003800}),  # NaN becomes 0
    ("HFMA2.RELU R0, R1, R2, R3", {"R1": 0xBC007E00, "R2": 0x3C003C00, "R3": 0}, {"R0": 0x00007FFF}),
    ("HFMA2.BF16_V2.RELU R0, R1, R2, R3", {"R1": 0xBF803F80, "R2": 0x3F803F80, "R3": 0}, {"R0": 0x00003F80}),
    # 2^-14 * (1 - 2^-14) rounds to the least normal half, and 2^-14 * (1 - 2^-10) stays below it
    ("HFMA2.FTZ R0, R1, R2, R3", {"R1": 0x0400, "R2": 0x8400, "R3": 0x0400}, {"R0": 0x0400}),
    ("HMUL2.FTZ R0, R1, R2", {"R1": 0x0400, "R2": 0x3BFE}, {"R0": 0}),
    ("HMNMX2.NAN R0, R1, R2, PT", {"R1": 0x7E003C00, "R2": 0x40004000}, {"R0": 0x7FFF3C00}),
    ("HMNMX2.XORSIGN R0, |R1|, |R2|, PT", {"R1": 0xC0003C00, "R2": 0x3C004000}, {"R0": 0xBC003C00}),
    ("HMNMX2.NAN.XORSIGN R0, |R1|, |R2|, PT", {"R1": 0xBC00BC00, "R2": 0x7E007E00}, {"R0": 0x7FFF7FFF}),
    ("HMNMX2.NAN.XORSIGN R0, |R1|, |R2|, PT", {"R1": 0xBC00BC00, "R2": 0x7E003C00}, {"R0": 0x7FFFBC00}),
    ("HMNMX2.FTZ R0, R1, R2, PT", {"R1": 0x00018001, "R2": 0x3C003C00}, {"R0": 0x00008000}),
    ("HSET2.BF.LT.AND R0, R1, R2, PT", {"R1": 0x3C004000, "R2": 0x40003C00}, {"R0": 0x3C000000}),
    ("HSET2.LT.AND R0, R1, R2, PT", {"R1": 0x40003C00, "R2": 0x3C004000}, {"R0": 0x0000FFFF}),
    ("HSET2.BF16_V2.BF.GT.AND R0, R1, R2, PT", {"R1": 0x40003F80, "R2": 0x3F804000}, {"R0": 0x3F800000}),
    ("HSETP2.LT.AND P0, P1, R1, R2, PT", {"R1": 0x3C004000, "R2": 0x40003C00}, {"P0": F, "P1": T}),
    ("HSETP2.LT.AND P2, P1, R1, R2, P2", {"R1": 0x3C003C00, "R2": 0x40004000, "P2": T}, {"P2": T, "P1": T}),
    ("HSETP2.EQ.FTZ.AND P0, PT, R1.H0_H0, R2.H0_H0, PT", {"R1": 1, "R2": 0}, {"P0": T}),
]


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    ROUNDING + FUNCTIONS + CONVERSIONS + HALVES,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_by_hand(text: str, given: dict[str, int], expected: dict[str, object]) -> None:
    after = run(text, **given)
    for name, value in expected.items():
        if name == "R0:R1":
            assert (int(after["R0"][0]), int(after["R1"][0])) == value
        else:
            row = after[name]
            assert (row == row[0]).all()
            got = bool(row[0]) if isinstance(value, bool) else int(row[0])
            assert got == value, (name, hex(got))


def test_transcendentals_are_the_rounded_values() -> None:
    random = np.random.default_rng(7)
    turns = random.uniform(-3, 3, 32).astype(np.float32)
    given = [int(bits) for bits in turns.view(np.uint32)]
    sine = run("MUFU.SIN R0, R1", R1=given)["R0"].view(np.float32)
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * turns.astype(np.float64)), atol=2.0**-23)
    cosine = run("MUFU.COS R0, R1", R1=given)["R0"].view(np.float32)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * turns.astype(np.float64)), atol=2.0**-23)
    tanh = run("MUFU.TANH R0, R1", R1=given)["R0"].view(np.float32)
    np.testing.assert_allclose(tanh, np.tanh(turns.astype(np.float64)), rtol=2.0**-23)
    small = (turns * 2.0**-12).astype(np.float32)
    tanh = run("MUFU.TANH R0, R1", R1=[int(bits) for bits in small.view(np.uint32)])["R0"].view(np.float32)
    np.testing.assert_allclose(tanh, np.tanh(small.astype(np.float64)), rtol=2.0**-23)


def test_reciprocal_of_a_double_is_good_to_twenty_bits() -> None:
    values = np.random.default_rng(3).uniform(1, 1000, 32)
    words = [struct.unpack("<2I", struct.pack("<d", v))[1] for v in values]
    found = run("MUFU.RCP64H R0, R1", R1=words)["R0"].astype(np.uint64) << np.uint64(32)
    np.testing.assert_allclose(found.view(np.float64), 1 / values, rtol=2.0**-19)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("MUFU.RCP.F16 R0, R1", "modifier .F16"),
        ("I2I.U8.S32 R0, R1", "conversion"),
        ("F2F.FTZ.F32.F64 R0, R2", "modifier .FTZ"),
        ("HFMA2.EXACT R0, R1, R2, R3", "modifier .EXACT"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what):
        run(text)
