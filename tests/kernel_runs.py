"""Ladder kernels compiled, executed on the simulator and compared with NumPy.

Programs come from the user's cache, so that only the first run after a change compiles the kernel.
"""

from __future__ import annotations

import numpy as np

from gemmsim.cli.targets import ladder_source
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.isa.program import OperandKind, Program
from gemmsim.ladder import kernel_info
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Execution, Launch

ROUNDOFF = 2.0**-24


def defaults(name: str) -> dict[str, int]:
    return {tunable.name: tunable.default for tunable in kernel_info(name).tunables}


def compiled(name: str, arch: str, tunables: dict[str, int]) -> Program:
    scalar, matrix = Argument("f32", (), 1.0), Argument("f32", (1, 1), 0)
    source = ladder_source(kernel_info(name), tunables, (matrix, matrix, matrix, scalar, scalar))
    return compile_kernel(source, arch, default_cache())


def run(
    name: str,
    arch: str,
    sizes: tuple[int, int, int],
    alpha: float = 1.0,
    beta: float = 0.0,
    **tunables: int,
) -> tuple[Execution, Launch, Program]:
    """Executes the whole grid and compares C with float64 NumPy.

    The error allowed is that of any order in which K + 3 terms can be summed, (K + 3) u sum|a b| (Higham, "Accuracy and
    Stability of Numerical Algorithms", section 3.1). Where beta is 0, C starts as NaN: a read of it shows.
    """
    m, n, k = sizes
    info, tunables = kernel_info(name), defaults(name) | tunables
    random = np.random.default_rng(m * 1_000_003 + n * 1_009 + k)
    a, b, c = (random.random(shape, np.float32) - np.float32(0.5) for shape in ((m, k), (k, n), (m, n)))
    before = c if beta else np.full((m, n), np.nan, np.float32)
    given_b = np.ascontiguousarray(b.T) if info.b_transposed else b
    arguments = [Argument("f32", array.shape, array) for array in (a, given_b, before)]
    arguments += [Argument("f32", (), alpha), Argument("f32", (), beta)]
    shape = info.launch(m, n, k, tunables)
    launch = Launch(shape.grid, shape.block, tuple(arguments), shape.dynamic_shared_bytes)
    program = compiled(name, arch, tunables)
    done = execute(program, launch)
    old = c.astype(np.float64) * beta if beta else np.zeros((m, n))
    expected = alpha * (a.astype(np.float64) @ b) + old
    allowed = (k + 3) * ROUNDOFF * (abs(alpha) * (np.abs(a).astype(np.float64) @ np.abs(b)) + np.abs(old))
    result = done.outputs[2]
    assert result is not None
    wrong = ~(np.abs(result - expected) <= allowed)  # NaN is wrong, too
    assert not wrong.any(), f"{int(wrong.sum())} of {m * n} elements, the first at {np.argwhere(wrong)[0]}"
    return done, launch, program


def loops(program: Program) -> list[range]:
    """Index ranges that backward branches close, the endless branch after the code left out."""
    found = []
    for instruction in program.instructions:
        for operand in instruction.operands:
            if operand.kind is OperandKind.TARGET and operand.value < instruction.offset:
                found.append(range(operand.value // 16, instruction.index + 1))
    return found
