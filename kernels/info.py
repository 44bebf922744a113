"""What is known of a ladder kernel without compiling it: importable where there is neither numba nor CUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# The type of C, alpha and beta, where it is not that of A and B
_RESULT_DTYPES = {"f16": "f32", "bf16": "f32", "e4m3": "f32", "i8": "i32"}


@dataclass(frozen=True, slots=True)
class Tunable:
    """A compile-time constant of a kernel that the user may choose."""

    name: str
    allowed: tuple[int, ...]
    default: int
    meaning: str


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """grid and block are (x, y, z); `dynamic_shared_bytes` a block."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BoxMap:
    """A parameter by which TMA copies boxes of an array with two dimensions, in the order of the 128-byte swizzle.

    array  name of the array's argument
    box    rows and columns of a box, in elements

    The parameter is 128 bytes of zeros where TMA cannot access the array, as its rows do not begin at multiples of 16
    bytes.
    """

    array: str
    box: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """A rung's kernel in CUDA C++.

    file     in the folder of the rungs
    entry    the kernel's name in it
    archs    {architecture: target of the compiler}; the rung exists only for these
    defines  (dtype, tunables) -> {name: value} of the macros that it is compiled with
    maps     (dtype, tunables) -> {argument: BoxMap} of its arguments that are tensor maps
    """

    file: str
    entry: str
    archs: dict[str, str]
    defines: Callable[[str, dict[str, int]], dict[str, str | int]]
    maps: Callable[[str, dict[str, int]], dict[str, BoxMap]]


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """One rung of the ladder: C = alpha * A @ B + beta * C, with A [m, k], B [k, n] and C [m, n] C-contiguous.

    arguments  parameters of the kernel function, in order: those of the default, those in `zeros` and, if "bias" is
               among them, a vector [n] of C's type that is added to each row of C; alpha and beta are scalars of it;
               m, n and k are 32-bit integers; tensor maps of `cuda` come last
    zeros      (m, n, k, tunables) -> {name: (dtype, shape)} of its further arguments, arrays of zeros at the launch
    relu       C is max(0, ...) of all that
    operand_roundoff  unit roundoff of the precision to which the kernel rounds A and B first, 0 where it does not
    dtypes     that A and B may have, the default first; for C see `result_dtype`
    teaches    what this rung shows; look_for: where it shows in a report
    launch     (m, n, k, tunables) -> how to launch it; every tunable must be given. ValueError, one line, where they do
               not fit together
    b_transposed  B is given as its transpose, [n, k]
    build      (**tunables) -> the numba.cuda dispatcher; imports numba
    cuda       the kernel where it is CUDA C++, and has no `build`
    """

    name: str
    title: str
    teaches: str
    look_for: str
    launch: Callable[[int, int, int, dict[str, int]], LaunchShape]
    build: Callable[..., Any] | None = None
    tunables: tuple[Tunable, ...] = ()
    dtypes: tuple[str, ...] = ("f32",)
    arguments: tuple[str, ...] = ("A", "B", "C", "alpha", "beta")
    b_transposed: bool = False
    zeros: Callable[[int, int, int, dict[str, int]], dict[str, tuple[str, tuple[int, ...]]]] | None = None
    relu: bool = False
    operand_roundoff: float = 0.0
    cuda: CudaSource | None = None

    @staticmethod
    def result_dtype(dtype: str) -> str:
        """The type of C, alpha and beta where A and B are `dtype`."""
        return _RESULT_DTYPES.get(dtype, dtype)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
