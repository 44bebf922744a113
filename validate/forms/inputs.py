"""Draws the words that the kernels read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .form import LANES, Form

Words = NDArray[np.uint32]
_NIBBLES = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)  # places of two elements of four, in order (PTX ISA)
_TF32_NIBBLES = (0b0100, 0b1110)


def _bits(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    return random.integers(0, 1 << 32, shape, np.uint32)


def _singles(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Draw float32 around 1, of both signs, a few of them zeros."""
    values = random.standard_normal(shape) * 2.0 ** random.integers(-3, 4, shape)
    return np.where(random.random(shape) < 1 / 32, 0, values).astype(np.float32).view(np.uint32)


def _halves(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    values = random.standard_normal((*shape, 2)) * 2.0 ** random.integers(-3, 3, (*shape, 2))
    return values.astype(np.float16).view(np.uint32)[..., 0]


def _brain_halves(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    low, high = _singles(random, shape), _singles(random, shape)
    return (high & np.uint32(0xFFFF0000)) | (low >> np.uint32(16))


def _tf32(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    return _singles(random, shape) & np.uint32(0xFFFFE000)


def _bytes(random: np.random.Generator, shape: tuple[int, ...], largest: int) -> Words:
    """Draw four bytes, each a sign bit and a magnitude up to `largest`."""
    magnitude = random.integers(0, largest + 1, (*shape, 4), np.uint8)
    sign = random.integers(0, 2, (*shape, 4), np.uint8) << 7
    return np.ascontiguousarray(magnitude | sign).view(np.uint32)[..., 0]


def _double_high(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
    return ((random.standard_normal(shape) * 8).view(np.uint64) >> np.uint64(32)).astype(np.uint32)


def _metadata(nibbles: tuple[int, ...]) -> Callable[[np.random.Generator, tuple[int, ...]], Words]:
    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Words:
        chosen = np.asarray(nibbles, np.uint32)[random.integers(0, len(nibbles), (*shape, 8))]
        return np.bitwise_or.reduce(chosen << (4 * np.arange(8, dtype=np.uint32)), axis=-1)

    return draw


# how to draw a word -> the function that draws an array of them
DRAWN: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Words]] = {
    "b32": _bits,
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), _bits),
    "s32": lambda random, shape: _bits(random, shape) >> np.uint32(12),
    "f32": _singles,
    "f16": _halves,
    "bf16": _brain_halves,
    "tf32": _tf32,
    "e4m3": lambda random, shape: _bytes(random, shape, 0x5F),  # up to 30
    "e5m2": lambda random, shape: _bytes(random, shape, 0x4F),  # up to 28
    "f64": _bits,
    "f64 high": _double_high,
    "quads": _metadata(_NIBBLES),
    "pairs": _metadata(_TF32_NIBBLES),
    "nibble pairs": _metadata(_NIBBLES),
}


def draw(form: Form, blocks: int) -> Words:
    """Return the words that the kernel reads, uint32 [blocks, 32, words of a lane]; the same ones at each call.

    Of a word that is drawn as "same", every second lane's equals the word four places before it.
    """
    random = np.random.default_rng([len(form.name), *form.name.encode()])
    words = np.zeros((blocks, LANES, len(form.reads)), np.uint32)
    for place, kind in enumerate(form.reads):
        if kind == "same":
            words[..., place] = _bits(random, (blocks, LANES))
            words[:, ::2, place] = words[:, ::2, place - 4]
        else:
            words[..., place] = DRAWN[kind](random, (blocks, LANES))
    return words
