"""Asynchronous copies through the whole flow: one record each for the models."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gemmsim.api import analyze
from gemmsim.compile import CudaKernel
from gemmsim.gpu import load_gpu
from gemmsim.launch.spec import Labels, LaunchSpec
from gemmsim.trace.types import Argument, Launch

SOURCE = """
extern "C" __global__ void copy(const float4* a, float4* b) {
    __shared__ float4 tile[32];
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(a + threadIdx.x));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
    __syncthreads();
    b[threadIdx.x] = tile[31 - threadIdx.x];
}
"""


def test_a_copy_is_one_request_of_its_global_sectors() -> None:
    """32 lanes x 16 bytes: 16 sectors read by one request."""
    values = np.arange(128, dtype=np.float32)
    args = (Argument("f32", (128,), values), Argument("f32", (128,), np.zeros(128, np.float32)))
    launch = Launch((1, 1, 1), (32, 1, 1), args)
    request = LaunchSpec(CudaKernel(SOURCE, Path("copy.cu")), launch, load_gpu("a100"), Labels("copy"))
    evidence = analyze(request).evidence
    (copy,) = [row for row in evidence.traffic if row.op == "ldgsts"]
    assert (copy.requests, copy.sectors) == (1, 16)
    assert evidence.timing.cycles > 0
