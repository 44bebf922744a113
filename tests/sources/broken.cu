// Kernels broken on purpose, one defect each, and beside some the right one. The sanitizer must name the lines marked
// [entry:first] and [entry:second] in comments (of one entry, that line is the access found and what it collides with).
// Each runs as one or a few blocks of 64 threads, two warps; A, B and C hold 32-bit floats.

#define T 32

// ---- Tiles of 8 x 8, as people write them: C = A * B, all 16 x 16.

template <int BARRIERS>  // bit 0: after the stores; bit 1: after the products
__device__ __forceinline__ float tile_sum(const float* A, const float* B, float (*a)[8], float (*b)[8]) {
    int tx = threadIdx.x % 8, ty = threadIdx.x / 8, row = blockIdx.y * 8 + ty, col = blockIdx.x * 8 + tx;
    float sum = 0;
    for (int k0 = 0; k0 < 16; k0 += 8) {
        a[ty][tx] = A[row * 16 + k0 + tx];  // [tile:store a]
        b[ty][tx] = B[(k0 + ty) * 16 + col];  // [tile:store b]
        if (BARRIERS & 1) __syncthreads();
        for (int k = 0; k < 8; k++) sum += a[ty][k] * b[k][tx];  // [tile:read]
        if (BARRIERS & 2) __syncthreads();
    }
    return sum;
}

#define TILED(name, barriers)                                                                    \
    extern "C" __global__ void name(const float* A, const float* B, float* C) {                  \
        __shared__ float a[8][8], b[8][8];                                                       \
        int at = (blockIdx.y * 8 + threadIdx.x / 8) * 16 + blockIdx.x * 8 + threadIdx.x % 8;     \
        C[at] = tile_sum<barriers>(A, B, a, b);                                                  \
    }
TILED(tiled_right, 3)
TILED(no_barrier_before_products, 2)
TILED(no_barrier_after_products, 1)

// ---- Two tiles in turn: one barrier an iteration is enough, if it lies between the products and the next stores.

extern "C" __global__ void two_tiles_right(const float* A, float* C) {
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        tile[k % 2][t] = A[k * 64 + t];
        __syncthreads();
        sum += tile[k % 2][63 - t];
    }
    C[t] = sum;
}

extern "C" __global__ void two_tiles_too_few_barriers(const float* A, float* C) {
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        tile[k % 2][t] = A[k * 64 + t];  // [two_tiles_too_few_barriers:first]
        if (k % 2 == 0) __syncthreads();
        sum += tile[k % 2][63 - t];  // [two_tiles_too_few_barriers:second]
    }
    C[t] = sum;
}

// ---- Bounds and alignment

extern "C" __global__ void one_too_far(const float* A, float* C) {
    int t = blockIdx.x * 64 + threadIdx.x;
    if (t <= 100) C[t] = 2 * A[t];  // [one_too_far:first]  100 elements
}

extern "C" __global__ void one_too_far_shared(const float* A, float* C) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t + 1] = A[t];  // [one_too_far_shared:first]
    __syncthreads();
    C[t] = tile[t ? t : 1];
}

extern "C" __global__ void misaligned_vector(const float* A, float* C) {
    int t = threadIdx.x;
    float4 four = *reinterpret_cast<const float4*>(A + 5 * t);  // [misaligned_vector:first]
    C[t] = four.x + four.y + four.z + four.w;
}

extern "C" __global__ void misaligned_shared(const float* A, float* C) {
    __shared__ __align__(16) float tile[64 + 4];
    int t = threadIdx.x;
    tile[t] = A[t];
    if (t < 4) tile[64 + t] = 0;
    __syncthreads();
    float2 two = *reinterpret_cast<const float2*>(tile + t);  // [misaligned_shared:first]
    C[t] = two.x + two.y;
}

// ---- Reads of what nobody wrote

extern "C" __global__ void tile_half_written(const float* A, float* C) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t < 48) tile[t] = A[t];
    __syncthreads();
    C[t] = tile[63 - t];  // [tile_half_written:first]
}

// ---- Barriers that not all threads reach

extern "C" __global__ void barrier_under_if(const float* A, float* C) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = A[t];
    if (t < 40) {  // [barrier_under_if:second]  the others end here
        __syncthreads();  // [barrier_under_if:first]
        C[t] = tile[39 - t];
    }
}

extern "C" __global__ void barriers_of_two_branches(const float* A, float* C, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = A[t];
    if (t < n) {
        C[t + 64] = A[t] * A[t];
        __syncthreads();  // [barriers_of_two_branches:first]
        C[t] = tile[63 - t] + 1;
    } else {
        __syncthreads();  // [barriers_of_two_branches:second]
        C[t] = tile[63 - t] * 2;
    }
}

extern "C" __global__ void waits_forever(const float* A, float* C) {
    int t = threadIdx.x;
    if (t < 32) asm volatile("bar.sync 1, 64;" ::: "memory");  // [waits_forever:first]
    else asm volatile("bar.sync 2, 64;" ::: "memory");  // [waits_forever:second]
    C[t] = A[t];
}

// ---- Barriers of some warps: the first warp produces, the second consumes

#define PRODUCE(id) asm volatile("bar.arrive " #id ", 64;" ::: "memory")
#define CONSUME(id) asm volatile("bar.sync " #id ", 64;" ::: "memory")

extern "C" __global__ void named_barriers_right(const float* A, float* C) {
    __shared__ float tile[32];
    int t = threadIdx.x;
    if (t < 32) {
        for (int k = 0; k < 3; k++) {
            if (k) CONSUME(2);
            tile[t] = A[32 * k + t];
            PRODUCE(1);
        }
    } else {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            CONSUME(1);
            sum += tile[63 - t];
            if (k < 2) PRODUCE(2);
        }
        C[t] = sum;
    }
}

extern "C" __global__ void named_barrier_missing(const float* A, float* C) {
    __shared__ float tile[32];
    int t = threadIdx.x;
    if (t < 32) {
        tile[t] = A[t];
        PRODUCE(1);
        tile[t] = A[32 + t];  // [named_barrier_missing:second]  nobody has said that the first words are read
        PRODUCE(2);
    } else {
        CONSUME(1);
        float sum = tile[63 - t];  // [named_barrier_missing:first]
        CONSUME(2);
        C[t] = sum + tile[63 - t];
    }
}

// ---- Asynchronous copies

__device__ __forceinline__ void copy_word(float* to, const float* from) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");  // [copy]
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")

#define COPIED(name, first_wait, barrier)                                                                   \
    extern "C" __global__ void name(const float* A, float* C) {                                             \
        __shared__ float tile[2][64];                                                                       \
        int t = threadIdx.x;                                                                                \
        copy_word(&tile[0][t], A + t);                                                                      \
        COMMIT;                                                                                             \
        copy_word(&tile[1][t], A + 64 + t);                                                                 \
        COMMIT;                                                                                             \
        first_wait;                                                                                         \
        barrier;                                                                                            \
        float sum = tile[0][63 - t];                                                                        \
        WAIT(0);                                                                                            \
        __syncthreads();                                                                                    \
        C[t] = sum + tile[1][63 - t];                                                                       \
    }
COPIED(copies_right, WAIT(1), __syncthreads())
COPIED(copy_not_waited_for, , __syncthreads())  // [copy_not_waited_for:first]
COPIED(copy_without_barrier, WAIT(1), )  // [copy_without_barrier:first]

// ---- Threads of one warp

extern "C" __global__ void warp_in_order(const float* A, float* C) {
    __shared__ float tile[64];
    int t = threadIdx.x, warp = t & 32;
    tile[t] = A[t];
    __syncwarp();
    float other = tile[warp + 31 - t % 32];
    __syncwarp();
    if (t % 32 < 16) tile[t] = 2 * other;
    __syncwarp();
    if (t % 32 >= 16) other += tile[t - 16];
    C[t] = other;
}

extern "C" __global__ void warp_branches(const float* A, float* C, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float x = A[t];
    tile[t] = x;
    __syncthreads();
    if (t % 32 < 16) {
        for (int i = 0; i < n + t; i++) x = x * x + 1;
        tile[t] = x;  // [warp_branches:first]
    } else {
        for (int i = 0; i < n + t; i++) x = x * x - 1;
        x += tile[t - 16];  // [warp_branches:second]
    }
    C[t] = x;
}

extern "C" __global__ void one_place_for_all(const float* A, float* C) {
    __shared__ float place;
    place = A[threadIdx.x];  // [one_place_for_all:first]
    __syncthreads();
    C[threadIdx.x] = place;
}

extern "C" __global__ void same_value_for_all(const float* A, float* C) {
    __shared__ float place;
    place = A[7];
    __syncthreads();
    C[threadIdx.x] = place;
}

// ---- Blocks and global memory

extern "C" __global__ void blocks_right(const float* A, float* C) {
    int t = threadIdx.x;
    atomicAdd(&C[t], A[t]);
    if (t == 0) C[200] = 1;  // the same value by all
    C[64 + 64 * blockIdx.x + t] = A[t];
}

extern "C" __global__ void sum_without_atomics(const float* A, float* C) {
    int t = threadIdx.x;
    C[t] += A[64 * blockIdx.x + t];  // [sum_without_atomics:first]
}

extern "C" __global__ void one_tile_for_two_blocks(const float* A, float* C) {
    int t = threadIdx.x;
    C[t] = A[64 * blockIdx.x + t];  // [one_tile_for_two_blocks:first]
}

extern "C" __global__ void neighbour_of_a_block(const float* A, float* C) {
    int t = 64 * blockIdx.x + threadIdx.x;
    C[t] = A[t];  // [neighbour_of_a_block:second]
    if (t >= 64) C[256 + t % 64] = 2 * C[t - 64];  // [neighbour_of_a_block:first]
}

// ---- Atomics race with what is not atomic, not with each other

extern "C" __global__ void atomics_right(const float* A, float* C) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, A[threadIdx.x]);
    __syncthreads();
    C[threadIdx.x] = sum;
}

extern "C" __global__ void atomics_too_early(const float* A, float* C) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, A[threadIdx.x]);  // [atomics_too_early:first]
    C[threadIdx.x] = sum;  // [atomics_too_early:second]
}

// ---- A pointer that is null, so that its threads read from address 256 on, by a generic load or by one of global memory.

extern "C" __global__ void null_pointer(const float* A, float* C) {
    __shared__ float s[1024];
    const float* p;
    asm volatile("mov.u64 %0, 0;" : "=l"(p));
    s[threadIdx.x] = C[threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = p[64 + threadIdx.x] + s[63 - threadIdx.x];  // [null_pointer:first]
}

extern "C" __global__ void null_pointer_global(const float* A, float* C) {
    const float* p = A == C ? A : (const float*)0;
    C[threadIdx.x] = __ldg(p + 64 + threadIdx.x);  // [null_pointer_global:first]
}
