// What a memory fence takes, by its scope, behind what its warp asks for and beside bulk copies.
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cstdio>
#include <vector>
#endif
enum { NOTHING, STORE, ROWS_STORED, LOAD, ROWS_LOADED, SHARED_STORE, REDUCTION, HIT, COPY, SHARED_LOAD };
__device__ __forceinline__ unsigned clock_now() { unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
template <int SCOPE> __device__ __forceinline__ void fence() {
    if constexpr (SCOPE == 1) asm volatile("fence.acq_rel.cta;" ::: "memory");
    if constexpr (SCOPE == 2) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if constexpr (SCOPE == 3) __threadfence();
    if constexpr (SCOPE == 4) asm volatile("fence.acq_rel.sys;" ::: "memory");
    if constexpr (SCOPE == 5) asm volatile("fence.acq_rel.cluster;" ::: "memory");
    if constexpr (SCOPE == 6) __threadfence_block();
}
// One request of a warp, of 4 bytes a lane (a COPY of 16) in one line (ROWS_...: in 32 lines).
template <int WHAT> __device__ __forceinline__ unsigned request(char* mine, unsigned shared, unsigned x) {
    const unsigned lane = threadIdx.x % 32;
    unsigned v = 0;
    char *row = mine + lane * 128, *word = mine + lane * 4;
    if constexpr (WHAT == STORE) asm volatile("st.global.u32 [%0], %1;" :: "l"(word), "r"(x) : "memory");
    if constexpr (WHAT == ROWS_STORED) asm volatile("st.global.u32 [%0], %1;" :: "l"(row), "r"(x) : "memory");
    if constexpr (WHAT == LOAD) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(word) : "memory");
    if constexpr (WHAT == ROWS_LOADED) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(row) : "memory");
    if constexpr (WHAT == SHARED_STORE) asm volatile("st.shared.u32 [%0], %1;" :: "r"(shared), "r"(x) : "memory");
    if constexpr (WHAT == REDUCTION) asm volatile("red.global.add.u32 [%0], %1;" :: "l"(word), "r"(x) : "memory");
    if constexpr (WHAT == HIT) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(word) : "memory");
    if constexpr (WHAT == COPY) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(shared / 512 * 512 + lane * 16), "l"(mine + lane * 16) : "memory");
    if constexpr (WHAT == SHARED_LOAD) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared) : "memory");
    return v;
}
// Each warp STEPS times: a request, then a fence; what is loaded is needed a step later.
template <int SCOPE, int WHAT> __global__ void __launch_bounds__(1024) loops(char* memory, unsigned* out, int steps) {
    extern __shared__ char buffer[];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    char* mine = memory + ((size_t)blockIdx.x * warps + warp) * 4096;
    unsigned shared = (unsigned)__cvta_generic_to_shared(buffer) + warp * 512 + threadIdx.x % 32 * 4, y = 0, start = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
        if (i == 8) start = clock_now();
        y += request<WHAT>(mine, shared, y);
        fence<SCOPE>();
    }
    unsigned end = clock_now();
    if (threadIdx.x % 32 == 0) { unsigned* row = out + (size_t)(blockIdx.x * warps + warp) * 2; row[0] = start; row[1] = end; }
    if (y == 12345) out[0] = y;
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ __forceinline__ void bulk(unsigned to, const char* from, unsigned bytes, unsigned bar) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ __forceinline__ void await(unsigned bar, unsigned phase) {
    asm volatile("{\n.reg .pred P1;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@!P1 bra AGAIN;\n}" :: "r"(bar), "r"(phase) : "memory");
}
// A ring of STAGES copies of BYTES: a thread waits for each and begins the next at once. The second warp fences all the time.
template <int STAGES, int BYTES> __global__ void __launch_bounds__(64) ring(const char* memory, unsigned* out, int steps, int fences) {
    extern __shared__ __align__(1024) char buffer[];
    __shared__ unsigned long long bars[STAGES];
    unsigned bar = (unsigned)__cvta_generic_to_shared(bars), shared = (unsigned)__cvta_generic_to_shared(buffer);
    if (threadIdx.x == 0) for (int s = 0; s < STAGES; ++s) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar + 8 * s));
    __syncthreads();
    unsigned begin = clock_now(), end = begin;
    const char* mine = memory + (size_t)blockIdx.x * 8 * BYTES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < steps; ++i) {
            const int s = i % STAGES;
            if (i >= STAGES) await(bar + 8 * s, (i / STAGES - 1) & 1);
            bulk(shared + s * BYTES, mine + i % 8 * BYTES, BYTES, bar + 8 * s);
        }
        for (int i = steps; i < steps + STAGES; ++i) await(bar + 8 * (i % STAGES), (i / STAGES - 1) & 1);
        end = clock_now();
    } else if (threadIdx.x >= 32) {
        for (int i = 0; i < fences; ++i) fence<2>();
        end = clock_now();
    }
    if (threadIdx.x % 32 == 0) { unsigned* row = out + (blockIdx.x * 2 + threadIdx.x / 32) * 2; row[0] = begin; row[1] = end; }
}
#endif
#ifndef __CUDACC_RTC__
static char* memory; static unsigned* out;
static std::vector<unsigned> result(size_t n) {
    std::vector<unsigned> h(n);
    if (cudaDeviceSynchronize()) puts("FAILED");
    cudaMemcpy(h.data(), out, n * 4, cudaMemcpyDeviceToHost);
    return h;
}
template <int SCOPE, int WHAT> void go(int blocks, int warps) {
    const int steps = 72;
    for (int i = 0; i < 2; ++i) loops<SCOPE, WHAT><<<blocks, warps * 32, 40000>>>(memory, out, steps);
    auto h = result(blocks * warps * 2);
    double sum = 0, least = 1e9, most = 0;
    for (int b = 0; b < blocks; ++b) {
        double of = 0;
        for (int w = 0; w < warps; ++w) of += (h[(b * warps + w) * 2 + 1] - h[(b * warps + w) * 2]) / double(steps - 8) / warps;
        sum += of; least = std::min(least, of); most = std::max(most, of);
    }
    printf("[%d, %d, %d, %d, %.1f, %.1f, %.1f],\n", SCOPE, WHAT, blocks, warps, sum / blocks, least, most);
}
template <int STAGES, int BYTES> void rings(int blocks) {
    auto k = ring<STAGES, BYTES>; const int steps = 300, fences = 100;
    cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000);
    double of[2][2] = {};
    for (int with = 0; with < 2; ++with) {
        for (int i = 0; i < 2; ++i) k<<<blocks, 64, STAGES * BYTES>>>(memory, out, steps, with * fences);
        auto h = result(blocks * 4);
        for (int b = 0; b < blocks; ++b) for (int w = 0; w < 2; ++w) of[with][w] += h[(b * 2 + w) * 2 + 1] - h[(b * 2 + w) * 2];
    }
    printf("[\"ring\", %d, %d, %d, %.1f, %.1f, %.1f],\n", STAGES, BYTES, blocks, of[0][0] / blocks / steps, of[1][0] / blocks / steps, of[1][1] / blocks / fences);
}
int main() {
    cudaMalloc(&memory, 1 << 26); cudaMalloc(&out, 1 << 22); cudaMemset(memory, 0, 1 << 26);
#define ALL(W) for (int b : {1, 132}) for (int n : {1, 4, 8, 16}) { go<0, W>(b, n); go<1, W>(b, n); go<2, W>(b, n); go<3, W>(b, n); go<4, W>(b, n); go<5, W>(b, n); go<6, W>(b, n); }
    ALL(NOTHING) ALL(STORE) ALL(ROWS_STORED) ALL(LOAD) ALL(ROWS_LOADED) ALL(SHARED_STORE) ALL(SHARED_LOAD) ALL(REDUCTION) ALL(HIT) ALL(COPY)
    for (int b : {1, 132}) { rings<1, 2048>(b); rings<1, 16384>(b); rings<2, 16384>(b); rings<4, 2048>(b); rings<4, 16384>(b); rings<2, 32768>(b); rings<4, 32768>(b); rings<6, 32768>(b); }
}
#endif
