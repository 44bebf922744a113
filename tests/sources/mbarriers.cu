// Warps that wait for each other at mbarriers: a ring of slots, threads of one warp, tokens, copies, and waits that
// never end.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>

using u32 = unsigned;
using u64 = unsigned long long;

__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(arrivals) : "memory");
}
__device__ void arrive(u64* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
__device__ bool try_wait(u64* b, int parity) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
    return done;
}
__device__ bool test_wait(u64* b, int parity) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
    return done;
}
__device__ void wait(u64* b, int parity) {
    while (!try_wait(b, parity)) {}
}

// Warp 0 produces, the other warps consume: two slots, each with a barrier that says full and one that says empty.
extern "C" __global__ void ring(const int* in, int* out, int n) {
    __shared__ int slot[2][32];
    __shared__ u64 full[2], empty[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, consumers = blockDim.x - 32, sum = 0;
    if (threadIdx.x == 0)
        for (int s = 0; s < 2; s++) { init(&full[s], 32); init(&empty[s], consumers); }
    __syncthreads();
    for (int k = 0; k < n; k++) {
        int s = k % 2, parity = k / 2 & 1;
        if (warp == 0) {
            wait(&empty[s], parity ^ 1);
            slot[s][lane] = in[(blockIdx.x * n + k) * 32 + lane];
            arrive(&full[s]);
        } else {
            wait(&full[s], parity);
            sum = 31 * sum + slot[s][31 - lane];
            arrive(&empty[s]);
        }
    }
    if (warp) out[blockIdx.x * consumers + threadIdx.x - 32] = sum;
}

// The threads of one warp wait for thread `last`, which comes to the barrier on a path of its own.
extern "C" __global__ void one_warp(int* out, int last) {
    __shared__ u64 barrier;
    __shared__ int word;
    if (threadIdx.x == 0) init(&barrier, 1);
    __syncthreads();
    if (threadIdx.x == last) {
        word = 41 + last;
        arrive(&barrier);
    } else
        while (!test_wait(&barrier, 0)) {}
    out[threadIdx.x] = word;
}

// Tokens in place of parities, and a thread that leaves: the barrier of cuda::barrier.
extern "C" __global__ void tokens(int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int word[128];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    if (threadIdx.x >= 96) { barrier.arrive_and_drop(); return; }
    for (int k = 0; k < 3; k++) {
        word[threadIdx.x] = 100 * k + threadIdx.x;
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        out[96 * k + threadIdx.x] = word[95 - threadIdx.x];
        barrier.arrive_and_wait();
    }
}

// cuda::pipeline, whose copies (cp.async) arrive at mbarriers.
extern "C" __global__ void staged(const float4* in, float4* out, int n) {
    __shared__ float4 stage[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipeline = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
    for (int k = 0, copied = 0; k < n; k++) {
        for (; copied < n && copied < k + 2; copied++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&stage[copied % 2][threadIdx.x], &in[copied * 64 + threadIdx.x],
                               cuda::aligned_size_t<16>(16), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        out[k * 64 + threadIdx.x] = stage[k % 2][63 - threadIdx.x];
        pipeline.consumer_release();
    }
}

// More bytes are expected than come, and warp 3 waits at a barrier of the block.
extern "C" __global__ void starved(int bytes, int arrivals) {
    __shared__ u64 barrier;
    if (threadIdx.x == 0) {
        init(&barrier, arrivals);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&barrier)), "r"(bytes) : "memory");
    }
    __syncthreads();
    if (threadIdx.x / 32 == 3) __syncthreads();  // [block]
    while (!try_wait(&barrier, 0)) {}  // [wait]
}
