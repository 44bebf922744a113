"""Ladder kernels compiled, executed on the simulator and compared with NumPy.

Programs come from the user's cache, so that only the first run after a change compiles the kernel.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gemmsim.compile import compile_kernel, default_cache
from gemmsim.isa.program import OperandKind, Program
from gemmsim.isa.tensor_sums import sum_roundoff
from gemmsim.launch.arrays import NUMPY_DTYPES, random_array
from gemmsim.launch.cases import ladder_source, map_parameters
from gemmsim.launch.ladder import kernel_info
from gemmsim.support.bit_patterns import to_numbers
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Execution, Launch

if TYPE_CHECKING:
    from gemmsim.launch.ladder import KernelInfo

ROUNDOFF = {"f32": 2.0**-24, "f64": 2.0**-53, "i32": 0.0}


def defaults(name: str) -> dict[str, int]:
    return {tunable.name: tunable.default for tunable in kernel_info(name).tunables}


def compiled(name: str, arch: str, tunables: dict[str, int], dtype: str = "f32") -> Program:
    """The same object each time, so that whatever is kept for a program, its lowering first of all, is found again."""
    return _compiled(name, arch, tuple(tunables.items()), dtype)


@lru_cache(16)
def _compiled(name: str, arch: str, chosen: tuple[tuple[str, int], ...], dtype: str) -> Program:
    info, tunables = kernel_info(name), dict(chosen)
    result = info.result_dtype(dtype)
    kinds = {"A": (dtype, (1, 1)), "B": (dtype, (1, 1)), "C": (result, (1, 1)), "bias": (result, (1,))}
    kinds |= zeros(info, 1, 1, 1, tunables) | dict.fromkeys("mnk", ("i32", ()))
    arguments = [Argument(*kinds.get(name, (result, ())), 0) for name in info.arguments]
    source = ladder_source(info, tunables, arguments)
    return compile_kernel(source, arch, default_cache())


def run(
    name: str,
    arch: str,
    sizes: tuple[int, int, int],
    alpha: float = 1.0,
    beta: float = 0.0,
    dtype: str = "f32",
    **tunables: int,
) -> tuple[Execution, Launch, Program]:
    """Executes the whole grid and compares C with float64 NumPy, operands rounded as the rung says.

    The error allowed is that of any order in which K + 3 terms can be summed, (K + 3) u sum|a b| (Higham, "Accuracy and
    Stability of Numerical Algorithms", section 3.1). Where beta is 0, C starts as NaN: a read of it shows.
    """
    m, n, k = sizes
    info, tunables = kernel_info(name), defaults(name) | tunables
    random = np.random.default_rng(m * 1_000_003 + n * 1_009 + k)
    result_dtype = info.result_dtype(dtype)
    a, b = random_array(dtype, (m, k), random), random_array(dtype, (k, n), random)
    c = random_array(result_dtype, (m, n), random)
    before = c if beta or result_dtype == "i32" else np.full_like(c, np.nan)
    given_b = np.ascontiguousarray(b.T) if info.b_transposed else b
    arguments = [Argument(dtype, array.shape, array) for array in (a, given_b)]
    arguments += [Argument(result_dtype, (m, n), before)]
    arguments += [Argument(result_dtype, (), alpha), Argument(result_dtype, (), beta)]
    arguments += [Argument("i32", (), size) for name, size in zip("mnk", sizes, strict=True) if name in info.arguments]
    bias = np.zeros(n)
    if "bias" in info.arguments:
        bias = random_array(result_dtype, (n,), random)
        arguments += [Argument(result_dtype, (n,), bias)]
    for kind, dims in zeros(info, m, n, k, tunables).values():
        arguments += [Argument(kind, dims, np.zeros(dims, NUMPY_DTYPES[kind]))]
    shape = info.launch(m, n, k, tunables)
    parameters = map_parameters(info, tunables, arguments)
    launch = Launch(shape.grid, shape.block, tuple(arguments), shape.dynamic_shared_bytes, parameters)
    program = compiled(name, arch, tunables, dtype)
    done = execute(program, launch)
    old = c.astype(np.float64) * beta if beta else np.zeros((m, n))
    exact_a, exact_b = (rounded(values(array, dtype), info.operand_roundoff) for array in (a, b))
    expected = alpha * (exact_a @ exact_b) + old + bias
    if info.relu:
        expected = np.maximum(expected, 0)
    terms = abs(alpha) * (np.abs(exact_a) @ np.abs(exact_b)) + np.abs(old) + np.abs(bias)
    allowed = (k + 3) * max(ROUNDOFF[result_dtype], sum_roundoff(program)) * terms
    result = done.outputs[2]
    assert result is not None
    wrong = ~(np.abs(result - expected) <= allowed)  # NaN is wrong, too
    assert not wrong.any(), f"{int(wrong.sum())} of {m * n} elements, the first at {np.argwhere(wrong)[0]}"
    return done, launch, program


def zeros(info: KernelInfo, m: int, n: int, k: int, tunables: dict[str, int]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return info.zeros(m, n, k, tunables) if info.zeros else {}


def values(array: NDArray, dtype: str) -> NDArray[np.float64]:
    """What the elements are worth."""
    return to_numbers(dtype, array).astype(float)


def rounded(array: NDArray[np.float64], roundoff: float) -> NDArray[np.float64]:
    """To the nearest number of that unit roundoff, ties away from zero (as cvt.rna), all as they are where it is 0."""
    if not roundoff:
        return array
    fraction, exponent = np.frexp(array)
    return np.ldexp(np.sign(fraction) * np.floor(np.abs(fraction) / roundoff + 0.5) * roundoff, exponent)


def loops(program: Program) -> list[range]:
    """Index ranges that backward branches close, the endless branch after the code left out."""
    found = []
    for instruction in program.instructions:
        for operand in instruction.operands:
            if operand.kind is OperandKind.TARGET and operand.value < instruction.offset:
                found.append(range(operand.value // 16, instruction.index + 1))
    return found
