"""What the command line says in words of its own: --arg, --grid, --block, --set-kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.arrays import NUMPY_DTYPES, bf16_bits, check_array_size, random_array
from gemmsim.support.dtypes import FLOATS
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.types import Argument

_ARGUMENT = re.compile(r"(?P<dtype>\w+)(\[(?P<shape>[^\]]*)\])?(=(?P<value>.*))?", re.DOTALL)
_FORMS = "expected f32[256,256] (random), f32[256,256]=0, i32=256 or f32=1.0"


def parse_dims(text: str, option: str) -> tuple[int, int, int]:
    """`8`, `8,8` or `8,8,1` as (x, y, z). Raises GemmsimError unless there are one to three integers of at least 1."""
    words = text.split(",")
    if not 1 <= len(words) <= 3 or not all(re.fullmatch(r"\s*[0-9]+\s*", word) for word in words):
        raise GemmsimError(f"{option} '{text}' is not X,Y,Z: expected one to three positive integers, as in 8,8,1")
    dims = [int(word) for word in words] + [1] * (3 - len(words))
    if min(dims) < 1:
        raise GemmsimError(f"{option} '{text}' has a size below 1: every dimension must be at least 1")
    return dims[0], dims[1], dims[2]


def parse_argument(text: str, random: np.random.Generator) -> Argument:
    """One --arg; an array without a value is random, see `random_array`."""
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise GemmsimError(f"--arg '{text}' is malformed: {_FORMS}")
    dtype, shape_text, value_text = match["dtype"], match["shape"], match["value"]
    if dtype not in NUMPY_DTYPES:
        raise GemmsimError(
            f"--arg '{text}': unknown type '{dtype}'{nearest(dtype, NUMPY_DTYPES)}: known are {', '.join(NUMPY_DTYPES)}"
        )
    if shape_text is None:
        if value_text is None:
            raise GemmsimError(f"--arg '{text}': a scalar needs a value, as in {dtype}=1")
        return Argument(dtype, (), _number(text, dtype, value_text))
    shape = _shape(text, dtype, shape_text)
    if value_text is None:
        return Argument(dtype, shape, random_array(dtype, shape, random))
    return Argument(dtype, shape, _filled(dtype, shape, _number(text, dtype, value_text)))


def parse_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """`key=value`, repeated. Raises GemmsimError for a text of another form and for a key that comes twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise GemmsimError(f"{option} '{text}' is malformed: expected key=value")
        if key in pairs:
            raise GemmsimError(f"{option} {key} is given twice")
        pairs[key] = value
    return pairs


def _shape(text: str, dtype: str, shape_text: str) -> tuple[int, ...]:
    words = shape_text.split(",")
    if not all(re.fullmatch(r"\s*[0-9]+\s*", word) for word in words) or min(map(int, words)) < 1:
        raise GemmsimError(f"--arg '{text}': shape [{shape_text}] must be positive integers, as in {dtype}[256,256]")
    shape = tuple(map(int, words))
    check_array_size(f"--arg '{text}'", dtype, shape)
    return shape


def _number(text: str, dtype: str, value: str) -> float | int:
    try:
        if dtype in FLOATS:
            return float(value)
        number = int(value, 0)
    except ValueError:
        kind = "a number" if dtype in FLOATS else "an integer"
        raise GemmsimError(f"--arg '{text}': '{value}' is not {kind}") from None
    limits = np.iinfo(NUMPY_DTYPES[dtype])
    if not limits.min <= number <= limits.max:
        raise GemmsimError(f"--arg '{text}': {number} does not fit {dtype}, which holds {limits.min} to {limits.max}")
    return number


def _filled(dtype: str, shape: tuple[int, ...], value: float | int) -> NDArray[np.generic]:
    if dtype == "bf16":
        return np.full(shape, bf16_bits(np.array([value], np.float32))[0])
    return np.full(shape, value, NUMPY_DTYPES[dtype])
