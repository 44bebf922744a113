"""Finds the source of a kernel of the user's own, and which of its arguments are the matrices of a GEMM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from gemmsim.compile.source import KernelSource, kernel_file
from gemmsim.launch.cases import signature
from gemmsim.launch.spec import GemmCheck
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import is_file
from gemmsim.support.plurals import verb
from gemmsim.trace.types import Argument


def split_target(target: str) -> tuple[str, str]:
    """Split a TARGET into (file, function); the function is "" where the file is not Python."""
    file, colon, function = target.rpartition(":")
    return (file, function) if colon and Path(file).suffix.lower() == ".py" else (target, "")


def own_source(
    target: str,
    entry: str | None,
    args: Sequence[Argument] | None = (),
    compiler: str | None = None,
    options: tuple[str, ...] = (),
) -> tuple[KernelSource, str]:
    """Return the source that TARGET names, for arguments of the types of `args`, and the kernel's name for reports.

    args      the array or scalar of each parameter; None where one is a struct, which a numba kernel does not take
    compiler  of a .cu file, "nvrtc" or "nvcc"; None: NVRTC
    options   for the compiler of a .cu file

    TARGET is `FILE.py:function`, or a .cu, .ptx or binary file as `compile.kernel_file` reads them. In such a file,
    `entry` names the kernel; it may be None where the file holds only one kernel. Raises GemmsimError where the file
    cannot be read or is of no known kind.
    """
    file, function = split_target(target)
    before, colon, after = target.rpartition(":")
    if colon and Path(before).suffix.lower() in (".cu", ".ptx", ".cubin") and not is_file(Path(target)):
        raise GemmsimError(f"{target}: only a function of a Python file is named so; here {before} --entry {after}")
    if not target:
        raise GemmsimError("TARGET is empty: it is a file, such as my.cu or my.py:my_gemm")
    if function and entry:
        raise GemmsimError(f"--entry is for .cu, .ptx and binary files: {target} names its function already")
    if args is None and function:
        raise GemmsimError(f"{target}: a numba kernel takes arrays and scalars, not structs or addresses in arrays")
    if (compiler or options) and Path(file).suffix.lower() != ".cu":
        given = f"--compiler {compiler}" if compiler else options[0]
        raise GemmsimError(f"{given} is for .cu files; {target} is none")
    source = kernel_file(Path(file), function or entry, signature(args or ()), options, compiler=compiler or "nvrtc")
    return source, function or entry or Path(file).stem


def check_of_arrays(
    args: Sequence[Argument], sizes: tuple[int, int, int] | None, alpha: float, beta: float
) -> tuple[GemmCheck, tuple[int, int, int]]:
    """Return how C is checked, and (M, N, K).

    The first three arrays among `args` are taken as A, B and C. They must have two dimensions, or, where `sizes`
    (M, N, K) are given, may be flat. Raises GemmsimError where there are fewer arrays, or their shapes are not those of
    a GEMM.
    """
    arrays = [position for position, argument in enumerate(args) if argument.shape]
    if len(arrays) < 3:
        given = f"{len(arrays)} {verb(len(arrays), 'is', 'are')} given"
        raise GemmsimError(f"--verify gemm takes the first three arrays as A, B, C, but {given}")
    a, b, c = arrays[:3]
    shape_a, shape_b, shape_c = (args[position].shape for position in (a, b, c))
    if sizes is None:
        if not all(len(shape) == 2 for shape in (shape_a, shape_b, shape_c)):
            raise GemmsimError("--verify gemm cannot tell the sizes from these arrays: add --m, --n and --k")
        sizes = shape_c[0], shape_c[1], shape_a[1]
    m, n, k = sizes
    for name, shape, rows, columns in (("A", shape_a, m, k), ("B", shape_b, k, n), ("C", shape_c, m, n)):
        if shape != (rows, columns) and not (len(shape) == 1 and math.prod(shape) == rows * columns):
            raise GemmsimError(
                f"--verify gemm: the arrays are A, B, C in order; "
                f"{name} is {list(shape)}, but M={m}, N={n}, K={k} need [{rows},{columns}]"
            )
    return GemmCheck(a, b, c, alpha, beta, sizes=sizes), sizes
