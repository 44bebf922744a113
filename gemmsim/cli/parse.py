"""What the command line says in words of its own: --arg, --grid, --block, --set-kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError, nearest
from gemmsim.trace.types import Argument

MAX_ARRAY_BYTES = 8 * 2**30  # beyond it the host, not the GPU, would be what fails

# dtype -> what an array of it is made of; bf16 is held as its bit patterns
NUMPY_DTYPES: dict[str, type[np.generic]] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u32": np.uint32,
    "u64": np.uint64,
}
_FLOATS = ("f16", "bf16", "f32", "f64")
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


def random_array(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    """Floats from [-0.5, 0.5), signed integers from [-8, 8), unsigned ones from [0, 16)."""
    if dtype == "f64":
        return random.random(shape) - 0.5
    if dtype in _FLOATS:
        values = random.random(shape, dtype=np.float32) - np.float32(0.5)
        return bf16_bits(values) if dtype == "bf16" else values.astype(NUMPY_DTYPES[dtype], copy=False)
    low = -8 if dtype.startswith("i") else 0
    return random.integers(low, low + 16, shape).astype(NUMPY_DTYPES[dtype])


def check_array_size(what: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Raises GemmsimError, beginning with `what`, for an array above MAX_ARRAY_BYTES."""
    size_bytes = math.prod(shape) * np.dtype(NUMPY_DTYPES[dtype]).itemsize
    if size_bytes > MAX_ARRAY_BYTES:
        limit = MAX_ARRAY_BYTES >> 30
        raise GemmsimError(f"{what}: {size_bytes / 2**30:.1f} GiB, but an array may have {limit} GiB at most")


def bf16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of finite float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


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
        if dtype in _FLOATS:
            return float(value)
        number = int(value, 0)
    except ValueError:
        kind = "a number" if dtype in _FLOATS else "an integer"
        raise GemmsimError(f"--arg '{text}': '{value}' is not {kind}") from None
    limits = np.iinfo(np.dtype(NUMPY_DTYPES[dtype]))
    if not limits.min <= number <= limits.max:
        raise GemmsimError(f"--arg '{text}': {number} does not fit {dtype}, which holds {limits.min} to {limits.max}")
    return number


def _filled(dtype: str, shape: tuple[int, ...], value: float | int) -> NDArray[np.generic]:
    if dtype == "bf16":
        return np.full(shape, bf16_bits(np.array([value], np.float32))[0])
    return np.full(shape, value, NUMPY_DTYPES[dtype])
