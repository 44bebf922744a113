// Defects of asynchronous kernels, one each, and beside them the right ones: wgmma, bulk copies (TMA), mbarriers and fences
// of the asynchronous proxy. The sanitizer must name the lines marked [entry:first] and [entry:second]; marks of shared code
// have names of their own. To be compiled for sm_90a. `in` and `out` hold 32-bit words.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory")
#define ARRIVE(b) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory")
#define EXPECT(b, n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory")
#define WAIT(b, parity)                                                                                             \
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; "        \
                 "bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory")
#define LOAD(to, from, n, b)                                                                                        \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];"           \
                 ::"r"(at(to)), "l"(from), "r"(at(b)), "r"(n) : "memory")
#define STORE(to, from, n)                                                                                          \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"                                       \
                 ::"l"(to), "r"(at(from)), "r"(n) : "memory")
#define STORES_READ asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory")
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define MULTIPLY(d, a, b)                                                                                           \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"            \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))
#define BEGIN asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define PRODUCTS(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")

// A without swizzle: 64 rows of 16 halves, in pieces of 8 x 8; B: 8 columns. The next piece along k lies 128 bytes on.
constexpr int A_WORDS = 512, WORDS = 576, BYTES = 4 * WORDS;
__device__ u64 a_at(const u32* tile) { return (at(tile) >> 4 & 0x3FFF) | 8ull << 16 | 16ull << 32; }
__device__ u64 b_at(const u32* tile) { return a_at(tile + A_WORDS); }
__device__ void put(float* out, const float (&d)[4]) {
    for (int i = 0; i < 4; i++) out[4 * (threadIdx.x % 128) + i] = d[i];  // [put:read]
}

// ---- A ring of two stages: thread 0 loads, warps 4 to 7 multiply. 256 threads.

enum { RIGHT, EARLY_RELEASE, NO_EMPTY, LESS_EXPECTED, MORE_EXPECTED, ONE_PARITY, SURPLUS, ONE_RELEASES };

template <int WHAT>
__device__ __forceinline__ void ring(const u32* in, float* out, int n) {
    __shared__ __align__(128) u32 stage[2][WORDS];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) { INIT(&full[s], 1); INIT(&empty[s], WHAT == ONE_RELEASES ? 1 : 128); }
        FENCE;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 0; k < n; k++) {
            int s = k % 2, parity = k / 2 & 1;
            if (WHAT != NO_EMPTY) WAIT(&empty[s], parity ^ 1);  // [ring:wait for empty]
            const int bytes = WHAT == LESS_EXPECTED ? BYTES / 2 : WHAT == MORE_EXPECTED ? BYTES + 16 : BYTES;
            EXPECT(&full[s], bytes);  // [ring:expect]
            LOAD(stage[s], in + k * WORDS, BYTES / 2, &full[s]);  // [ring:load]
            LOAD(stage[s] + WORDS / 2, in + k * WORDS + WORDS / 2, BYTES / 2, &full[s]);  // [ring:second load]
        }
    } else if (threadIdx.x >= 128) {
        float d[4] = {};
        for (int k = 0; k < n; k++) {
            int s = k % 2, parity = WHAT == ONE_PARITY ? 0 : k / 2 & 1;
            WAIT(&full[s], parity);  // [ring:wait]
            BEGIN; MULTIPLY(d, a_at(stage[s]), b_at(stage[s]));  // [ring:multiply]
            COMMIT;
            if (WHAT == EARLY_RELEASE) ARRIVE(&empty[s]);
            PRODUCTS(0);
            if (WHAT == ONE_RELEASES ? threadIdx.x == 128 : WHAT != EARLY_RELEASE) ARRIVE(&empty[s]);  // [ring:release]
            if (WHAT == SURPLUS && k % 2 == 0) ARRIVE(&empty[s]);  // [ring:surplus]
        }
        put(out, d);
    }
}
#define RING(name, what) extern "C" __global__ void name(const u32* in, float* out, int n) { ring<what>(in, out, n); }
RING(ring_right, RIGHT)
RING(ring_one_thread_releases, ONE_RELEASES)
RING(ring_early_release, EARLY_RELEASE)
RING(ring_no_empty, NO_EMPTY)
RING(ring_less_expected, LESS_EXPECTED)
RING(ring_more_expected, MORE_EXPECTED)
RING(ring_one_parity, ONE_PARITY)
RING(ring_surplus, SURPLUS)

// ---- A tile that threads store, and that wgmma reads. 128 threads.

#define STAGED(name, writers_fence, readers_fence, early)                                                           \
    extern "C" __global__ void name(const u32* in, float* out, int n) {                                             \
        __shared__ __align__(128) u32 tile[WORDS];                                                                  \
        float d[4] = {};                                                                                            \
        for (int k = 0; k < n; k++) {                                                                               \
            staged_store(tile, in + k * WORDS);                                                                     \
            writers_fence;                                                                                          \
            __syncthreads();                                                                                        \
            readers_fence;                                                                                          \
            staged_multiply(d, tile);                                                                               \
            if (!(early)) PRODUCTS(0);                                                                              \
            __syncthreads();                                                                                        \
            PRODUCTS(0);                                                                                            \
        }                                                                                                           \
        put(out, d);                                                                                                \
    }
__device__ __forceinline__ void staged_store(u32* tile, const u32* in) {
#pragma unroll 1
    for (int i = threadIdx.x; i < WORDS; i += 128) tile[i] = in[i];  // [staged:store]
}
__device__ __forceinline__ void staged_multiply(float (&d)[4], const u32* tile) {
    BEGIN; MULTIPLY(d, a_at(tile), b_at(tile));  // [staged:multiply]
    COMMIT;
}
STAGED(staged_right, FENCE, , false)
STAGED(staged_fence_of_readers, , FENCE, false)
STAGED(staged_no_fence, , , false)

extern "C" __global__ void overwritten_right(const u32* in, float* out, int n) {
    __shared__ __align__(128) u32 tile[WORDS];
    float d[4] = {};
    staged_store(tile, in);
    FENCE;
    __syncthreads();
    staged_multiply(d, tile);
    PRODUCTS(0);
    __syncthreads();
    tile[threadIdx.x] = n;
    put(out, d);
}

extern "C" __global__ void overwritten_by_threads(const u32* in, float* out, int n) {
    __shared__ __align__(128) u32 tile[WORDS];
    float d[4] = {};
    staged_store(tile, in);
    FENCE;
    __syncthreads();
    staged_multiply(d, tile);
    __syncthreads();
    tile[threadIdx.x] = n;  // [overwritten_by_threads:first]
    PRODUCTS(0);
    put(out, d);
}

// ---- One tile that a bulk copy brings. 128 threads.

#define TILE(name, wait)                                                                                            \
    extern "C" __global__ void name(const u32* in, u32* out) {                                                      \
        __shared__ __align__(128) u32 tile[128];                                                                    \
        __shared__ u64 full;                                                                                        \
        if (threadIdx.x == 0) { INIT(&full, 1); FENCE; }                                                            \
        __syncthreads();                                                                                            \
        if (threadIdx.x == 0) tile_load(tile, in, &full);                                                           \
        __syncthreads();                                                                                            \
        wait;                                                                                                       \
        tile_read(tile, out);                                                                                       \
    }
__device__ __forceinline__ void tile_load(u32* tile, const u32* in, u64* full) {
    EXPECT(full, 512);
    LOAD(tile, in, 512, full);  // [tile:load]
}
__device__ __forceinline__ void tile_read(const u32* tile, u32* out) {
    out[threadIdx.x] = tile[threadIdx.x];  // [tile:read]
}
TILE(tile_right, WAIT(&full, 0))
TILE(tile_not_waited_for, )
TILE(tile_one_warp_waits, if (threadIdx.x < 32) WAIT(&full, 0))
TILE(tile_one_warp_tells, if (threadIdx.x < 32) WAIT(&full, 0); __syncthreads())

// ---- Bulk copies out of shared memory. 128 threads, `out` holds two tiles of 128.

#define OUT(name, writers_fence, wait)                                                                              \
    extern "C" __global__ void name(const u32* in, u32* out) {                                                      \
        __shared__ __align__(128) u32 tile[128];                                                                    \
        for (int k = 0; k < 2; k++) {                                                                               \
            out_write(tile, in[128 * k + threadIdx.x]);                                                             \
            writers_fence;                                                                                          \
            __syncthreads();                                                                                        \
            if (threadIdx.x == 0) {                                                                                 \
                out_store(out + 128 * k, tile);                                                                     \
                wait;                                                                                               \
            }                                                                                                       \
            __syncthreads();                                                                                        \
        }                                                                                                           \
        if (threadIdx.x == 0) STORES_READ;                                                                          \
    }
__device__ __forceinline__ void out_write(u32* tile, u32 word) {
    tile[threadIdx.x] = word;  // [out:write]
}
__device__ __forceinline__ void out_store(u32* out, const u32* tile) {
    STORE(out, tile, 512);  // [out:store]
}
OUT(out_right, FENCE, STORES_READ)
OUT(out_no_fence, , STORES_READ)
OUT(out_not_waited_for, FENCE, )

// ---- mbarriers alone. 64 threads.

extern "C" __global__ void init_right(u32* out) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) INIT(&bar, 64);
    __syncthreads();
    ARRIVE(&bar);
    WAIT(&bar, 0);
    out[threadIdx.x] = 1;
}

extern "C" __global__ void init_without_barrier(u32* out) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) INIT(&bar, 64);  // [init_without_barrier:second]
    ARRIVE(&bar);  // [init_without_barrier:first]
    __syncthreads();
    WAIT(&bar, 0);
    out[threadIdx.x] = 1;
}

extern "C" __global__ void no_init(u32* out) {
    __shared__ u64 bar;
    ARRIVE(&bar);  // [no_init:first]
    out[threadIdx.x] = 1;
}

// Warp 0 goes through three phases; warp 1 waits for the first of them, by a parity that the third has, too.
#define PASSED(name, both)                                                                                          \
    extern "C" __global__ void name(u32* out) {                                                                     \
        __shared__ u64 bar;                                                                                         \
        if (threadIdx.x == 0) INIT(&bar, 32);                                                                       \
        __syncthreads();                                                                                            \
        for (int k = 0; k < 3; k++)                                                                                 \
            if (threadIdx.x < 32) {                                                                                 \
                passed_arrive(&bar);                                                                                \
                WAIT(&bar, k & 1);                                                                                  \
            } else if (both)                                                                                        \
                WAIT(&bar, k & 1);                                                                                  \
        if (!(both)) __syncwarp();                                                                                  \
        if (threadIdx.x >= 32) passed_wait(&bar);                                                                   \
        out[threadIdx.x] = 1;                                                                                       \
    }
__device__ __forceinline__ void passed_arrive(u64* bar) {
    ARRIVE(bar);  // [passed:arrive]
}
__device__ __forceinline__ void passed_wait(u64* bar) {
    WAIT(bar, 0);  // [passed:wait]
}
PASSED(phase_passed, false)
