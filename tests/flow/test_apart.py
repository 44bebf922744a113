"""Blocks that could wait for each other, and in this launch do not, are sampled like any others."""

from __future__ import annotations

import numpy as np
import pytest
from cubins import cuda

from gemmsim.trace.blocks.choice import plan
from gemmsim.trace.blocks.sampled import execute_plan
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Launch

# Block x waits for block x - 1 if `wait`, as where K is split; the last `late` blocks do so in any case.
SOURCE = """
extern "C" __global__ void chain(float *out, volatile int *done, int wait, int late) {
    if (wait || blockIdx.x >= gridDim.x - late)
        while (blockIdx.x && done[blockIdx.x - 1] == 0) { }
    float sum = 0;
    for (int i = 0; i < 20; i++) sum += i * 0.5f;
    out[blockIdx.x * 32 + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && (wait || late)) done[blockIdx.x] = 1;
}
"""
BLOCKS = 40


def chain(wait: int, late: int) -> Executor:
    arrays = (
        Argument("f32", (BLOCKS * 32,), np.zeros(BLOCKS * 32, np.float32)),
        Argument("i32", (BLOCKS,), np.zeros(BLOCKS, np.int32)),
    )
    launch = Launch((BLOCKS, 1, 1), (32, 1, 1), (*arrays, Argument("i32", (), wait), Argument("i32", (), late)))
    return Executor(cuda(SOURCE).program, launch, 10_000_000)


def test_a_launch_that_does_not_wait_is_sampled_and_counts_as_in_full() -> None:
    full = chain(0, 0).run(range(BLOCKS)).trace
    executor = chain(0, 0)
    chosen = plan(executor, 4, 4, full_below=0)
    assert len(chosen.blocks) == 1 and sum(chosen.weight) == BLOCKS
    trace = execute_plan(executor, chosen).trace
    assert (trace.executed[0] * BLOCKS == full.executed.sum(axis=0)).all()


@pytest.mark.parametrize(("wait", "late"), [(1, 0), (0, 1)])
def test_one_that_waits_is_executed_in_full_even_if_only_its_last_block_does(wait: int, late: int) -> None:
    executor = chain(wait, late)
    chosen = plan(executor, 4, 4, full_below=0)
    assert chosen.blocks == tuple(range(BLOCKS)) and not chosen.classes
    out = execute_plan(executor, chosen).outputs[0]
    assert out is not None and (out == sum(i * 0.5 for i in range(20))).all()


def test_small_launches_are_executed_in_full_as_before() -> None:
    chosen = plan(chain(0, 0), 4, 4)
    assert len(chosen.blocks) == BLOCKS
