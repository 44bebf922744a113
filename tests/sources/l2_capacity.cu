// What L2 keeps from one launch to the next, and what DRAM reads and writes: loads and stores of 16 bytes, with what they
// tell L2. Arrays are of M MiB. HOW: 0 nothing, 1 .cs, 2 L1::no_allocate, 3 .lu, 4 a policy of L2::evict_first.
#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstring>
#include <cuda_profiler_api.h>
#endif
template <int HOW> __device__ __forceinline__ uint4 load(const uint4* p) {
    uint4 v;
#define LOAD(OP) asm volatile("ld.global" OP ".v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    if constexpr (HOW == 0) LOAD("")
    if constexpr (HOW == 1) LOAD(".cs")
    if constexpr (HOW == 2) LOAD(".L1::no_allocate")
    if constexpr (HOW == 3) LOAD(".lu")
    if constexpr (HOW == 4)
        asm volatile("{.reg .b64 q; createpolicy.fractional.L2::evict_first.b64 q, 1.0; ld.global.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], q;}" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
template <int HOW> __device__ __forceinline__ void store(uint4* p, uint4 v) {
    if constexpr (HOW == 0) asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
    if constexpr (HOW == 1) asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ uint4 sum(uint4 x, uint4 y) { return make_uint4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w); }
#define HERE int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
template <int S> __global__ void stored(uint4* c, int n) { HERE store<S>(c + i, make_uint4(i, 1, 2, 3)); }
template <int L, int S> __global__ void copied(const uint4* a, uint4* c, int n) { HERE store<S>(c + i, load<L>(a + i)); }
__global__ void added(const uint4* a, const uint4* b, uint4* c, int n) { HERE store<0>(c + i, sum(load<0>(a + i), load<0>(b + i))); }
__global__ void raised(uint4* c, int n) { HERE store<0>(c + i, sum(load<0>(c + i), make_uint4(1, 1, 1, 1))); }
__global__ void added_to(const uint4* a, uint4* c, int n) { HERE store<0>(c + i, sum(load<0>(a + i), load<0>(c + i))); }
// All blocks go through a, and then through b or c.
template <int L> __global__ void read_behind(const uint4* a, const uint4* b, unsigned* out, int n, int more) {
    unsigned s = 0; int g = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = t; i < n; i += g) { uint4 v = load<0>(a + i); s += v.x ^ v.y ^ v.z ^ v.w; }
    for (int i = t; i < more; i += g) { uint4 v = load<L>(b + i); s += v.x ^ v.y ^ v.z ^ v.w; }
    if (s == 12345) *out = s;
}
__global__ void stored_behind(const uint4* a, uint4* c, int n, int more) {
    unsigned s = 0; int g = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = t; i < n; i += g) { uint4 v = load<0>(a + i); s += v.x ^ v.y ^ v.z ^ v.w; }
    for (int i = t; i < more; i += g) store<0>(c + i, make_uint4(s, 1, 2, 3));
}
#ifndef __CUDACC_RTC__
uint4 *A, *B, *C, *OTHER; unsigned* OUT;
constexpr int MIB = 65536;  // elements
// Behind 512 MiB of other data, the launch seven times. The profiler sees the last of them.
template <class F> void go(const char* kernel, int m, int more, F f) {
    for (int i = 0; i < 2; i++) read_behind<0><<<1056, 256>>>(OTHER, OTHER, OUT, 256 * MIB, 0);
    for (int i = 0; i < 6; i++) f();
    cudaDeviceSynchronize(); cudaProfilerStart(); f(); cudaDeviceSynchronize(); cudaProfilerStop();
    printf("%s %d %d%s\n", kernel, m, more, cudaGetLastError() ? " FAILED" : "");
}
int main() {
    for (auto p : {&A, &B, &C, &OTHER}) { cudaMalloc(p, 256 << 20); cudaMemset(*p, 1, 256 << 20); }
    cudaMalloc(&OUT, 4);
#define EACH(...) for (int m : {__VA_ARGS__}) { int n = m * MIB; (void)n;
#define GO(K, ...) go(#K, m, 0, [&] { K<<<n / 256, 256>>>(__VA_ARGS__, n); });
    EACH(8, 16, 24, 28, 32, 36, 40, 44, 48, 56, 64) GO(stored<0>, C) GO(stored<1>, C) }
#define COPIED(L, S) go("copied<" #L "," #S ">", m, 0, [&] { copied<L, S><<<n / 256, 256>>>(A, C, n); });
    EACH(4, 8, 16, 18, 20, 22, 24, 26, 28, 32, 48) COPIED(0, 0) }
    EACH(4, 8, 16, 20, 24, 32) COPIED(1, 0) COPIED(0, 1) COPIED(1, 1) }
    EACH(8, 10, 12, 13, 14, 15, 16, 18, 20, 24, 32) GO(added, A, B, C) }
    EACH(16, 24, 28, 32, 36, 40, 44, 48, 56, 64) GO(raised, C) }
    EACH(12, 16, 18, 20, 22, 24, 28, 32, 48) GO(added_to, A, C) }
#define BEHIND(L) go("read_behind<" #L ">", m, more, [&] { read_behind<L><<<1056, 256>>>(A, B, OUT, n, more * MIB); });
    EACH(0, 8, 16, 32) for (int more : {4, 8, 16, 24, 32, 40, 48, 56, 64}) { BEHIND(0) BEHIND(1) } }
    EACH(0) for (int more : {8, 16, 32}) { BEHIND(2) BEHIND(3) BEHIND(4) } }
    EACH(8, 16, 24, 32) for (int more : {8, 16, 24, 32}) go("stored_behind", m, more, [&] { stored_behind<<<1056, 256>>>(A, C, n, more * MIB); }); }
}
#endif
