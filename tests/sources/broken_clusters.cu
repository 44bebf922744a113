// Defects of kernels whose blocks form clusters of two, one each, and beside them the right ones. The sanitizer must name
// the lines marked [group:what].
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u32 rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ u32 in_block(const void* p, u32 block) {
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at(p)), "r"(block));
    return there;
}
#define MEET asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory")
#define FENCES asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory")
#define EXPECT(b, n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory")
#define ARRIVE_IN(b, block)                                                                                          \
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(b, block)) : "memory")
#define WAIT(b, parity)                                                                                              \
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; "     \
                 "@p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory")
#define LOAD_FOR(to, from, n, b, blocks)                                                                             \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "             \
                 "[%0], [%1], %3, [%2], %4;"                                                                         \
                 ::"r"(at(to)), "l"(from), "r"(at(b)), "r"(n), "h"((unsigned short)(blocks)) : "memory")

// ---- Each block writes its words and reads its neighbour's. 32 threads.

__device__ __forceinline__ void put(u32* box) {
    box[threadIdx.x] = threadIdx.x;  // [exchange:write]
}
__device__ __forceinline__ u32 get(const u32* box) {
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"  // [exchange:read]
                 : "=r"(value) : "r"(in_block(box + threadIdx.x, rank() ^ 1)) : "memory");
    return value;
}
extern "C" __global__ void exchange_right(u32* out) {
    __shared__ u32 box[32];
    put(box);
    MEET;
    out[blockIdx.x * 32 + threadIdx.x] = get(box);
    MEET;
}
extern "C" __global__ void exchange_not_ordered(u32* out) {
    __shared__ u32 box[32];
    put(box);
    out[blockIdx.x * 32 + threadIdx.x] = get(box);
    MEET;
}
extern "C" __global__ void exchange_only_arrives(u32* out) {
    __shared__ u32 box[32];
    put(box);
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    out[blockIdx.x * 32 + threadIdx.x] = get(box);
    asm volatile("barrier.cluster.wait;" ::: "memory");
    MEET;
}
// One of the two blocks is done first, and its memory is gone.
extern "C" __global__ void exchange_ends(u32* out) {
    __shared__ u32 box[32];
    put(box);
    MEET;
    out[blockIdx.x * 32 + threadIdx.x] = get(box);
}  // [exchange:end]
// Block 1 reads once more. It arrives then, but block 0 does not wait.
extern "C" __global__ void exchange_may_end(u32* out) {
    __shared__ u32 box[32];
    put(box);
    MEET;
    out[blockIdx.x * 32 + threadIdx.x] = get(box);
    MEET;
    if (rank() == 1) out[32 + threadIdx.x] += get(box);
    asm volatile("barrier.cluster.arrive;" ::: "memory");  // [exchange:may end]
}

// ---- Block 1 counts in block 0. 32 threads.

#define COUNT(name, before, after)                                                                                   \
    extern "C" __global__ void name(u32* out) {                                                                      \
        __shared__ u32 counts[32];                                                                                   \
        counts_clear(counts);                                                                                        \
        before;                                                                                                      \
        counts_add(counts);                                                                                          \
        after;                                                                                                       \
        out[blockIdx.x * 32 + threadIdx.x] = counts_read(counts);                                                    \
        MEET;                                                                                                        \
    }
__device__ __forceinline__ void counts_clear(u32* counts) {
    counts[threadIdx.x] = 0;  // [counts:clear]
}
__device__ __forceinline__ void counts_add(u32* counts) {
    if (rank() == 0) return;
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(in_block(counts + threadIdx.x, 0)) : "memory");  // [counts:add]
}
__device__ __forceinline__ u32 counts_read(const u32* counts) {
    return *(volatile const u32*)(counts + threadIdx.x);  // [counts:read]
}
COUNT(counts_right, MEET, MEET)
COUNT(counts_not_cleared, , MEET)
COUNT(counts_not_waited_for, MEET, )

// ---- Each block sends its words to its neighbour, and arrives at the mbarrier there. 32 threads.

#define SENT(name, wait)                                                                                             \
    extern "C" __global__ void name(u32* out) {                                                                      \
        __shared__ u32 box[32];                                                                                      \
        __shared__ u64 come;                                                                                         \
        if (threadIdx.x == 0) { INIT(&come, 32); FENCES; }                                                           \
        MEET;                                                                                                        \
        sent_store(box);                                                                                             \
        ARRIVE_IN(&come, rank() ^ 1);                                                                                \
        wait;                                                                                                        \
        sent_read(box, out);                                                                                         \
        MEET;                                                                                                        \
    }
__device__ __forceinline__ void sent_store(u32* box) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(in_block(box + threadIdx.x, rank() ^ 1)), "r"(threadIdx.x)  // [sent:store]
                 : "memory");
}
__device__ __forceinline__ void sent_read(const u32* box, u32* out) {
    out[blockIdx.x * 32 + threadIdx.x] = *(volatile const u32*)(box + threadIdx.x);  // [sent:read]
}
SENT(sent_right, WAIT(&come, 0))
SENT(sent_not_waited_for, )

// ---- A ring of two stages: thread 0 of each block loads one half of them for both blocks, warp 1 reads. 64 threads.

enum { RIGHT, OWN_RELEASE, NO_REMOTE_RELEASE, NO_FIRST_MEETING, NO_LAST_MEETING };

template <int WHAT>
__device__ __forceinline__ void ring(const u32* in, u32* out, int n) {
    __shared__ __align__(128) u32 stage[2][64];
    __shared__ u64 full[2], empty[2];
    const u32 half = 32 * rank(), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            INIT(&full[s], 1);  // [ring:init]
            INIT(&empty[s], WHAT == OWN_RELEASE ? 1 : 2);
        }
        FENCES;
    }
    if (WHAT == NO_FIRST_MEETING) __syncthreads(); else MEET;
    if (threadIdx.x == 0) {
        for (int k = 0; k < n; k++) {
            const int s = k % 2, parity = k / 2 & 1;
            WAIT(&empty[s], parity ^ 1);  // [ring:wait for empty]
            EXPECT(&full[s], 256);
            LOAD_FOR(&stage[s][half], in + 64 * k + half, 128, &full[s], 3);  // [ring:load]
        }
    } else if (threadIdx.x >= 32) {
        u32 sum = 0;
        for (int k = 0; k < n; k++) {
            const int s = k % 2, parity = k / 2 & 1;
            WAIT(&full[s], parity);
            sum += stage[s][lane] + stage[s][32 + lane];  // [ring:read]
            __syncwarp();
            if (lane < 2 && (lane == rank() || WHAT < OWN_RELEASE || WHAT > NO_REMOTE_RELEASE))
                ARRIVE_IN(&empty[s], lane);  // [ring:release]
        }
        out[blockIdx.x * 32 + lane] = sum;
    }
    if (WHAT != NO_LAST_MEETING) MEET;
}
#define RING(name, what) extern "C" __global__ void name(const u32* in, u32* out, int n) { ring<what>(in, out, n); }
RING(ring_right, RIGHT)
RING(ring_own_release, OWN_RELEASE)
RING(ring_no_remote_release, NO_REMOTE_RELEASE)
RING(ring_no_first_meeting, NO_FIRST_MEETING)
RING(ring_no_last_meeting, NO_LAST_MEETING)  // [ring:end]
