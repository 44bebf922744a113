"""Arrays that a kernel is called with: their NumPy types, their limit, and random contents."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError
from gemmsim.support.periodic_array import PERIOD_BYTES, periodic_array

MAX_ARRAY_BYTES = 8 * 2**30  # beyond it the host, not the GPU, would be what fails

NUMPY_DTYPES = {name: np.dtype(dtype.numpy_name) for name, dtype in DTYPES.items()}
REPEATED_ABOVE = 1 << 20  # elements


def random_array(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    """Floats from [-0.5, 0.5), signed integers from [-8, 8), unsigned ones from [0, 16)."""
    if dtype == "f64":
        return random.random(shape) - 0.5
    if dtype in FLOATS:
        values = np.asarray(random.random(shape, dtype=np.float32))
        values -= np.float32(0.5)
        return bf16_bits(values) if dtype == "bf16" else values.astype(NUMPY_DTYPES[dtype], copy=False)
    low = -8 if dtype.startswith("i") else 0
    return random.integers(low, low + 16, shape).astype(NUMPY_DTYPES[dtype])


def drawn(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    """As `random_array`; of more than REPEATED_ABOVE elements one period is drawn (`support.periodic_array`)."""
    if math.prod(shape) <= REPEATED_ABOVE:
        return random_array(dtype, shape, random)
    return periodic_array(random_array(dtype, (_run_length(dtype),), random), shape)


def filled(dtype: str, shape: tuple[int, ...], value: float) -> NDArray[np.generic]:
    """An array of one value."""
    if math.prod(shape) <= REPEATED_ABOVE:
        return np.full(shape, value, NUMPY_DTYPES[dtype])
    return periodic_array(np.full(_run_length(dtype), value, NUMPY_DTYPES[dtype]), shape)


def _run_length(dtype: str) -> int:
    return PERIOD_BYTES // DTYPES[dtype].item_bytes


def check_array_size(what: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Raises GemmsimError, beginning with `what`, for an array above MAX_ARRAY_BYTES."""
    size_bytes = math.prod(shape) * DTYPES[dtype].item_bytes
    if size_bytes > MAX_ARRAY_BYTES:
        limit = MAX_ARRAY_BYTES >> 30
        raise GemmsimError(f"{what}: {size_bytes / 2**30:.1f} GiB, but an array may have {limit} GiB at most")


def bf16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of finite float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
