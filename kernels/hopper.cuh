// Hopper's instructions for which CUDA C++ has no functions, each beside its name in PTX: barriers in shared memory
// (mbarrier), copies of boxes by TMA, multiplications by a warpgroup (wgmma), clusters, registers that change hands.
#pragma once

using Words = unsigned long long;

struct alignas(64) TensorMap {  // what cuTensorMapEncodeTiled makes
    Words opaque[16];
};

__device__ __forceinline__ unsigned shared(const void* at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// ---- Barriers. A phase of one is over when as many have arrived as it was made for, and all bytes that were
// announced.

__device__ __forceinline__ void make_barrier(Words* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(barrier)), "r"(arrivals) : "memory");
}

// New barriers are seen by TMA and by the other blocks of the cluster, once these have met the thread that called
// this.
__device__ __forceinline__ void show_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(Words* barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(barrier)) : "memory");
}

// Arrives at the same barrier of another block of the cluster.
__device__ __forceinline__ void arrive_in(Words* barrier, int block)
{
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared(barrier)), "r"(block)
        : "memory");
}

__device__ __forceinline__ void arrive_and_expect(Words* barrier, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barrier)), "r"(bytes)
        : "memory");
}

// Waits until the barrier's phase of this parity is over; of a new barrier the phase before the first has parity 1.
__device__ __forceinline__ void wait(Words* barrier, int parity)
{
    asm volatile(
        "{ .reg .pred over; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; @!over bra AGAIN; }" ::"r"(
            shared(barrier)),
        "r"(parity)
        : "memory");
}

// ---- TMA. One thread asks for a box; whatever lies outside of the matrix is zeros, and is not stored.

__device__ __forceinline__ void load_box(void* box, const TensorMap* map, int column, int row, Words* barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            shared(box)),
        "l"(map), "r"(shared(barrier)), "r"(column), "r"(row)
        : "memory");
}

// Loads the box to the same place in each block of the cluster that `blocks` has a bit for, and tells their barriers.
__device__ __forceinline__ void load_box_for(
    void* box, const TensorMap* map, int column, int row, Words* barrier, unsigned short blocks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared(box)),
        "l"(map), "r"(shared(barrier)), "r"(column), "r"(row), "h"(blocks)
        : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap* map, const void* box, int column, int row)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(shared(box)),
        "r"(column), "r"(row)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until all but the last `LEFT` boxes that this thread stores have been read from shared memory.
template <int LEFT>
__device__ __forceinline__ void wait_for_stores()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// What this thread has written to shared memory is seen by TMA and wgmma, once their thread has met this one.
__device__ __forceinline__ void show_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma. The sums lie in registers that nobody may touch until the multiplications have been waited for.

__device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all but the last `LEFT` committed groups of multiplications are over.
template <int LEFT>
__device__ __forceinline__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// ---- Clusters and warps.

__device__ __forceinline__ int rank_in_cluster()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

template <int REGISTERS>
__device__ __forceinline__ void give_up_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
