"""A multicast brings the bytes to the same place in each block of its mask, whosever memory its addresses name."""

from __future__ import annotations

import numpy as np
from cubins import cuda

from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Launch

# Block 1 loads for both; its addresses lack the bits that name its own memory, as those of cuBLAS's kernels do.
SOURCE = """
typedef unsigned u32;
extern "C" __global__ void spread(const u32 *in, u32 *out) {
    __shared__ alignas(128) u32 box[32];
    __shared__ alignas(8) unsigned long long full;
    u32 b = (u32)__cvta_generic_to_shared(&full), to = (u32)__cvta_generic_to_shared(box), rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(b) : "memory");
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0 && rank == 1)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 128, [%2], 3;" ::"r"(to & 0xffffff), "l"(in), "r"(b & 0xffffff) : "memory");
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra DONE; bra AGAIN; "
                 "DONE: }" ::"r"(b) : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];
}
"""


def test_addresses_without_the_bits_that_name_a_block() -> None:
    values = np.arange(32, dtype=np.uint32) + 7
    arrays = Argument("u32", (32,), values), Argument("u32", (128,), np.zeros(128, np.uint32))
    launch = Launch((4, 1, 1), (32, 1, 1), arrays, cluster=(2, 1, 1))
    out = Executor(cuda(SOURCE).program, launch, 1_000_000).run(range(4)).outputs[1]
    assert out is not None and (np.asarray(out).reshape(4, 32) == values).all()
