"""F2FP from and to floats of 8 and fewer bits: every code, and every value near a boundary between two of them."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import f32, one, run

from gemmsim.support.errors import GemmsimError

# exponent bits, fraction bits, bias, magnitudes that are finite; from the OCP specifications' tables
FORMATS = {"E4M3": (4, 3, 7, 0x7F), "E5M2": (5, 2, 15, 0x7C), "E3M2": (3, 2, 3, 0x20), "E2M3": (2, 3, 1, 0x20)}


def value(name: str, magnitude: int) -> float:
    _, fraction, bias, _ = FORMATS[name]
    field, digits = magnitude >> fraction, magnitude & (1 << fraction) - 1
    if field == 0:
        return digits * 2.0 ** (1 - bias - fraction)
    return (1 + digits / (1 << fraction)) * 2.0 ** (field - bias)


def pack(name: str, high: np.ndarray, low: np.ndarray, more: str = "") -> np.ndarray:
    text = f"F2FP.SATFINITE.{more}{name}.F32.PACK_AB_MERGE_C R0, R1, R2, R3"
    words = [np.resize(x.astype(np.float32), 32).view(np.uint32) for x in (high, low)]
    return run(text, R1=words[0], R2=words[1], R3=0xABCD1234)["R0"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_number_and_the_ones_between(name: str) -> None:
    """A number packs to itself; the middle of two neighbours goes to the even one, and what is nearer goes there."""
    exponent, fraction, _, finite = FORMATS[name]
    sign = 1 << (exponent + fraction)
    for first in range(0, finite - 1, 32):
        codes = np.arange(first, min(first + 32, finite - 1))
        here = np.array([value(name, int(code)) for code in codes])
        above = np.array([value(name, int(code) + 1) for code in codes])
        middle = (here + above) / 2
        nudged = np.nextafter(middle.astype(np.float32), np.float32(np.inf))
        results = pack(name, -here, middle)[: len(codes)]
        np.testing.assert_array_equal(results >> 16, 0x1234)
        np.testing.assert_array_equal(results >> 8 & 0xFF, codes | sign)
        np.testing.assert_array_equal(results & 0xFF, codes + (codes & 1))
        np.testing.assert_array_equal(pack(name, nudged, nudged)[: len(codes)] & 0xFF, codes + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_every_byte_becomes_a_half(name: str) -> None:
    exponent, fraction, _, finite = FORMATS[name]
    width = exponent + fraction
    for first in range(0, 1 << width, 32):
        codes = np.arange(first, first + 32)
        known = [
            value(name, int(c)) if c < finite else np.inf if name == "E5M2" and c == finite else np.nan for c in codes
        ]
        expected = np.array(known).astype(np.float16)
        words = codes | (codes | 1 << width) << 8
        for text, at in ((f"F2FP.F16.{name}.UNPACK_B R0, R1", 0), (f"F2FP.F16.{name}.UNPACK_B R0, R1.H1", 16)):
            halves = np.ascontiguousarray(run(text, R1=words << at)["R0"]).view(np.float16).reshape(32, 2)
            np.testing.assert_array_equal(halves[:, 0], expected)
            np.testing.assert_array_equal(halves[:, 1], -expected)
        relu = run(f"F2FP.RELU.F16.{name}.UNPACK_B R0, R1", R1=words)["R0"]
        np.testing.assert_array_equal(relu >> 16, np.where(np.isnan(expected), 0x7FFF, 0))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("E4M3", np.inf, 0x7E), ("E4M3", -1e9, 0xFE), ("E4M3", 463.0, 0x7E), ("E4M3", np.nan, 0x7F),
        ("E4M3", -0.0, 0x80),
        ("E5M2", np.inf, 0x7B), ("E5M2", 65504.0, 0x7B), ("E5M2", np.nan, 0x7F), ("E5M2", 2.0**-18, 0),
        ("E3M2", np.inf, 0x1F), ("E3M2", -100.0, 0x3F), ("E3M2", np.nan, 0x1F),
        ("E2M3", 8.0, 0x1F), ("E2M3", np.nan, 0x1F),
    ],
)  # fmt: skip
def test_what_is_out_of_range(name: str, given: float, expected: int) -> None:
    assert (pack(name, np.array([0.0]), np.array([given])) & 0xFF == expected).all()


def test_relu_and_halves() -> None:
    assert (pack("E4M3", np.array([-2.0]), np.array([2.0]), "RELU.") & 0xFFFF == 0x0040).all()
    text = "F2FP.SATFINITE.E5M2.F16.UNPACK_B_MERGE_C R0, R1, R2"
    assert one(text, "R0", R1=0x3C004000, R2=0x5678) == 0x56783C40  # 1 and 2
    assert one(text, "R0", R1=0x3C7F7C00, R2=0) == 0x3C7B  # 1 + 127/1024 rounds to 1, infinity to the largest
    assert one("F2FP.F16.F32.PACK_AB R0, R1, R2", "R0", R1=f32(1), R2=f32(2)) == 0x3C004000


def test_what_has_no_semantics_is_refused() -> None:
    with pytest.raises(GemmsimError, match="conversion"):
        run("F2FP.E4M3.F32.PACK_AB_MERGE_C R0, R1, R2, R3")
    for text in (
        "F2FP.F16.E8.UNPACK_B R0, R1",
        "F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C R0, R1, R2, R3",
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RZ R0, R1, R2, R3",
        "F2FP.BF16.E4M3.UNPACK_B R0, R1",
    ):
        with pytest.raises(GemmsimError, match="conversion"):
            run(text)
    with pytest.raises(GemmsimError, match="operand form"):
        run("F2FP.F16.E4M3.UNPACK_B R0, R1.B1")
    with pytest.raises(GemmsimError, match=r"modifier .RS"):
        run("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS R0, R1, R2, R3")


# "Microscaling Formats", FP4: the eight magnitudes of E2M1
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def test_numbers_of_four_bits_go_two_to_a_byte() -> None:
    text = "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C R0, R1, R2, R3"
    lane = np.arange(32)
    high = np.array([*FP4, *(-x for x in FP4)] * 2, np.float32)
    # the middle of two neighbours goes to the even one; 5 and all above 6 to 6, NaN to 6
    low = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 99, np.inf, -np.inf, np.nan, -0.0, 0.26, -2.49, -7] * 2)
    code = [0, 2, 2, 4, 4, 6, 6, 7, 7, 7, 15, 7, 8, 1, 12, 15]
    after = run(text, R1=high.view(np.uint32), R2=low.astype(np.float32).view(np.uint32), R3=0x89ABCDEF)["R0"]
    expected = np.uint32(0xABCDEF00) + 16 * (lane % 16).astype(np.uint32) + np.resize(code, 32).astype(np.uint32)
    np.testing.assert_array_equal(after, expected)
    relu = one(text.replace("SATFINITE", "SATFINITE.RELU"), "R0", R1=f32(-3.0), R2=f32(3.0), R3=0)
    assert relu == 0x05


@pytest.mark.parametrize(("suffix", "shift"), [("", 0), (".B1", 8), (".B2", 16), (".B3", 24)])
def test_a_byte_becomes_two_halves(suffix: str, shift: int) -> None:
    for first in range(0, 256, 32):
        codes = np.arange(first, first + 32)
        words = ((codes << shift) | (0x5A5A5A5A & ~(0xFF << shift))).astype(np.uint32)
        halves = np.ascontiguousarray(run(f"F2FP.F16.E2M1.UNPACK_B R0, R1{suffix}", R1=words)["R0"]).view(np.float16)
        signed = np.array([*FP4, *(-x for x in FP4)], np.float16)
        np.testing.assert_array_equal(halves.reshape(32, 2), signed[np.stack((codes & 15, codes >> 4), 1)])


E8 = [  # bits of the number; its power of two rounded down and up, each kept finite and not
    (0x00000000, 0, 0), (0x00000001, 0, 0), (0x00400000, 0, 0), (0x00400001, 0, 1), (0x007FFFFF, 0, 1),
    (0x00800000, 1, 1), (0x00800001, 1, 2), (0x3F800000, 127, 127), (0x3F800001, 127, 128), (0xBFC00000, 127, 128),
    (0x7F000000, 0xFE, 0xFE), (0x7F7FFFFF, 0xFE, 0xFE), (0x7F800000, 0xFE, 0xFE), (0xFF800000, 0xFE, 0xFE),
    (0x7FC00000, 0xFF, 0xFF),
]  # fmt: skip


def test_powers_of_two() -> None:
    bits, down, up = (np.resize(column, 32).astype(np.uint32) for column in zip(*E8, strict=True))
    other = np.uint32(0x40000000)  # 2 is 128
    for direction, codes in (("RZ", down), ("RP", up)):
        text = f"F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.{direction} R0, R1, R2, R3"
        np.testing.assert_array_equal(run(text, R1=other, R2=bits, R3=0xABCD1234)["R0"], 0x12348000 + codes)
        large = bits & 0x7FFFFFFF
        whole = np.where((large == 0x7F800000) | ((direction == "RP") & (large == 0x7F7FFFFF)), 0xFF, codes)
        text = text.replace("SATFINITE.", "")
        np.testing.assert_array_equal(run(text, R1=bits, R2=other, R3=0)["R0"], (whole << 8) + 128)
    pairs = "F2FP.SATFINITE.E8.BF16.UNPACK_B_MERGE_C.RP R0, R1, R2"
    assert one(pairs, "R0", R1=0x3F804001, R2=7) == 0x00077F81  # 1, and 2 + 2**-6


def test_powers_of_two_become_bfloat16() -> None:
    text = "F2FP.BF16.E8.UNPACK_B R0, R1"
    assert one(text, "R0", R1=0x7F80) == 0x3F804000  # 127 and 128: 1 and 2
    assert one(text, "R0", R1=0xFF00) == 0x7FFF0040  # no number, and 2**-127, which is subnormal
    assert one(f"{text}.H1", "R0", R1=0x01FE0000) == 0x00807F00
