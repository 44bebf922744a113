// Correct kernels that look as if they were not. Before a kernel stands how it is launched where that is not one block
// of 64 threads. All take a (f32[1024], random), c (f32[1024]) and n (1024).
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <mma.h>

#define T threadIdx.x
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;
namespace cg = cooperative_groups;

__device__ unsigned addr(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned done;
__device__ float partial[64];

//:
KERNEL shuffled_sum(const float *a, float *c, int n) {
    __shared__ float sums[2];
    float mine = a[T];
    for (int step = 16; step; step >>= 1) mine += __shfl_down_sync(~0u, mine, step);
    if (T % 32 == 0) sums[T / 32] = mine;
    __syncthreads();
    if (T == 0) c[0] = sums[0] + sums[1];
}

//:
KERNEL reduced_with_syncwarp(const float *a, float *c, int n) {
    __shared__ float sums[64];
    sums[T] = a[T];
    __syncthreads();
    if (T < 32) {
        float mine = sums[T] + sums[T + 32];
        sums[T] = mine; __syncwarp();
        for (int step = 16; step; step >>= 1) {
            float other = T < step ? sums[T + step] : 0; __syncwarp();
            if (T < step) sums[T] += other;
            __syncwarp();
        }
    }
    if (T == 0) c[0] = sums[0];
}

//:
KERNEL reduced_by_volatile(const float *a, float *c, int n) {
    __shared__ volatile float sums[64];
    sums[T] = a[T];
    __syncthreads();
    if (T < 32) {
        sums[T] += sums[T + 32];
        sums[T] += sums[T + 16]; sums[T] += sums[T + 8]; sums[T] += sums[T + 4];
        sums[T] += sums[T + 2]; sums[T] += sums[T + 1];
    }
    if (T == 0) c[0] = sums[0];
}

//:
KERNEL shared_histogram(const float *a, float *c, int n) {
    __shared__ int bins[16];
    if (T < 16) bins[T] = 0;
    __syncthreads();
    for (int i = T; i < n; i += 64) atomicAdd(&bins[(int)(a[i] * 16) & 15], 1);
    __syncthreads();
    if (T < 16) c[T] = bins[T];
}

//: grid=4
KERNEL global_histogram(const float *a, float *c, int n) {
    for (int i = blockIdx.x * 64 + T; i < n; i += 256) atomicAdd(&c[(int)(a[i] * 16) & 15], 1.0f);
}

//: grid=4
KERNEL split_k_with_atomics(const float *a, float *c, int n) {
    atomicAdd(&c[T], a[blockIdx.x * 64 + T]);
}

//: grid=4
KERNEL last_block_sums(const float *a, float *c, int n) {
    __shared__ bool last;
    float mine = a[blockIdx.x * 64 + T];
    for (int step = 16; step; step >>= 1) mine += __shfl_xor_sync(~0u, mine, step);
    if (T % 32 == 0) partial[blockIdx.x * 2 + T / 32] = mine;
    __threadfence();
    __syncthreads();
    if (T == 0) last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last && T == 0) {
        float sum = 0;
        for (int i = 0; i < 2 * (int)gridDim.x; ++i) sum += ((volatile float *)partial)[i];
        c[0] = sum;
    }
}

//:
KERNEL two_buffers_one_barrier(const float *a, float *c, int n) {
    __shared__ float tile[2][64];
    float sum = 0;
    tile[0][T] = a[T];
    __syncthreads();
    for (int k = 1; k <= 8; ++k) {
        if (k < 8) tile[k & 1][T] = a[k * 64 + T];
        sum += tile[(k - 1) & 1][T ^ 33];
        __syncthreads();
    }
    c[T] = sum;
}

//:
KERNEL tiles_with_two_barriers(const float *a, float *c, int n) {
    __shared__ float x[8][9], y[8][8];
    int row = T / 8, column = T % 8;
    float sum = 0;
    for (int k = 0; k < n; k += 64) {
        x[row][column] = a[k + T];
        y[column][row] = a[k + T];
        __syncthreads();
        for (int i = 0; i < 8; ++i) sum += x[row][i] * y[i][column];
        __syncthreads();
    }
    c[T] = sum;
}

//:
KERNEL union_with_barrier(const float *a, float *c, int n) {
    __shared__ union { float tile[64]; int counts[64]; } u;
    u.tile[T] = a[T];
    __syncthreads();
    float other = u.tile[T ^ 63];
    __syncthreads();
    u.counts[T] = (int)(other * 8);
    __syncthreads();
    c[T] = u.counts[63 - T];
}

//: shared=768
KERNEL carved_from_dynamic(const float *a, float *c, int n) {
    extern __shared__ float dynamic[];
    float *x = dynamic, *y = x + 64;
    unsigned char *flags = (unsigned char *)(y + 64);
    x[T] = a[T]; y[T] = a[T + 64]; flags[T] = T & 1;
    __syncthreads();
    c[T] = x[63 - T] + y[T ^ 1] * flags[T ^ 7];
}

//:
KERNEL arrays_of_a_struct(const float *a, float *c, int n) {
    __shared__ struct { float x[64]; float y[64]; int count; } s;
    float *all = s.x;
    all[T] = a[T]; all[T + 64] = a[T + 64];
    if (T == 0) s.count = 3;
    __syncthreads();
    c[T] = s.x[63 - T] + s.y[63 - T] * s.count;
}

//:
KERNEL one_pointer_to_either_array(const float *a, float *c, int n) {
    __shared__ float x[64], y[64];
    float *mine = T < 32 ? x : y;
    mine[T] = a[T]; mine[T ^ 32] = a[T + 64];
    __syncthreads();
    c[T] = mine[T ^ 1];
}

//:
KERNEL named_barriers(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (T < 32) {
        tile[T] = a[T]; tile[T + 32] = a[T + 32];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        c[T] = tile[T] + tile[T - 32];
    }
}

//:
KERNEL ping_pong(const float *a, float *c, int n) {
    __shared__ float slot[32];
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        if (T < 32) {
            if (k) asm volatile("bar.sync 2, 64;" ::: "memory");
            slot[T] = a[k * 32 + T];
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            sum += slot[63 - T];
            if (k < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
    c[T] = sum;
}

//:
KERNEL copies_in_two_groups(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[2][256];
    float sum = 0;
    __pipeline_memcpy_async(&tile[0][4 * T], a + 4 * T, 16);
    __pipeline_commit();
    for (int k = 0; k < 4; ++k) {
        if (k + 1 < 4) __pipeline_memcpy_async(&tile[(k + 1) & 1][4 * T], a + (k + 1) % 4 * 256 + 4 * T, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += tile[k & 1][255 - T];
        __syncthreads();
    }
    c[T] = sum;
}

//:
KERNEL copies_of_my_own(const float *a, float *c, int n) {
    __shared__ float tile[64];
    __pipeline_memcpy_async(&tile[T], a + T, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    c[T] = tile[T];
}

//:
KERNEL three_stages(const float *a, float *c, int n) {
    __shared__ float tile[3][64];
    float sum = 0;
    for (int k = 0; k < 2; ++k) { __pipeline_memcpy_async(&tile[k][T], a + k * 64 + T, 4); __pipeline_commit(); }
    for (int k = 0; k < 8; ++k) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (k + 2 < 8) __pipeline_memcpy_async(&tile[(k + 2) % 3][T], a + (k + 2) * 64 + T, 4);
        __pipeline_commit();
        sum += tile[k % 3][63 - T];
    }
    c[T] = sum;
}

//:
KERNEL copy_with_zeros(const float *a, float *c, int n) {
    __shared__ float tile[64];
    int bytes = T < 60 ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(addr(&tile[T])), "l"(a + 964 + T), "r"(bytes));
    asm volatile("cp.async.commit_group; cp.async.wait_all;" ::: "memory");
    __syncthreads();
    c[T] = tile[63 - T];
}

//: n=50
KERNEL all_reach_the_barrier(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (T < n) tile[T] = a[T]; else tile[T] = 0;
    __syncthreads();
    if (T >= n) return;
    c[T] = tile[63 - T];
}

//:
KERNEL warps_leave_early(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];
    __syncthreads();
    if (T >= 32) return;
    tile[T] += tile[T + 32];
    __syncwarp();
    c[T] = tile[31 - T];
}

//:
KERNEL scan_in_two_steps(const float *a, float *c, int n) {
    __shared__ float sums[64];
    sums[T] = a[T];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        float other = T >= step ? sums[T - step] : 0;
        __syncthreads();
        sums[T] += other;
        __syncthreads();
    }
    c[T] = sums[T];
}

//:
KERNEL scan_by_ballots(const float *a, float *c, int n) {
    __shared__ int offsets[2];
    bool chosen = a[T] > 0.5f;
    unsigned votes = __ballot_sync(~0u, chosen);
    if (T % 32 == 0) offsets[T / 32] = __popc(votes);
    __syncthreads();
    int place = (T < 32 ? 0 : offsets[0]) + __popc(votes & ((1u << T % 32) - 1));
    if (chosen) c[place] = a[T];
}

//:
KERNEL one_flag_by_all(const float *a, float *c, int n) {
    __shared__ int any;
    if (T == 0) any = 0;
    __syncthreads();
    if (a[T] > 0.9f) any = 1;
    __syncthreads();
    c[T] = any;
}

//:
KERNEL counted_barrier(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];
    int above = __syncthreads_count(a[T] > 0.5f);
    c[T] = tile[63 - T] * above;
}

//:
KERNEL barriers_in_both_branches(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (n > 10) {
        tile[T] = a[T];
        __syncthreads();
        c[T] = tile[63 - T];
    } else {
        tile[T] = a[T] * 2;
        __syncthreads();
        c[T] = tile[T];
    }
}

//:
KERNEL unrolled_with_rest(const float *a, float *c, int n) {
    __shared__ float tile[64];
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < n / 64 - 1; ++k) {
        tile[T] = a[k * 64 + T];
        __syncthreads();
        sum += tile[T ^ 40];
        __syncthreads();
    }
    c[T] = sum;
}

//:
KERNEL cooperative_groups_tiles(const float *a, float *c, int n) {
    __shared__ float tile[64];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<16>(block);
    tile[T] = a[T];
    warp.sync();
    float mine = tile[warp.meta_group_rank() * 16 + 15 - warp.thread_rank()];
    for (int step = 8; step; step >>= 1) mine += warp.shfl_xor(mine, step);
    block.sync();
    if (warp.thread_rank() == 0) tile[warp.meta_group_rank()] = mine;
    block.sync();
    c[T] = tile[T / 16] + tile[0];
}

//:
KERNEL lane_zero_writes(const float *a, float *c, int n) {
    __shared__ float slot[2];
    if (T % 32 == 0) slot[T / 32] = a[T];
    __syncwarp();
    c[T] = slot[T / 32];
}

//:
KERNEL branches_then_syncwarp(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (T % 32 < 16) tile[T] = a[T] * 2;
    else tile[T] = sqrtf(a[T]) + a[T + 64];
    __syncwarp();
    c[T] = tile[T ^ 31];
}

//:
KERNEL matrices_of_a_warp(const float *a, float *c, int n) {
    using namespace nvcuda;
    __shared__ __align__(32) half tile[256];
    __shared__ __align__(32) float out[2][256];
    for (int i = T; i < 256; i += 64) tile[i] = __float2half(a[i]);
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0);
    wmma::load_matrix_sync(x, tile, 16);
    wmma::load_matrix_sync(y, tile, 16);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(out[T / 32], z, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = T % 32; i < 256; i += 32) c[T / 32 * 256 + i] = out[T / 32][i];
}

//:
KERNEL global_tile_of_a_block(const float *a, float *c, int n) {
    c[T] = a[T] * 2;
    __syncthreads();
    c[T + 64] = c[63 - T];
    __syncthreads();
    c[63 - T] = a[T];
}

//:
KERNEL global_tile_of_a_warp(const float *a, float *c, int n) {
    c[T] = a[T] * 2;
    __syncwarp();
    c[T + 64] = ((volatile float *)c)[T ^ 31];
}

//: grid=4
KERNEL same_value_by_all_blocks(const float *a, float *c, int n) {
    c[0] = n;
    c[1 + blockIdx.x * 64 + T] = a[T];
}

//:
KERNEL local_array(const float *a, float *c, int n) {
    float kept[8];
    for (int i = 0; i < 8; ++i) kept[(i * n + (int)T) & 7] = a[i * 64 + T];
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += kept[(i + (int)T) & 7] * i;
    c[T] = sum;
}

//:
KERNEL shared_atomic_claims(const float *a, float *c, int n) {
    __shared__ int next;
    __shared__ float slots[64];
    if (T == 0) next = 0;
    __syncthreads();
    slots[atomicAdd(&next, 1)] = a[T];
    __syncthreads();
    c[T] = slots[T];
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void init(u64 *bar, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(addr(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void expect(u64 *bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(addr(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u64 *bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(addr(bar)) : "memory");
}
__device__ __forceinline__ void wait(u64 *bar, int parity) {
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(addr(bar)),
                 "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk(float *to, const float *from, int bytes, u64 *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(addr(to)),
                 "l"(from), "r"(bytes), "r"(addr(bar)) : "memory");
}

//: arch=sm_90
KERNEL ring_of_bulk_copies(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[2][64];
    __shared__ u64 full[2], empty[2];
    if (T == 0) { init(&full[0], 1); init(&full[1], 1); init(&empty[0], 63); init(&empty[1], 63); }
    __syncthreads();
    float sum = 0;
    if (T == 0) {
        for (int k = 0; k < 6; ++k) {
            if (k >= 2) wait(&empty[k & 1], (k >> 1) - 1 & 1);
            expect(&full[k & 1], 256);
            bulk(tile[k & 1], a + k * 64, 256, &full[k & 1]);
        }
    } else {
        for (int k = 0; k < 6; ++k) {
            wait(&full[k & 1], k >> 1 & 1);
            sum += tile[k & 1][63 - T];
            arrive(&empty[k & 1]);
        }
    }
    c[T] = sum;
}

//: arch=sm_90
KERNEL bulk_store_after_fence(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    for (int k = 0; k < 3; ++k) {
        tile[T] = a[k * 64 + T];
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        if (T == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(c + k * 64), "r"(addr(tile)));
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
}

//: arch=sm_90 cluster=2 grid=2
KERNEL neighbours_of_a_cluster(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[blockIdx.x * 64 + T];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    float value;
    asm volatile("{ .reg .u32 x; mapa.shared::cluster.u32 x, %1, %2; ld.shared::cluster.f32 %0, [x]; }"
                 : "=f"(value) : "r"(addr(&tile[63 - T])), "r"(blockIdx.x ^ 1) : "memory");
    c[blockIdx.x * 64 + T] = value;
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
#endif
