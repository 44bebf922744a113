"""A program without the arithmetic that its trace does not depend on leaves the same trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmsim.compile import compile_kernel, default_cache
from gemmsim.compile.source import ArgType, PythonKernel
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Program
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_infos
from gemmsim.trace.execute import Executor
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.micro import ACCESS, OP, UNMOVED_BIT
from gemmsim.trace.types import Argument, Launch, Sketch, WarpTrace

GPU = load_gpu("h200")


def executor_of(kernel: str, size: int = 128) -> Executor:
    request = ladder_launch(LadderCase(kernel, size, size, size), GPU)
    return Executor(compile_kernel(request.kernel, GPU.arch, default_cache()), request.launch_with_arrays())


def same(one: Sketch, other: WarpTrace) -> bool:
    """Patterns are numbered in the order in which they are met, which is that of execution in both."""
    names = ("executed", "threads_executed")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    pairs.append((records(one), records(other)))
    pairs.append((one.patterns.offsets_bytes, other.patterns.offsets_bytes))
    pairs.append((one.patterns.active_mask, other.patterns.active_mask))
    return all(np.array_equal(a, b) for a, b in pairs)


def records(trace: Sketch | WarpTrace) -> np.ndarray:
    columns = np.stack([trace.record_pc, trace.record_pattern, trace.record_base.astype(np.int64)])
    return columns[:, np.lexsort(columns)]


@pytest.mark.parametrize("kernel", sorted(name for name, info in kernel_infos().items() if info.build))
def test_the_ladder_leaves_the_same_trace(kernel: str) -> None:
    """Of two blocks one after the other; C is not computed, and most of what computes it is left out."""
    executor = executor_of(kernel)
    blocks = [0, executor.launch.blocks - 1]
    probed = executor.probe(blocks)
    stored = executor.memory.stored()[kernel_infos()[kernel].arguments.index("C")]
    assert executor.slice_suffices and stored is not None and not stored.any()
    assert same(probed, executor.trace(blocks, streams=[False, False]))
    counts = executor.counts(blocks)
    if counts:
        assert np.array_equal(counts[0], probed.executed) and np.array_equal(counts[1], probed.threads_executed)
    assert executor.trace_slice is not None
    idle = np.isin(executor.trace_slice[:, OP], (CONTROL_NUMBER["nop"], CONTROL_NUMBER["idle"]))
    products = multiplications(executor.program)
    assert products.any() and idle[executor.micro.start[:-1][products]].mean() > 0.9


def multiplications(program: Program) -> np.ndarray:
    names = ("FFMA", "DFMA", "HMMA", "IMMA", "DMMA", "IDP")
    return np.array([i.opcode in names for i in program.instructions])


KERNELS = '''
from numba import cuda, int32

@cuda.jit
def lengths(a, b, c):
    """Each thread adds as many elements as a says; where it stores is read too."""
    t = cuda.threadIdx.x
    total = 0.0
    for i in range(a[t]):
        total += b[i]
    c[a[t], t] = total

@cuda.jit
def in_place(a, b, c):
    """What was stored decides where the next load goes."""
    t = cuda.threadIdx.x
    a[t] = a[t] + 1
    cuda.syncthreads()
    c[0, t] = b[a[31 - t]]

@cuda.jit
def through_shared(a, b, c):
    """A permutation passes through shared memory; products of b do too, and decide nothing."""
    places = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    places[t] = a[t]
    cuda.syncthreads()
    c[0, t] = b[places[31 - t]] * b[t]
'''


def own(folder: Path, name: str, a: np.ndarray) -> Executor:
    (folder / "k.py").write_text(KERNELS)
    source = PythonKernel(folder / "k.py", name, (ArgType("i32", 1), ArgType("f32", 1), ArgType("f32", 2)))
    arrays = (a.astype(np.int32), np.ones(64, np.float32), np.zeros((64, 32), np.float32))
    args = tuple(Argument({"f": "f32", "i": "i32"}[x.dtype.kind], x.shape, x) for x in arrays)
    return Executor(compile_kernel(source, GPU.arch, None), Launch((1, 1, 1), (32, 1, 1), args))


@pytest.mark.parametrize("name", ["lengths", "through_shared"])
def test_loads_that_decide_are_made(name: str, tmp_path: Path) -> None:
    executor = own(tmp_path, name, np.random.default_rng(1).permutation(32))
    assert same(executor.probe([0]), executor.trace([0], streams=[False]))
    assert executor.slice_suffices
    assert executor.trace_slice is not None
    unmoved = executor.trace_slice[:, ACCESS] & UNMOVED_BIT != 0
    opcodes = np.array([i.opcode for i in executor.program.instructions])[executor.trace_slice[unmoved, 24]]
    assert "STG" in opcodes and "LDG" in opcodes


def test_what_was_stored_in_name_only_is_not_read(tmp_path: Path) -> None:
    executor = own(tmp_path, "in_place", np.arange(32))
    assert same(executor.probe([0]), executor.trace([0], streams=[False]))
    assert not executor.slice_suffices  # the load of a[31 - t] found that a had been stored to
