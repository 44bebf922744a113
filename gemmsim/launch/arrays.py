"""Makes the arrays with which a kernel is called, and limits their size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError
from gemmsim.support.periodic_array import PERIOD_BYTES, periodic_array
from gemmsim.trace.types import Argument, Launch

MAX_ARRAY_BYTES = 8 * 2**30  # a larger array might not fit into the memory of the machine that simulates

NUMPY_DTYPES = {name: np.dtype(dtype.numpy_name) for name, dtype in DTYPES.items()}
PERIODIC_ABOVE = 1 << 20  # in elements of an array; see `Contents`


@dataclass(frozen=True, slots=True)
class Contents:
    """Says what an array holds when the kernel starts. It is the `value` of an `Argument` until the array is made.

    value     the value of every element; None: random numbers, see `random_array`
    periodic  whether an array of more than PERIODIC_ABOVE elements repeats one block of elements, which saves time and
              memory, see `support.periodic_array`
    """

    value: float | None = None
    periodic: bool = True


def with_arrays(launch: Launch, seed: int) -> Launch:
    """Return `launch` with an array in place of each `Contents`; arrays that are there already stay as they are.

    One generator, which starts from `seed`, draws all random arrays, in the order of the arguments.
    """
    random = np.random.default_rng(seed)
    args = (
        replace(one, value=_filled(one.value, one.dtype, one.shape, random)) if isinstance(one.value, Contents) else one
        for one in launch.args
    )
    return replace(launch, args=tuple(args))


def array_argument(what: str, dtype: str, shape: tuple[int, ...], contents: Contents) -> Argument:
    """Make an array argument that `with_arrays` fills.

    Raises GemmsimError, whose message begins with `what`, for an array of more than MAX_ARRAY_BYTES.
    """
    size_bytes = math.prod(shape) * DTYPES[dtype].item_bytes
    if size_bytes > MAX_ARRAY_BYTES:
        limit = MAX_ARRAY_BYTES >> 30
        raise GemmsimError(f"{what}: {size_bytes / 2**30:.1f} GiB, but an array may have {limit} GiB at most")
    return Argument(dtype, shape, contents)


def random_array(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    """Draw an array: floats from [-0.5, 0.5), signed integers from [-8, 8), unsigned ones from [0, 16)."""
    if dtype == "f64":
        return random.random(shape) - 0.5
    if dtype in FLOATS:
        values = np.asarray(random.random(shape, dtype=np.float32))
        values -= np.float32(0.5)
        return bf16_bits(values) if dtype == "bf16" else values.astype(NUMPY_DTYPES[dtype], copy=False)
    low = -8 if dtype.startswith("i") else 0
    return random.integers(low, low + 16, shape).astype(NUMPY_DTYPES[dtype])


def bf16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round finite float32 values to bf16, to nearest even, and return the bits: the upper halves of the float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _filled(contents: Contents, dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    periodic = contents.periodic and math.prod(shape) > PERIODIC_ABOVE
    made = (PERIOD_BYTES // DTYPES[dtype].item_bytes,) if periodic else shape
    if contents.value is None:
        values = random_array(dtype, made, random)
    elif dtype == "bf16":
        values = np.full(made, bf16_bits(np.array([contents.value], np.float32))[0])
    else:
        values = np.full(made, contents.value, NUMPY_DTYPES[dtype])
    return periodic_array(values, shape) if periodic else values
