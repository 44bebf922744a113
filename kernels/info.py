"""What is known of a ladder kernel without compiling it: importable where there is neither numba nor CUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# The type of C, alpha and beta, where it is not that of A and B
_RESULT_DTYPES = {"f16": "f32", "bf16": "f32", "i8": "i32"}


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
class KernelInfo:
    """One rung of the ladder: C = alpha * A @ B + beta * C, with A [m, k], B [k, n] and C [m, n] C-contiguous.

    arguments  parameters of the kernel function, in order: those of the default, those in `zeros` and, if "bias" is
               among them, a vector [n] of C's type that is added to each row of C; alpha and beta are scalars of it
    zeros      (m, n, k, tunables) -> {name: (dtype, shape)} of its further arguments, arrays of zeros at the launch
    relu       C is max(0, ...) of all that
    operand_roundoff  unit roundoff of the precision to which the kernel rounds A and B first, 0 where it does not
    dtypes     that A and B may have, the default first; for C see `result_dtype`
    teaches    what this rung shows; look_for: where it shows in a report
    launch     (m, n, k, tunables) -> how to launch it; every tunable must be given. ValueError, one line, where they do
               not fit together
    b_transposed  B is given as its transpose, [n, k]
    build      (**tunables) -> the numba.cuda dispatcher; imports numba
    """

    name: str
    title: str
    teaches: str
    look_for: str
    launch: Callable[[int, int, int, dict[str, int]], LaunchShape]
    build: Callable[..., Any]
    tunables: tuple[Tunable, ...] = ()
    dtypes: tuple[str, ...] = ("f32",)
    arguments: tuple[str, ...] = ("A", "B", "C", "alpha", "beta")
    b_transposed: bool = False
    zeros: Callable[[int, int, int, dict[str, int]], dict[str, tuple[str, tuple[int, ...]]]] | None = None
    relu: bool = False
    operand_roundoff: float = 0.0

    @staticmethod
    def result_dtype(dtype: str) -> str:
        """The type of C, alpha and beta where A and B are `dtype`."""
        return _RESULT_DTYPES.get(dtype, dtype)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
