// Kernels with one defect each. Before a kernel stands which finding it should make ("race|uninitialised read": either),
// and how it is launched where that is not one block of 64 threads. HERE marks the lines at which it may be reported.
// All take a (f32[1024], random), c (f32[1024]) and n (1024).
#include <cuda_pipeline.h>
#include <mma.h>

#define T threadIdx.x
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;

__device__ unsigned addr(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ int counter;
__device__ float table[32];
__constant__ float weights[16];

// Races on shared memory

//: race
KERNEL reversed(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];  // HERE
    c[T] = tile[63 - T];  // HERE
}

//: race
KERNEL stale_tile(const float *a, float *c, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int k = 0; k < n / 64; ++k) {
        tile[T] = a[k * 64 + T];  // HERE
        __syncthreads();
        for (int i = 0; i < 64; ++i) sum += tile[i] * tile[(i + T) & 63];  // HERE
    }
    c[T] = sum;
}

//: race
KERNEL tile_used_early(const float *a, float *c, int n) {
    __shared__ float x[8][8], y[8][8];
    int row = T / 8, column = T % 8;
    float sum = 0;
    for (int k = 0; k < n; k += 64) {
        x[row][column] = a[k + T];  // HERE
        y[column][row] = a[k + T];  // HERE
        for (int i = 0; i < 8; ++i) sum += x[row][i] * y[i][column];  // HERE
        __syncthreads();
    }
    c[T] = sum;
}

//: race
KERNEL one_buffer_of_two(const float *a, float *c, int n) {
    __shared__ float tile[2][64];
    float sum = 0;
    tile[0][T] = a[T];
    __syncthreads();
    for (int k = 1; k < 8; ++k) {
        tile[(k + 1) & 1][T] = a[k * 64 + T];  // HERE
        sum += tile[(k - 1) & 1][T ^ 33];  // HERE
        __syncthreads();
    }
    c[T] = sum;
}

//: race
KERNEL histogram(const float *a, float *c, int n) {
    __shared__ int bins[16];
    if (T < 16) bins[T] = 0;
    __syncthreads();
    bins[(int)(a[T] * 16) & 15] += 1;  // HERE
    __syncthreads();
    if (T < 16) c[T] = bins[T];
}

//: race
KERNEL synchronized_by_warp_only(const float *a, float *c, int n) {
    __shared__ float sums[64];
    sums[T] = a[T];  // HERE
    for (int step = 32; step; step >>= 1) {
        __syncwarp();
        if (T < step) sums[T] += sums[T + step];  // HERE
    }
    if (T == 0) c[0] = sums[0];
}

//: race
KERNEL halves_of_a_warp(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if ((T & 31) < 16) {
        tile[T] = a[T] * 2;  // HERE
        c[T] = a[T + 64];
    } else {
        c[T] = tile[T - 16] + a[T];  // HERE
        c[T + 64] = a[T + 128] * c[T];
    }
}

//: race
KERNEL barrier_of_one_warp(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];  // HERE
    asm volatile("bar.sync %0, 32;" ::"r"(1 + T / 32) : "memory");
    c[T] = tile[(T + 32) & 63];  // HERE
}

//: race
KERNEL scan_in_place(const float *a, float *c, int n) {
    __shared__ float sums[64];
    sums[T] = a[T];
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();
        if (T >= step) sums[T] += sums[T - step];  // HERE
    }
    c[T] = sums[T];
}

//: race
KERNEL union_of_two_uses(const float *a, float *c, int n) {
    __shared__ union { float tile[64]; int counts[64]; } u;
    u.tile[T] = a[T];
    __syncthreads();
    float other = u.tile[T ^ 63];  // HERE
    u.counts[T] = (int)(other * 8);  // HERE
    __syncthreads();
    c[T] = u.counts[63 - T];
}

//: race shared=512
KERNEL offset_in_bytes(const float *a, float *c, int n) {
    extern __shared__ float dynamic[];
    float *x = dynamic, *y = (float *)((char *)dynamic + 64);
    x[T] = a[T];  // HERE
    y[T] = a[T + 64];  // HERE
    __syncthreads();
    c[T] = x[63 - T] + y[63 - T];
}

//: race
KERNEL vector_beside_scalar(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[256];
    ((float4 *)tile)[T] = ((const float4 *)a)[T];  // HERE
    c[T] = tile[T * 4 + 129 & 255];  // HERE
}

//: race
KERNEL scalar_for_all(const float *a, float *c, int n) {
    __shared__ float scale;
    if (T == 0) scale = a[0];  // HERE
    c[T] = a[T] * scale;  // HERE
}

//: race
KERNEL next_tile_of_a_block(const float *a, float *c, int n) {
    __shared__ int next;
    for (int k = 0; k < 4; ++k) {
        if (T == 0) next = k * 64;  // HERE
        __syncthreads();
        c[next + T] = a[next + T];  // HERE
    }
}

//: race
KERNEL matrix_without_barrier(const float *a, float *c, int n) {
    using namespace nvcuda;
    __shared__ __align__(32) half tile[256];
    for (int i = T; i < 256; i += 64) tile[i] = __float2half(a[i]);  // HERE
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0);
    wmma::load_matrix_sync(x, tile, 16);  // HERE
    wmma::load_matrix_sync(y, tile, 16);  // HERE
    wmma::mma_sync(z, x, y, z);
    if (T < 32) wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}

//: race
KERNEL bytes_of_a_word(const float *a, float *c, int n) {
    __shared__ unsigned char tile[256];
    tile[T * 2 + 1] = (unsigned char)(a[T] * 100);  // HERE
    __syncwarp();
    c[T] = *(unsigned short *)&tile[(T * 2 + 64) & 127];  // HERE
}

//: race
KERNEL result_read_before_sum(const float *a, float *c, int n) {
    __shared__ float sum[2];
    float mine = a[T];
    for (int step = 16; step; step >>= 1) mine += __shfl_xor_sync(~0u, mine, step);
    if (T % 32 == 0) sum[T / 32] = mine;  // HERE
    __syncwarp();
    c[T] = a[T] / (sum[0] + sum[1]);  // HERE
}

//: race
KERNEL epilogue_over_tile(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += tile[i] * i;  // HERE
    tile[63 - T] = sum;  // HERE
    __syncthreads();
    c[T] = tile[T];
}

// Races on global memory

//: race grid=4
KERNEL split_k_without_atomics(const float *a, float *c, int n) {
    c[T] += a[blockIdx.x * 64 + T];  // HERE
}

//: race grid=4
KERNEL two_blocks_a_tile(const float *a, float *c, int n) {
    c[blockIdx.x / 2 * 64 + T] = a[blockIdx.x * 64 + T];  // HERE
}

//: race grid=4
KERNEL smoothed_in_place(float *a, float *c, int n) {
    int i = blockIdx.x * 64 + T;
    float left = a[i];
    float right = a[i + 1];  // HERE
    __syncthreads();
    a[i] = 0.5f * (left + right);  // HERE
}

//: race
KERNEL global_tile(const float *a, float *c, int n) {
    c[T] = a[T] * 2;  // HERE
    c[T + 64] = ((volatile float *)c)[63 - T];  // HERE
}

//: race
KERNEL global_sum_of_a_block(const float *a, float *c, int n) {
    c[0] = c[0] + a[T];  // HERE
}

// Barriers

//: divergent barrier
KERNEL half_of_the_warps(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];
    if (T < 32) __syncthreads();  // HERE
    c[T] = tile[T];
}

//: divergent barrier
KERNEL odd_threads(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[T];
    if (T & 1) {
        c[T] = tile[T] * 2;
        __syncthreads();  // HERE
        c[T + 64] = tile[63 - T];
    }
}

//: divergent barrier n=50
KERNEL return_before_barrier(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (T >= n) return;  // HERE
    tile[T] = a[T];
    __syncthreads();  // HERE
    c[T] = tile[n - 1 - T];
}

__device__ __noinline__ float meet(float value) {
    __syncthreads();  // HERE
    return value * 2;
}
__device__ __forceinline__ float meet_inline(float value) {
    __syncthreads();  // HERE
    return value * 2;
}

//: divergent barrier
KERNEL two_calls_on_a_line(const float *a, float *c, int n) {
    float value = a[T];
    if (T < 32) { value = meet_inline(value + a[T + 1]); } else { value = meet_inline(value * a[T + 7]) / 3; }  // HERE
    c[T] = value;
}

//: divergent barrier
KERNEL two_calls_on_two_lines(const float *a, float *c, int n) {
    float value = a[T];
    if (T < 32)
        value = meet_inline(value + a[T + 1]);  // HERE
    else
        value = meet_inline(value * a[T + 7]) / 3;  // HERE
    c[T] = value;
}

//: divergent barrier
KERNEL as_many_barriers_as_the_thread(const float *a, float *c, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int k = 0; k < 2 + (int)T / 32; ++k) {
        tile[T] = a[k * 64 + T];
        __syncthreads();  // HERE
        sum += tile[T] * k;
    }
    c[T] = sum;
}

//: divergent barrier
KERNEL barrier_of_too_many(const float *a, float *c, int n) {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // HERE
    c[T] = a[T];
}

// Bounds

//: out of bounds
KERNEL one_element_beyond(const float *a, float *c, int n) {
    for (int i = T; i <= n; i += 64) c[i] = a[0];  // HERE
}

//: out of bounds
KERNEL left_neighbour(const float *a, float *c, int n) {
    c[T] = a[T] - a[(int)T - 1];  // HERE
}

//: out of bounds
KERNEL beyond_shared(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T + 1] = a[T];  // HERE
    __syncthreads();
    c[T] = tile[63 - T];
}

//: beyond an array
KERNEL into_the_next_array(const float *a, float *c, int n) {
    __shared__ float x[64], y[64];
    x[T + 1] = a[T];  // HERE
    if (T == 0) x[0] = 1;
    y[T ^ 1] = a[T + 64];  // HERE
    __syncthreads();
    c[T] = x[63 - T] + y[63 - T];  // HERE
}

//: beyond an array
KERNEL read_from_the_next_array(const float *a, float *c, int n) {
    __shared__ float x[64], y[64];
    x[T] = a[T];
    y[T] = a[T + 64];
    __syncthreads();
    c[T] = x[T + 1] + y[63 - T];  // HERE
}

//: beyond an array
KERNEL row_too_many(const float *a, float *c, int n) {
    __shared__ float x[8][9], y[8][9];
    x[T / 8][T % 8] = a[T];
    y[T / 8][T % 8] = a[T + 64];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k <= 8; ++k) sum += x[k][T % 8] * y[T / 8][k & 7];  // HERE
    c[T] = sum;
}

//: fault
KERNEL beyond_local(const float *a, float *c, int n) {
    float kept[96];
    for (int i = 0; i < 96; ++i) kept[i] = a[i * 8 + T];
    kept[n / 32 + 64] = 1;  // HERE
    float sum = 0;
    for (int i = 0; i < 96; ++i) sum += kept[(i * n + (int)T) & 63];
    c[T] = sum;
}

//: fault
KERNEL far_beyond_local(const float *a, float *c, int n) {
    float kept[96];
    for (int i = 0; i < 96; ++i) kept[i] = a[i * 8 + T];
    kept[n * 4] = 1;  // HERE
    float sum = 0;
    for (int i = 0; i < 96; ++i) sum += kept[(i * n + (int)T) & 63];
    c[T] = sum;
}

//: out of bounds
KERNEL beyond_constant(const float *a, float *c, int n) {
    c[T] = a[T] * weights[T / 2];  // HERE
}

//: out of bounds
KERNEL beyond_module_table(const float *a, float *c, int n) {
    table[T / 2 + 1] = a[T & ~1];  // HERE
}

//: out of bounds
KERNEL vector_over_the_end(const float *a, float *c, int n) {
    float4 four = *(const float4 *)(a + 1024 - 4 + ((int)T / 63) * 4);  // HERE
    c[T] = four.x + four.y + four.z + four.w;
}

//: out of bounds
KERNEL inside_a_header(const float *a, float *c, int n) {
    c[T] = __ldcg(a + n + T);  // HERE
}

//: out of bounds
KERNEL null_pointer(const float *a, float *c, int n) {
    const float *p = (const float *)(u64)(n - 1024);
    c[T] = p[T];  // HERE
}

// Memory that nobody wrote

//: uninitialised read
KERNEL halo_left_out(const float *a, float *c, int n) {
    __shared__ float tile[66];
    tile[T + 1] = a[T];
    if (T == 0) tile[0] = 0;
    __syncthreads();
    c[T] = tile[T] + tile[T + 1] + tile[T + 2];  // HERE
}

//: uninitialised read n=60
KERNEL edge_not_filled(const float *a, float *c, int n) {
    __shared__ float tile[64];
    if (T < n) tile[T] = a[T];
    __syncthreads();
    c[T] = tile[63 - T];  // HERE
}

//: uninitialised read
KERNEL counters_not_zeroed(const float *a, float *c, int n) {
    __shared__ int bins[16];
    atomicAdd(&bins[(int)(a[T] * 16) & 15], 1);  // HERE
    __syncthreads();
    if (T < 16) c[T] = bins[T];
}

// Alignment

//: misaligned
KERNEL vector_from_odd_place(const float *a, float *c, int n) {
    float4 four = *(const float4 *)(a + 4 * T + 1);  // HERE
    c[T] = four.x + four.y + four.z + four.w;
}

//: misaligned
KERNEL pair_in_shared(const float *a, float *c, int n) {
    __shared__ __align__(8) float tile[130];
    tile[T] = a[T];
    tile[T + 64] = a[T + 64];
    __syncthreads();
    float2 two = *(float2 *)(tile + T);  // HERE
    c[T] = two.x + two.y;
}

//: misaligned
KERNEL copied_in_a_header(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[260];
    __pipeline_memcpy_async(tile + 4 * T + 1, a + 4 * T, 16);  // HERE
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    c[T] = tile[T];
}

// Asynchronous copies

__device__ __forceinline__ void copy4(float *to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(addr(to)), "l"(from) : "memory");  // HERE
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

//: unwaited copy
KERNEL copy_without_wait(const float *a, float *c, int n) {
    __shared__ float tile[64];
    copy4(&tile[T], &a[T]);
    COMMIT;
    __syncthreads();
    c[T] = tile[63 - T];  // HERE
}

//: unwaited copy
KERNEL one_group_too_few(const float *a, float *c, int n) {
    __shared__ float tile[2][64];
    copy4(&tile[0][T], &a[T]);
    COMMIT;
    float sum = 0;
    for (int k = 0; k < 8; ++k) {
        if (k + 1 < 8) copy4(&tile[(k + 1) & 1][T], &a[(k + 1) * 64 + T]);
        if (k + 1 < 8) COMMIT;
        WAIT(1);
        __syncthreads();
        sum += tile[k & 1][63 - T];  // HERE
        __syncthreads();
    }
    c[T] = sum;
}

//: race|unwaited copy
KERNEL copy_without_barrier(const float *a, float *c, int n) {
    __shared__ float tile[64];
    copy4(&tile[T], &a[T]);
    COMMIT;
    WAIT(0);
    c[T] = tile[63 - T];  // HERE
}

//: race
KERNEL copy_into_used_stage(const float *a, float *c, int n) {
    __shared__ float tile[3][64];
    float sum = 0;
    for (int k = 0; k < 2; ++k) { copy4(&tile[k][T], &a[k * 64 + T]); COMMIT; }
    for (int k = 0; k < 8; ++k) {
        WAIT(1);
        __syncthreads();
        for (int i = 0; i < 4; ++i) sum += tile[k % 3][(T + 32 + i) & 63];  // HERE
        copy4(&tile[(k + 3) % 3][T], &a[(k + 2) * 64 + T]);  // HERE
        COMMIT;
    }
    WAIT(0);
    c[T] = sum;
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void init(u64 *bar, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(addr(bar)), "r"(count) : "memory");  // HERE
}
__device__ __forceinline__ void expect(u64 *bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(addr(bar)), "r"(bytes) : "memory");  // HERE
}
__device__ __forceinline__ void arrive(u64 *bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(addr(bar)) : "memory");  // HERE
}
__device__ __forceinline__ void wait(u64 *bar, int parity) {
    asm volatile(
        "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }"  // HERE
        ::"r"(addr(bar)), "r"(parity) : "memory");  // HERE
}
__device__ __forceinline__ void bulk(float *to, const float *from, int bytes, u64 *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // HERE
        ::"r"(addr(to)), "l"(from), "r"(bytes), "r"(addr(bar)) : "memory");  // HERE
}
__device__ __forceinline__ void bulk_out(float *to, const float *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"  // HERE
        ::"l"(to), "r"(addr(from)), "r"(bytes) : "memory");  // HERE
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

//: unwaited copy|race|mbarrier phase arch=sm_90
KERNEL parity_of_the_next_phase(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T == 0) expect(&bar, 256), bulk(tile, a, 256, &bar);
    wait(&bar, 1);
    c[T] = tile[63 - T];  // HERE
}

//: expected bytes arch=sm_90
KERNEL bytes_of_half_a_tile(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T == 0) expect(&bar, 128), bulk(tile, a, 256, &bar);  // HERE
    wait(&bar, 0);
    c[T] = tile[63 - T];
}

//: uninitialised read arch=sm_90
KERNEL second_mbarrier_not_made(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    __shared__ u64 bar[2];
    if (T == 0) init(&bar[0], 64);
    __syncthreads();
    arrive(&bar[1]);  // HERE
    c[T] = a[T];
}

//: race arch=sm_90
KERNEL mbarrier_made_unseen(const float *a, float *c, int n) {
    __shared__ u64 bar;
    if (T == 0) init(&bar, 64);  // HERE
    __syncwarp();
    arrive(&bar);  // HERE
    c[T] = a[T];
}

//: unwaited copy arch=sm_90
KERNEL bulk_copy_without_wait(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T == 0) expect(&bar, 256), bulk(tile, a, 256, &bar);
    __syncthreads();
    c[T] = tile[63 - T];  // HERE
}

//: missing fence arch=sm_90
KERNEL bulk_store_without_fence(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    tile[T] = a[T];  // HERE
    __syncthreads();
    if (T == 0) {
        bulk_out(c, tile, 256);  // HERE
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

//: unwaited copy arch=sm_90
KERNEL tile_of_a_bulk_store_reused(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[64];
    for (int k = 0; k < 2; ++k) {
        tile[T] = a[k * 64 + T];  // HERE
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        if (T == 0) bulk_out(c + k * 64, tile, 256);
        __syncthreads();
    }
    if (T == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

//: unwaited copy|mbarrier phase|race arch=sm_90
KERNEL parity_never_flipped(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[2][64];
    __shared__ u64 bar[2];
    if (T == 0) init(&bar[0], 1), init(&bar[1], 1);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 6; ++k) {
        if (T == 0) expect(&bar[k & 1], 256), bulk(tile[k & 1], a + k * 64, 256, &bar[k & 1]);
        wait(&bar[k & 1], 0);  // HERE
        sum += tile[k & 1][63 - T];  // HERE
        __syncthreads();
    }
    c[T] = sum;
}

//: race|unwaited copy|mbarrier phase arch=sm_90
KERNEL producer_without_empty_barrier(const float *a, float *c, int n) {
    __shared__ __align__(16) float tile[2][64];
    __shared__ u64 full[2];
    if (T == 0) init(&full[0], 1), init(&full[1], 1);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 6; ++k) {
        if (T == 0) expect(&full[k & 1], 256), bulk(tile[k & 1], a + k * 64, 256, &full[k & 1]);
        wait(&full[k & 1], k >> 1 & 1);
        sum += tile[k & 1][63 - T];  // HERE
    }
    c[T] = sum;
}

//: ended block|race arch=sm_90 cluster=2 grid=2
KERNEL neighbour_may_have_ended(const float *a, float *c, int n) {
    __shared__ float tile[64];
    tile[T] = a[blockIdx.x * 64 + T];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    float value;
    asm volatile("{ .reg .u32 x; mapa.shared::cluster.u32 x, %1, %2; ld.shared::cluster.f32 %0, [x]; }"  // HERE
        : "=f"(value) : "r"(addr(&tile[63 - T])), "r"(blockIdx.x ^ 1));  // HERE
    c[blockIdx.x * 64 + T] = value;
}  // HERE
#endif
