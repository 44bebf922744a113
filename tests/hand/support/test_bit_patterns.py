"""Types that NumPy lacks, against values of their definitions and against a search through all patterns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.support.bit_patterns import bf16_bits, fp8_values, tf32_values, to_items, to_numbers


def test_fp8_values_by_hand() -> None:
    """Arxiv 2209.05433, table 1: the largest and the smallest numbers, and what has no number."""
    e4m3, e5m2 = fp8_values("e4m3"), fp8_values("e5m2")
    assert (e4m3[0x7E], e4m3[0x08], e4m3[0x07], e4m3[0x01]) == (448, 2**-6, 0.875 * 2**-6, 2**-9)
    assert np.isnan(e4m3[[0x7F, 0xFF]]).all() and np.isfinite(e4m3[:0x7F]).all()
    assert (e5m2[0x7B], e5m2[0x04], e5m2[0x03], e5m2[0x01]) == (57344, 2**-14, 0.75 * 2**-14, 2**-16)
    assert e5m2[0x7C] == np.inf and e5m2[0xFC] == -np.inf and np.isnan(e5m2[0x7D:0x80]).all()
    assert (e4m3[0xB8], e5m2[0xBC]) == (-1, -1)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_every_fp8_pattern_comes_back(dtype: str) -> None:
    values = fp8_values(dtype)
    known = ~np.isnan(values)
    assert to_items(dtype, values)[known].tolist() == np.arange(256)[known].tolist()
    assert np.isnan(values[to_items(dtype, np.array([np.nan]))]).all()


@given(st.sampled_from(["e4m3", "e5m2"]), st.floats(-70000, 70000))
def test_fp8_is_the_nearest_and_even_where_two_are(dtype: str, value: float) -> None:
    table = fp8_values(dtype)
    finite = np.flatnonzero(np.isfinite(table) & (np.signbit(table) == np.signbit(value)))
    distance = np.abs(table[finite] - value)
    nearest = finite[distance == distance.min()]
    got = int(to_items(dtype, np.array([value]))[0])
    assert got in nearest and (len(nearest) == 1 or got % 2 == 0)


def test_halfway_goes_to_the_even_pattern() -> None:
    """17 lies between 16 (0x58) and 18 (0x59), 19 between 18 and 20 (0x5a); so do their negatives."""
    assert to_items("e4m3", np.array([17.0, 19.0, -17.0, -19.0])).tolist() == [0x58, 0x5A, 0xD8, 0xDA]
    assert to_items("e5m2", np.array([9.0, 11.0])).tolist() == [0x48, 0x4A]  # of 8 (0x48), 10 (0x49) and 12 (0x4a)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_many_singles_become_what_each_of_them_does(dtype: str) -> None:
    """All upper halves of a float32, NaN and infinity among them, and what lies next to each and halfway to the next;
    then numbers as arrays have them."""
    halves = np.arange(1 << 16, dtype=np.uint32)[:, None] << 16
    values = (halves | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).view(np.float32).reshape(-1)
    values = np.append(values, np.random.default_rng(1).random(100_000, np.float32) - np.float32(0.5))
    with np.errstate(invalid="ignore"):  # some are signaling NaN
        one_by_one = to_items(dtype, values.astype(np.float64))
    assert (to_items(dtype, values) == one_by_one).all()


def test_beyond_the_largest_number() -> None:
    """fp8 saturates; infinity is infinity where the type has it."""
    assert to_items("e4m3", np.array([500.0, -1e9])).tolist() == [0x7E, 0xFE]
    assert to_items("e5m2", np.array([6e4, np.inf, -np.inf])).tolist() == [0x7B, 0x7C, 0xFC]
    assert bf16_bits(np.array([np.inf, np.nan], np.float32)).tolist() == [0x7F80, 0x7FC0]


def test_tf32_keeps_ten_bits() -> None:
    """1 + 2**-11 lies halfway between 1 and 1 + 2**-10: to the even one. 1 + 3 * 2**-11 goes up."""
    values = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-10, np.inf], np.float32)
    assert tf32_values(values).tolist() == [1, 1 + 2.0**-9, -1 - 2.0**-10, np.inf]


def test_four_bit_integers() -> None:
    signed = to_items("s4", np.array([[-8, 7, -1, 0]]))
    assert signed.tolist() == [[0x78, 0x0F]] and to_numbers("s4", signed).tolist() == [[-8, 7, -1, 0]]
    assert to_numbers("u4", np.array([0x9F], np.uint8)).tolist() == [15, 9]
    assert to_numbers("bf16", np.array([0x3FC0], np.uint16)).tolist() == [1.5]
