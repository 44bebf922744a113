"""Reads a launch as it is written on a command line and in tests: dimensions, sizes and KEY=VALUE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral

from gemmsim.support.errors import GemmsimError

_COUNT = re.compile(r"\s*[0-9]{1,18}\s*")  # what fits 64 bits


def parse_dims(text: str, option: str) -> tuple[int, int, int]:
    """Read `8`, `8,8` or `8,8,1` as (x, y, z).

    Raises GemmsimError for a text that is not one to three integers of at least 1.
    """
    words = text.split(",")
    if not 1 <= len(words) <= 3 or not all(map(_COUNT.fullmatch, words)):
        raise GemmsimError(f"{option} '{text}' is not X,Y,Z: expected one to three positive integers, as in 8,8,1")
    dims = [int(word) for word in words] + [1] * (3 - len(words))
    if min(dims) < 1:
        raise GemmsimError(f"{option} '{text}' has a size below 1: every dimension must be at least 1")
    return dims[0], dims[1], dims[2]


def problem_size(size: int | None, m: int | None, n: int | None, k: int | None) -> tuple[int, int, int] | None:
    """Return the problem size (m, n, k) from --size, or from --m, --n and --k; None where none of them was given."""
    given = {"--m": m, "--n": n, "--k": k}
    for name, value in {"--size": size, **given}.items():
        if value is not None and (not isinstance(value, Integral) or value < 1):
            raise GemmsimError(f"{name} {value} is not a size: it must be an integer of at least 1")
    missing = [name for name, value in given.items() if value is None]
    if size is not None:
        if len(missing) < 3:
            raise GemmsimError("--size stands for --m, --n and --k together: give one or the others")
        return size, size, size
    if len(missing) == 3:
        return None
    if m is None or n is None or k is None:
        raise GemmsimError(f"{' and '.join(missing)} missing: give --size N, or all of --m, --n and --k")
    return m, n, k


def needed_size(size: tuple[int, int, int] | None) -> tuple[int, int, int]:
    """Return `size`. Raises GemmsimError where it is None, which means that the user gave none."""
    if size is None:
        raise GemmsimError("no problem size: give --size N, or --m, --n and --k")
    return size


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read texts `key=value` as {key: value}. Raises GemmsimError for another form and for a key that comes twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise GemmsimError(f"{option} '{text}' is malformed: expected key=value")
        if key in pairs:
            raise GemmsimError(f"{option} {key} is given twice")
        pairs[key] = value
    return pairs


def parse_tunables(texts: Iterable[str], option: str) -> dict[str, int]:
    """Read texts `key=16` as {key: 16}.

    Raises GemmsimError as `parse_assignments` does, and for a value that is no integer.
    """
    chosen = {}
    for key, value in parse_assignments(texts, option).items():
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise GemmsimError(f"{option} {key}={value}: '{value}' is not an integer")
        chosen[key] = int(value)
    return chosen
