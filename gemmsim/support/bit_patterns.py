"""Converts numbers to and from the types that NumPy lacks: bf16, fp8 (e4m3, e5m2), and integers of four bits.

bf16 is the upper half of a float32. e5m2 is laid out as IEEE 754 lays out its types. e4m3 has no infinities; of the
patterns with the largest exponent only the last is NaN, so that its largest number is 448 (Micikevicius et al., "FP8
Formats for Deep Learning", arXiv 2209.05433, table 1). Two 4-bit integers share a byte; the first has the low bits.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import BIT_FLOATS, DTYPES

# Bits of the exponent and of the fraction.
_FP8 = {"e4m3": (4, 3), "e5m2": (5, 2)}
_MANY = 1 << 18  # numbers, for which it pays to convert each half of a float32 first


def to_items(dtype: str, values: NDArray) -> NDArray:
    """Convert numbers to the items of an array of this type.

    values  numbers of any NumPy type; for a packed type the last dimension must be even

    Returns an array of `DTYPES[dtype].numpy_name`: rounded to nearest even where the type is a float. An fp8 value
    beyond the largest number becomes the largest number, as with CUDA's __NV_SATFINITE; bf16 becomes infinite. Items of
    a packed type take half as many places of the last dimension.
    """
    if dtype == "bf16":
        return bf16_bits(np.asarray(values, np.float32))
    if dtype in _FP8:
        values = np.asarray(values)
        singles = values.dtype == np.float32 and values.size > _MANY
        return _fp8_of_singles(dtype, values) if singles else _fp8_bits(dtype, np.asarray(values, np.float64))
    if dtype == "tf32":
        return tf32_values(np.asarray(values, np.float32))
    if DTYPES[dtype].packed == 2:
        nibbles = np.asarray(values).astype(np.int64).astype(np.uint8) & 0xF
        return nibbles[..., 0::2] | nibbles[..., 1::2] << 4
    return np.asarray(values).astype(DTYPES[dtype].numpy_name, copy=False)


def to_numbers(dtype: str, items: NDArray) -> NDArray:
    """Return the numbers that the items of an array of this type stand for.

    The result is float32 for bf16, float64 for fp8, int8 for packed types (the last dimension twice as long), and
    `items` itself for all others.
    """
    if dtype == "bf16":
        return (items.astype(np.uint32) << 16).view(np.float32)
    if dtype in _FP8:
        return fp8_values(dtype)[items]
    if DTYPES[dtype].packed == 2:
        low, high = items & 0xF, items >> 4
        nibbles = np.stack([low, high], axis=-1).reshape(*items.shape[:-1], 2 * items.shape[-1]).astype(np.int8)
        return np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8) if dtype == "s4" else nibbles
    return items


def bf16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round float32 values to bf16, to nearest even, and return the bits: the upper halves of the float32."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def tf32_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round finite float32 values to tf32 (10 bits of fraction), to nearest even; the result is float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~np.uint64(0x1FFF)
    return np.where(np.isfinite(values), rounded.astype(np.uint32).view(np.float32), values)


@cache
def fp8_values(dtype: str) -> NDArray[np.float64]:
    """Return the number of each of the 256 bit patterns of "e4m3" or "e5m2", float64 [256]."""
    exponent_bits, fraction_bits = _FP8[dtype]
    bias, patterns = (1 << (exponent_bits - 1)) - 1, np.arange(128)
    exponent, fraction = patterns >> fraction_bits, patterns & (1 << fraction_bits) - 1
    subnormal = fraction * 2.0 ** (1 - bias - fraction_bits)
    normal = (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
    values = np.where(exponent == 0, subnormal, normal)
    if dtype == "e4m3":
        values[127] = np.nan
    else:
        values[124:] = [np.inf, np.nan, np.nan, np.nan]
    return np.concatenate([values, -values])


def _fp8_bits(dtype: str, values: NDArray[np.float64]) -> NDArray[np.uint8]:
    table = fp8_values(dtype)[:128]
    finite = table[np.isfinite(table)]
    size = np.abs(np.nan_to_num(values, nan=0.0))
    above = np.searchsorted(finite, size).clip(1, len(finite) - 1)
    middle = (finite[above - 1] + finite[above]) / 2
    # A number halfway between two goes to the even pattern. The larger one is even where its pattern's last bit is 0.
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    bits = np.where(up, above, above - 1).astype(np.uint8)
    bits = np.where(np.isinf(values), np.uint8(0x7F if dtype == "e4m3" else 0x7C), bits)
    bits = np.where(np.isnan(values), np.uint8(0x7F), bits)
    return bits | np.where(np.signbit(values), np.uint8(0x80), np.uint8(0)).astype(np.uint8)


def _fp8_of_singles(dtype: str, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Do as `_fp8_bits` for millions of float32: to what one is rounded follows from its upper half, and from whether
    any bit of the lower one is set, as an fp8 number and what lies halfway to the next have few bits of fraction."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return _fp8_by_halves(dtype)[bits >> 16 << 1 | ((bits & 0xFFFF) != 0)]


@cache
def _fp8_by_halves(dtype: str) -> NDArray[np.uint8]:
    number = np.arange(1 << 17, dtype=np.uint32)
    with np.errstate(invalid="ignore"):  # some are signaling NaN
        values = (number >> 1 << 16 | number & 1).view(np.float32).astype(np.float64)
    return _fp8_bits(dtype, values)


def is_bit_type(dtype: str) -> bool:
    """Whether arrays of this type hold bit patterns and not numbers."""
    return dtype in BIT_FLOATS or DTYPES[dtype].packed > 1
