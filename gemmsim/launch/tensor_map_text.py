"""Reads what stands in tensormap(...) behind the array: box=64x128, swizzle=128B and so on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gemmsim.launch.tensor_maps import FILLS, SWIZZLES, Tile
from gemmsim.support.errors import GemmsimError, nearest

_SIZES = re.compile(r"[0-9]+(x[0-9]+)*")
_STRIDES = re.compile(r"[0-9]+(/[0-9]+)*")
# What changes nothing that a copy does, or nothing that is not refused: it may be said all the same.
_WITHOUT_EFFECT = {"interleave": ("none",), "l2": ("none", "64B", "128B", "256B")}


def parse_tile(settings: Sequence[str], what: str) -> Tile:
    """Read KEY=VALUE texts. Raises GemmsimError, which begins with `what`, where one is malformed or box is missing."""
    found: dict[str, str] = {}
    for text in settings:
        key, _, value = (part.strip() for part in text.partition("="))
        if key not in _KEYS and key not in _WITHOUT_EFFECT:
            known = (*_KEYS, *_WITHOUT_EFFECT)
            raise GemmsimError(f"{what}: tensormap has no '{key}'{nearest(key, known)}: known are {', '.join(known)}")
        if key in found:
            raise GemmsimError(f"{what}: {key} is given twice")
        found[key] = value
    if "box" not in found:
        raise GemmsimError(f"{what}: a tensormap needs box=, the elements of a tile, as in box=64x128")
    if ("shape" in found) != ("strides" in found):
        raise GemmsimError(f"{what}: a tensormap takes shape and strides together")
    for key, allowed in _WITHOUT_EFFECT.items():
        if found.pop(key, allowed[0]) not in allowed:
            raise GemmsimError(f"{what}: {key} can be {', '.join(allowed)}")
    return Tile(**{key: _KEYS[key](value, f"{what}: {key}") for key, value in found.items()})  # type: ignore[arg-type]


def _sizes(value: str, what: str) -> tuple[int, ...]:
    if not _SIZES.fullmatch(value) or "0" in value.split("x"):
        raise GemmsimError(f"{what} needs positive numbers, one for each dimension, as in 64x128")
    return tuple(map(int, value.split("x")))


def _strides(value: str, what: str) -> tuple[int, ...]:
    if not _STRIDES.fullmatch(value):
        raise GemmsimError(f"{what} needs elements, one number for each dimension, as in 4096/1")
    return tuple(map(int, value.split("/")))


def _one_of(names: Sequence[str]) -> Callable[[str, str], str]:
    def read(value: str, what: str) -> str:
        if value not in names:
            raise GemmsimError(f"{what} can be {', '.join(names)}")
        return value

    return read


_KEYS: dict[str, Callable[[str, str], object]] = {
    "box": _sizes,
    "swizzle": _one_of(tuple(SWIZZLES)),
    "fill": _one_of(tuple(FILLS)),
    "steps": _sizes,
    "shape": _sizes,
    "strides": _strides,
}
