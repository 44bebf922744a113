"""Tiles as TMA copies them, in NumPy: what is in a tile, and where its 16-byte pieces go in shared memory."""

from __future__ import annotations

import itertools

import numpy as np

Sizes = tuple[int, ...]


def places(box: Sizes, steps: Sizes, at: Sizes) -> list[Sizes]:
    """The indices of a tile's elements, in the order in which they follow each other; the innermost step counts not."""
    every = [*steps[:-1], 1]
    counts = [range(-(-size // step)) for size, step in zip(box, every, strict=True)]
    return [
        tuple(start + step * i for start, step, i in zip(at, every, index, strict=True))
        for index in itertools.product(*counts)
    ]


def inside(place: Sizes, shape: Sizes) -> bool:
    return all(0 <= i < n for i, n in zip(place, shape, strict=True))


def pieces(count: int, swizzle: str) -> np.ndarray:
    """Where each 16-byte piece of a tile goes that begins at a multiple of 1024: int [count]."""
    span = {"none": 1, "32B": 2, "64B": 4, "128B": 8}[swizzle]
    number = np.arange(count)
    return number ^ (number // 8 % span)


def loaded(array: np.ndarray, box: Sizes, swizzle: str, steps: Sizes, at: Sizes) -> np.ndarray:
    """The bytes in shared memory after a tile was loaded: uint8."""
    values = [array[p] if inside(p, array.shape) else array.dtype.type(0) for p in places(box, steps, at)]
    plain = np.array(values, array.dtype).view(np.uint8).reshape(-1, 16)
    out = np.zeros_like(plain)
    out[pieces(len(plain), swizzle)] = plain
    return out.reshape(-1)


def stored(
    array: np.ndarray, tile: np.ndarray, box: Sizes, swizzle: str, steps: Sizes, at: Sizes, adds: bool = False
) -> np.ndarray:
    """The array after the bytes of a tile in shared memory were stored, or added."""
    lines = tile.view(np.uint8).reshape(-1, 16)
    values = lines[pieces(len(lines), swizzle)].reshape(-1).view(array.dtype)
    out = array.copy()
    for value, place in zip(values, places(box, steps, at), strict=True):
        if inside(place, array.shape):
            out[place] = out[place] + value if adds else value
    return out
