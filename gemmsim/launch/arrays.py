"""Makes the arrays with which a kernel is called, and limits their size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.array_files import FileContents, items_of, raw_items, read_array
from gemmsim.support.bit_patterns import is_bit_type, tf32_values, to_items
from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError
from gemmsim.support.periodic_array import MAPPED, PERIOD_BYTES, periodic_array
from gemmsim.trace.types import Argument, Launch, shown_type

MAX_ARRAY_BYTES = 8 * 2**30  # a larger array might not fit into the memory of the machine that simulates
# An array that repeats one period takes no memory, but 257 mappings a GiB. Linux gives a process 65,530 (its default of
# vm.max_map_count); A, B, C and the copy of C that is stored to take 32,900 of them if they have this size each.
MAX_PERIODIC_BYTES = 32 * 2**30

NUMPY_DTYPES = {name: np.dtype(dtype.numpy_name) for name, dtype in DTYPES.items()}
PERIODIC_ABOVE = 1 << 20  # in elements of an array; see `Contents`


@dataclass(frozen=True, slots=True)
class Contents:
    """Says what an array holds when the kernel starts. It is the `value` of an `Argument` until the array is made.

    value     the value of every element, or a tuple of the values of all elements in C order, or a file with them;
              None: random numbers, see `random_array`
    periodic  whether an array of more than PERIODIC_ABOVE elements repeats one block of elements, which saves time and
              memory, see `support.periodic_array`
    """

    value: float | tuple[float, ...] | FileContents | None = None
    periodic: bool = True


def with_arrays(launch: Launch, seed: int) -> Launch:
    """Return `launch` with an array in place of each `Contents`; arrays that are there already stay as they are.

    One generator, which starts from `seed`, draws all random arrays, in the order of the arguments, and then those of
    the variables. Raises GemmsimError where a file does not hold the array that an argument wants.
    """
    random = np.random.default_rng(seed)

    def filled(one: Argument) -> Argument:
        wanted = one.value
        return (
            replace(one, value=_filled(wanted, one.dtype, one.shape, random)) if isinstance(wanted, Contents) else one
        )

    args = tuple(filled(one) for one in launch.args)
    return replace(launch, args=args, symbols=tuple((name, filled(one)) for name, one in launch.symbols))


def array_argument(what: str, dtype: str, shape: tuple[int, ...], contents: Contents, name: str = "") -> Argument:
    """Make an array argument that `with_arrays` fills.

    Raises GemmsimError, whose message begins with `what`, for an array that is too large (`check_size`).
    """
    argument = Argument(dtype, shape, contents, name)
    check_size(what, argument)
    return argument


def check_size(what: str, argument: Argument) -> None:
    """Raises GemmsimError, whose message begins with `what`, for an array of more than MAX_ARRAY_BYTES, or
    MAX_PERIODIC_BYTES where it repeats one period.
    """
    wanted, size_bytes = argument.value, argument.memory_bytes
    repeats = isinstance(wanted, Contents) and _repeats(wanted, argument.shape) and argument.plain
    limit_bytes = MAX_PERIODIC_BYTES if repeats and MAPPED else MAX_ARRAY_BYTES
    if size_bytes > limit_bytes:
        limit = f"{limit_bytes >> 30} GiB at most"
        raise GemmsimError(f"{what}: {size_bytes / 2**30:.1f} GiB, but an array may have {limit}")


def shown_argument(argument: Argument) -> str:
    """Return an argument as a report shows it: "A: f32[64,64]", "i32=64"."""
    name = f"{argument.name}: " if argument.name else ""
    if argument.shape:
        return f"{name}{shown_type(argument)}"
    return f"{name}{argument.dtype}={argument.value}"


def random_array(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    """Draw an array of `shape` items.

    Floats come from [-0.5, 0.5), signed integers from [-8, 8), unsigned ones from [0, 16), bool from both values. tf32
    values are rounded to tf32, so that a tensor core computes with the numbers that the array holds.
    """
    if dtype == "f64":
        return random.random(shape) - 0.5
    if dtype in FLOATS:
        values = np.asarray(random.random(shape, dtype=np.float32))
        values -= np.float32(0.5)
        if dtype == "tf32":
            return tf32_values(values)
        return to_items(dtype, values) if is_bit_type(dtype) else values.astype(NUMPY_DTYPES[dtype], copy=False)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    if is_bit_type(dtype):
        return random.integers(0, 256, shape).astype(NUMPY_DTYPES[dtype])  # both elements of each byte are random
    low = -8 if dtype.startswith("i") else 0
    return random.integers(low, low + 16, shape).astype(NUMPY_DTYPES[dtype])


def _repeats(contents: Contents, shape: tuple[int, ...]) -> bool:
    """Whether an array is made of one period that is mapped again and again."""
    drawn = not isinstance(contents.value, tuple | FileContents)
    return drawn and contents.periodic and math.prod(shape) > PERIODIC_ABOVE


def _filled(contents: Contents, dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.generic]:
    value = contents.value
    if isinstance(value, FileContents):
        what = f"array {dtype}{list(shape)} from {value.path}"
        array = read_array(value, what)
        named = value.path.endswith((".npy", ".npz"))
        return (items_of if named else raw_items)(array, dtype, shape, what)
    if isinstance(value, tuple):
        exact = None if is_bit_type(dtype) else NUMPY_DTYPES[dtype]
        return to_items(dtype, np.array(value, exact)).reshape(shape)
    periodic = _repeats(contents, shape)
    made = (PERIOD_BYTES // DTYPES[dtype].item_bytes,) if periodic else shape
    if value is None:
        values = random_array(dtype, made, random)
    else:
        # A packed item needs two elements; other types have one element an item.
        item = to_items(dtype, np.full(DTYPES[dtype].packed, value))[0]
        zero = not any(np.asarray(item, NUMPY_DTYPES[dtype]).tobytes())  # memory that is never written costs nothing
        values = np.zeros(made, NUMPY_DTYPES[dtype]) if zero else np.full(made, item, NUMPY_DTYPES[dtype])
    return periodic_array(values, shape) if periodic else values
