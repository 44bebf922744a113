"""A trace says which executions of a memory fence have an active thread."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim import api
from gemmsim.calls.launches import launch_spec
from gemmsim.trace.execute import Executor
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.micro import DETAIL, INSTRUCTION, MEMORY_FENCE, OP

SOURCE = """
extern "C" __global__ void some(int* a, int n, int last) {
    __shared__ unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), there;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1000;" :: "r"(at));
    __syncthreads();
    for (int i = 0; i < n; ++i) {
        a[blockIdx.x * 64 + threadIdx.x] = i;
        if (threadIdx.x < last) {
            asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(at));
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(there) : "memory");
        }
    }
}
extern "C" __global__ void all(int* a, int n, int last) {
    for (int i = 0; i < n; ++i) { a[blockIdx.x * 64 + threadIdx.x] = i; __threadfence(); }
}
"""


@pytest.mark.parametrize("blocks", [100, 400_000], ids=["all blocks", "a sample"])
@pytest.mark.parametrize(("last", "warps"), [(0, 0), (1, 1), (33, 2), (64, 2)])
def test_only_warps_with_an_active_thread_fence(last: int, warps: int, blocks: int) -> None:
    launch = {"entry": "some", "grid": blocks, "block": 64, "args": (f"i32[{64 * blocks}]=0", "i32=3", f"i32={last}")}
    counted = api.count(launch_spec(SOURCE, "h200", launch))
    trace = counted.execution.trace
    assert any(i.opcode == "MEMBAR" and i.predicate is not None for i in counted.program.instructions)
    assert len(trace.blocks) == (100 if blocks == 100 else 1)
    fences = np.array([i.text.endswith("MEMBAR.ALL.GPU") for i in counted.program.instructions])
    assert trace.syncs is not None
    warp = np.repeat(np.arange(len(trace.syncs.start) - 1), np.diff(trace.syncs.start))
    fenced = warp[fences[trace.pc[trace.pc_start[warp] + trace.syncs.at]]]
    assert np.bincount(fenced, minlength=2)[:2].tolist() == [3] * warps + [0] * (2 - warps)


@pytest.mark.parametrize("kernel", ["some", "all"])
def test_a_slice_keeps_fences(kernel: str) -> None:
    """What decides no address is left out of a slice, which is how the leader of a class of blocks is executed."""
    launch = {"entry": kernel, "grid": 1, "block": 64, "args": ("i32[64]=0", "i32=3", "i32=1")}
    spec = launch_spec(SOURCE, "h200", launch)
    executor = Executor(api.compiled(spec), spec.launch_with_arrays(), 1_000_000)
    assert executor.trace_slice is not None
    kept = executor.trace_slice[
        (executor.trace_slice[:, OP] == CONTROL_NUMBER["nop"]) & (executor.trace_slice[:, DETAIL] == MEMORY_FENCE)
    ]
    fences = [one.opcode == "MEMBAR" for one in executor.program.instructions]
    assert set(kept[:, INSTRUCTION].tolist()) == set(np.flatnonzero(fences).tolist())
