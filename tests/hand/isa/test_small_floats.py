"""F2FP from and to floats of 8 and 6 bits: every byte, and every value near a boundary between two of them."""

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
    with pytest.raises(GemmsimError, match=r"modifier .E8"):
        run("F2FP.BF16.E8.UNPACK_B R0, R1")
