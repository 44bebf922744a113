"""GEMM kernels of many shapes, compiled for every architecture without a GPU and executed: C against NumPy in float64.

A part runs by default, one architecture a kernel in turn; `GEMMSIM_CORPUS=all` runs every kernel on every architecture.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest
from cubins import ARCHITECTURES
from numpy.typing import NDArray
from programs import cuda_program, numba_program

from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor, execute
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.types import Argument, Execution, Launch


@dataclass(frozen=True)
class Case:
    """A kernel, a problem and a launch. `more`: arguments after M, N, K (CUDA C++) or after C (numba)."""

    kernel: str
    m: int
    n: int
    k: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    more: tuple[Argument, ...] = ()
    dynamic_shared_bytes: int = 0
    dtype: str = "f32"
    result: str = ""
    tolerance: float = 2e-6
    first: str = "sm_75"  # the oldest architecture it is for

    @property
    def name(self) -> str:
        return f"{self.kernel}-{self.m}x{self.n}x{self.k}"


def _grid(m: int, n: int, rows: int, columns: int, z: int = 1) -> tuple[int, int, int]:
    return -(-n // columns), -(-m // rows), z


def _tiled(kernel: str, m: int, n: int, k: int, rows: int, columns: int, threads: int, **other: object) -> Case:
    return Case(kernel, m, n, k, _grid(m, n, rows, columns), (threads, 1, 1), **other)  # type: ignore[arg-type]


def _i32(value: int) -> Argument:
    return Argument("i32", (), value)


def _zeros(dtype: str, *shape: int) -> Argument:
    return Argument(dtype, shape, np.zeros(shape, {"f32": np.float32, "i32": np.int32, "u64": np.uint64}[dtype]))


ODD = (127, 129, 65)
CUDA = [
    _tiled("blocktile_1dILi64E", 128, 128, 64, 64, 64, 512),
    _tiled("blocktile_1dILi64E", *ODD, 64, 64, 512),
    _tiled("blocktile_1dILi64E", 1, 1, 1, 64, 64, 512),
    _tiled("blocktile_2dIfLi64ELi64ELi8ELi8E", 128, 128, 32, 64, 64, 64),
    _tiled("blocktile_2dIfLi64ELi64ELi8ELi8E", *ODD, 64, 64, 64),
    _tiled("blocktile_2dIfLi128E", 256, 128, 32, 128, 128, 256),
    _tiled("blocktile_2dIfLi128E", 129, 127, 1, 128, 128, 256),
    _tiled("blocktile_2dIfLi64ELi64ELi8ELi16E", 64, 128, 24, 64, 64, 16),  # spills to local memory
    _tiled("blocktile_2dIfLi64ELi64ELi8ELi16E", 65, 63, 9, 64, 64, 16),
    _tiled("blocktile_2dId", 33, 65, 20, 32, 32, 64, dtype="f64", tolerance=1e-14),
    _tiled("vectorized", 128, 64, 64, 64, 64, 64),
    _tiled("warptiled", 128, 256, 64, 64, 128, 128),
    Case("shuffled", 33, 70, 65, _grid(33, 70, 4, 32), (32, 4, 1)),
    Case("reduced", 7, 9, 100, (3, 7, 1), (32, 3, 1)),
    Case("register_tiled", 61, 67, 33, _grid(61, 67, 32, 64), (16, 8, 1)),
    Case("split_k_atomic", 30, 40, 100, _grid(30, 40, 8, 16, 4), (16, 8, 1)),
    Case("split_k_ticket", 30, 40, 50, (3, 4, 3), (16, 8, 1), (_zeros("f32", 3, 30, 40), _zeros("i32", 16))),
    _tiled("pipelinedILi2E", 96, 64, 64, 32, 32, 256, first="sm_80"),
    _tiled("pipelinedILi2E", 33, 36, 20, 32, 32, 256, first="sm_80"),
    _tiled("pipelinedILi3E", *ODD, 32, 32, 256, first="sm_80"),
    _tiled("pipelinedILi3E", 1, 1, 1, 32, 32, 256, first="sm_80"),
    _tiled("pipelinedILi4E", 64, 64, 128, 32, 32, 256, first="sm_80"),
    _tiled("double_buffered_async", 64, 96, 96, 32, 32, 256, first="sm_80", dynamic_shared_bytes=4 * 4096),
    Case("persistent", 100, 90, 40, (5, 1, 1), (16, 16, 1), (_i32(3),)),
    Case("work_queue", 21, 90, 30, (4, 1, 1), (48, 1, 1), (_zeros("u64", 1),)),
    Case("divergent", 20, 50, 37, _grid(20, 50, 4, 40), (40, 4, 1)),
    Case("odd_block", 11, 100, 61, (3, 1, 1), (45, 1, 1), dynamic_shared_bytes=61 * 4),
    Case("calling", 10, 33, 29, _grid(10, 33, 4, 32), (32, 4, 1)),
    Case("half_in", 17, 40, 60, _grid(17, 40, 4, 32), (32, 4, 1), dtype="f16", result="f32"),
    Case("half2_math", 17, 40, 30, _grid(17, 40, 4, 64), (32, 4, 1), dtype="f16", tolerance=1e-2),
]
NUMBA = [
    Case("blocktile_1d", *ODD, _grid(127, 129, 64, 64), (512, 1, 1)),
    Case("blocktile_2d", 65, 130, 33, _grid(65, 130, 64, 64), (256, 1, 1)),
    Case("shuffled", 9, 40, 70, _grid(9, 40, 4, 32), (32, 4, 1)),
    Case("split_k", 30, 40, 60, _grid(30, 40, 8, 16, 4), (16, 8, 1)),
    Case("persistent", 50, 90, 20, (5, 1, 1), (16, 16, 1), (_i32(3),)),
    Case("double", 17, 40, 30, _grid(17, 40, 4, 32), (32, 4, 1), dtype="f64", tolerance=1e-14),
    Case("half_in", 17, 40, 30, _grid(17, 40, 4, 32), (32, 4, 1), dtype="f16", result="f32"),
    Case("early_exit", 13, 50, 31, _grid(13, 50, 4, 40), (40, 4, 1)),
]
_DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def _chosen(cases: list[Case]) -> list[tuple[Case, str]]:
    pairs = [(case, arch) for case in cases for arch in ARCHITECTURES if int(arch[3:]) >= int(case.first[3:])]
    if os.environ.get("GEMMSIM_CORPUS") == "all":
        return pairs
    some = []
    for number, case in enumerate(cases):
        archs = [arch for c, arch in pairs if c is case]
        arch = archs[number % len(archs)]
        some.append((case, "sm_89" if arch == "sm_86" else arch))  # whose code is the same: test_ship.py
    return some


def _matrices(case: Case) -> tuple[NDArray, NDArray]:
    rng, dtype = np.random.default_rng(case.m + case.k), _DTYPES[case.dtype]
    return tuple((rng.random(shape) - 0.5).astype(dtype) for shape in ((case.m, case.k), (case.k, case.n)))  # type: ignore[return-value]


def _run(program: Program, case: Case, numba: bool) -> tuple[Execution, NDArray]:
    """Executes the case, and again with the sanitizer, which is to find nothing."""
    a, b = _matrices(case)
    c_type = case.result or case.dtype
    c = np.zeros((case.m, case.n), _DTYPES[c_type])
    arrays = (Argument(case.dtype, a.shape, a), Argument(case.dtype, b.shape, b), Argument(c_type, c.shape, c))
    sizes = () if numba else tuple(map(_i32, (case.m, case.n, case.k)))
    launch = Launch(case.grid, case.block, (*arrays, *sizes, *case.more), case.dynamic_shared_bytes)
    sanitizing = Executor(program, launch, sanitizing=True)
    assert sanitize(sanitizing, range(launch.blocks)).findings == ()
    return execute(program, launch), a.astype(np.float64) @ b.astype(np.float64)


def _check(program: Program, case: Case, numba: bool = False) -> Execution:
    execution, expected = _run(program, case, numba)
    got, written = execution.outputs[2], execution.written[2]
    assert got is not None and written is not None and written.all()
    error = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
    assert error < case.tolerance, f"{case.name} on {program.arch}: relative error {error:.2g}"
    return execution


@pytest.mark.parametrize(("case", "arch"), _chosen(CUDA), ids=lambda v: getattr(v, "name", v))
def test_cuda(case: Case, arch: str) -> None:
    _check(cuda_program("gemm.cu", case.kernel, arch), case)


@pytest.mark.parametrize(("case", "arch"), _chosen(NUMBA), ids=lambda v: getattr(v, "name", v))
def test_numba(case: Case, arch: str) -> None:
    dtypes = (
        (case.dtype, 2),
        (case.dtype, 2),
        (case.result or case.dtype, 2),
        *((a.dtype, len(a.shape)) for a in case.more),
    )
    _check(numba_program(case.kernel, dtypes, arch), case, numba=True)


@pytest.mark.parametrize("arch", ARCHITECTURES[:: 1 if os.environ.get("GEMMSIM_CORPUS") == "all" else 3])
def test_split_k_in_two_passes(arch: str) -> None:
    m, n, k, parts = 20, 30, 50, 3
    case = Case("split_k_partial", m, n, k, _grid(m, n, 8, 16, parts), (16, 8, 1))
    a, b = _matrices(case)
    arrays = (Argument("f32", a.shape, a), Argument("f32", b.shape, b), _zeros("f32", parts, m, n))
    first = execute(
        cuda_program("gemm.cu", case.kernel, arch), Launch(case.grid, case.block, (*arrays, *map(_i32, (m, n, k))))
    )
    partial = first.outputs[2]
    assert partial is not None
    arguments = (Argument("f32", partial.shape, partial), _zeros("f32", m, n), _i32(m * n), _i32(parts))
    second = execute(cuda_program("gemm.cu", "add_parts", arch), Launch((2, 1, 1), (128, 1, 1), arguments))
    expected = a.astype(np.float64) @ b
    assert second.outputs[1] is not None
    assert np.abs(second.outputs[1] - expected).max() < 2e-6 * np.abs(expected).max()


def test_copies_record_the_global_address_first_then_the_shared_one() -> None:
    program = cuda_program("gemm.cu", "double_buffered_async", "sm_90")
    case = next(c for c in CUDA if c.kernel == "double_buffered_async")
    trace = _check(program, case).trace
    copies = [i for i, one in enumerate(program.instructions) if one.opcode == "LDGSTS"]
    assert len(copies) == 6
    for copy in copies:
        base = trace.record_base[trace.record_pc == copy]
        assert len(base) == 2 * trace.executed[:, copy].sum() > 0
        assert (base[0::2] >= 1 << 32).all() and (base[1::2] < 1 << 32).all()


def test_copies_of_nothing_leave_no_global_record() -> None:
    """At 1 x 1 x 1 most threads copy zero bytes: they store to shared memory, but only the first loads."""
    program = cuda_program("gemm.cu", "pipelinedILi3E", "sm_80")
    case = next(c for c in CUDA if c.kernel == "pipelinedILi3E" and c.m == 1)
    trace = _check(program, case).trace
    copies = [i for i, one in enumerate(program.instructions) if one.opcode == "LDGSTS"]
    records = np.isin(trace.record_pc, copies)
    shared = trace.record_base[records] < 1 << 32
    assert shared.sum() == trace.executed[:, copies].sum()
    assert (~shared).sum() == 2
    assert trace.patterns.active_mask[trace.record_pattern[records]][~shared].tolist() == [1, 1]
