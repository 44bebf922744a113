// Stores of a thread's few bytes one after another: what L1 sends to L2, and how fast. Thread i writes COUNT pieces of W
// bytes to OFF + i * STRIDE bytes and what follows it.
#ifndef __CUDACC_RTC__
#include <cstdio>
#endif
template <int W> struct Piece; template <> struct Piece<1> { typedef unsigned char T; }; template <> struct Piece<2> { typedef unsigned short T; }; template <> struct Piece<4> { typedef unsigned T; }; template <> struct Piece<8> { typedef uint2 T; }; template <> struct Piece<16> { typedef uint4 T; };
template <class T> __device__ __forceinline__ T value(unsigned x) { return (T)x; }
template <> __device__ __forceinline__ uint2 value(unsigned x) { return make_uint2(x, x); }
template <> __device__ __forceinline__ uint4 value(unsigned x) { return make_uint4(x, x, x, x); }
template <int W, int STRIDE, int COUNT, int APART, int OFF = 0> __global__ void __launch_bounds__(256) pieces(char* out, unsigned x) {
    char* mine = out + OFF + ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * STRIDE;
    unsigned y = x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        *(typename Piece<W>::T*)(mine + i * W) = value<typename Piece<W>::T>(y);
        for (int a = 0; a < APART; ++a) asm volatile("mul.lo.u32 %0, %0, 3;" : "+r"(y));
    }
}
// The same by the first LANES lanes of each warp alone, whose pieces lie one behind the other.
template <int W, int STRIDE, int COUNT, int LANES> __global__ void __launch_bounds__(256) lanes(char* out, unsigned x) {
    if (threadIdx.x % 32 >= LANES) return;
    char* mine = out + ((size_t)(blockIdx.x * blockDim.x + threadIdx.x) / 32 * LANES + threadIdx.x % 32) * STRIDE;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if constexpr (W == 4) asm volatile("st.global.u32 [%0], %1;" :: "l"(mine + i * W), "r"(x) : "memory");
        if constexpr (W == 2) asm volatile("st.global.u16 [%0], %1;" :: "l"(mine + i * W), "h"((unsigned short)x) : "memory");
        if constexpr (W == 1) asm volatile("st.global.u8 [%0], %1;" :: "l"(mine + i * W), "r"(x) : "memory");
    }
}
// Each thread loads 16 bytes, and then writes COUNT pieces of W bytes one behind the other, with WORK multiplications behind each.
template <int W, int COUNT, int WORK> __global__ void loaded(const char* in, char* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = *(const uint4*)(in + (size_t)i * 16); unsigned s = v.x + v.y + v.z + v.w;
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            char* p = out + ((size_t)i * COUNT + e) * W;
            if constexpr (W == 1) asm volatile("st.global.u8 [%0], %1;" :: "l"(p), "r"(s) : "memory");
            if constexpr (W == 2) asm volatile("st.global.u16 [%0], %1;" :: "l"(p), "h"((unsigned short)s) : "memory");
            if constexpr (W == 4) asm volatile("st.global.u32 [%0], %1;" :: "l"(p), "r"(s) : "memory");
            if constexpr (W == 8) asm volatile("st.global.v2.u32 [%0], {%1,%2};" :: "l"(p), "r"(s), "r"(s) : "memory");
            if constexpr (W == 16) asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(s), "r"(s), "r"(s), "r"(s) : "memory");
#pragma unroll
            for (int w = 0; w < WORK; ++w) asm volatile("mul.lo.u32 %0, %0, 3;" : "+r"(s));
        }
    }
}
#ifndef __CUDACC_RTC__
template <int W, int STRIDE, int COUNT, int APART, int OFF = 0> void go(char* out, int blocks, int threads) {
    cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); float best = 1e9, ms;
    for (int r = 0; r < 5; ++r) { cudaEventRecord(a); for (int q = 0; q < 4; ++q) pieces<W, STRIDE, COUNT, APART, OFF><<<blocks, threads>>>(out, r); cudaEventRecord(b); cudaEventSynchronize(b); cudaEventElapsedTime(&ms, a, b); if (ms < best) best = ms; }
    double n = (double)blocks * threads;
    printf("[%d, %d, %d, %d, %d, %d, %.2f], sectors touched %.0f, requests x sectors %.0f\n", W, STRIDE, COUNT, APART, blocks, threads, best * 250, n * STRIDE / 32, n / 32 * COUNT * (STRIDE >= 32 ? 32 : STRIDE));
    if (cudaGetLastError()) puts("FAILED");
}
int main() {
    char* out; cudaMalloc(&out, 256 << 20); cudaMemset(out, 0, 256 << 20);
#define ALL(W, S, C) go<W, S, C, 0>(out, 4096, 256); go<W, S, C, 0>(out, 1, 32); go<W, S, C, 0>(out, 132, 256);
    ALL(4, 4, 1) ALL(2, 4, 2) ALL(4, 8, 2) ALL(2, 8, 4) ALL(1, 4, 4) ALL(4, 16, 4) ALL(2, 16, 8) ALL(8, 16, 2) ALL(4, 32, 8) ALL(8, 32, 4) ALL(16, 32, 2) ALL(4, 16, 2) ALL(4, 12, 3) ALL(8, 64, 8) ALL(16, 64, 4) ALL(4, 64, 16)
    go<4, 16, 4, 8>(out, 4096, 256); go<4, 16, 4, 64>(out, 4096, 256); go<4, 16, 4, 8>(out, 132, 32); go<4, 16, 4, 64>(out, 132, 32); go<4, 16, 4, 256>(out, 132, 32);
#define LANES(W, S, C, L) for (int t : {32, 64, 128, 256}) lanes<W, S, C, L><<<1, t>>>(out, 1); for (int b : {132, 1056}) lanes<W, S, C, L><<<b, 256>>>(out, 1);
    LANES(4, 4, 1, 32) LANES(4, 8, 2, 32) LANES(4, 16, 4, 32) LANES(4, 24, 6, 32) LANES(4, 28, 7, 32) LANES(4, 32, 8, 32) LANES(4, 64, 16, 32) LANES(4, 128, 32, 32)
    LANES(4, 96, 24, 8) LANES(4, 64, 16, 8) LANES(4, 48, 12, 16) LANES(4, 128, 32, 4) LANES(4, 128, 32, 1)
    LANES(2, 4, 2, 32) LANES(2, 8, 4, 32) LANES(2, 16, 8, 32) LANES(2, 32, 16, 32) LANES(2, 32, 16, 8) LANES(1, 4, 4, 32) LANES(1, 8, 8, 32) LANES(1, 16, 16, 32) LANES(1, 16, 16, 8)
#define SHIFTED(W, S, C, O) go<W, S, C, 0, O>(out, 4096, 256); go<W, S, C, 8, O>(out, 4096, 256); go<W, S, C, 0, O>(out, 1, 32); go<W, S, C, 0, O>(out, 132, 256);
    char* in; cudaMalloc(&in, 16 << 20); cudaMemset(in, 1, 16 << 20);
#define LOADED(W, C) loaded<W, C, 0><<<4096, 256>>>(in, out, 1 << 20); loaded<W, C, 0><<<528, 256>>>(in, out, 135168); loaded<W, C, 0><<<132, 256>>>(in, out, 33792); loaded<W, C, 8><<<4096, 256>>>(in, out, 1 << 20); loaded<W, C, 0><<<1056, 256>>>(in, out, 1 << 20);
    LOADED(4, 2) LOADED(4, 3) LOADED(4, 4) LOADED(4, 5) LOADED(4, 6) LOADED(4, 7) LOADED(4, 8) LOADED(8, 2) LOADED(8, 3) LOADED(8, 4) LOADED(16, 2) LOADED(2, 2) LOADED(2, 3) LOADED(2, 4) LOADED(2, 6) LOADED(2, 8) LOADED(1, 4) LOADED(1, 8) LOADED(1, 16) LOADED(4, 16)
    SHIFTED(4, 16, 4, 0) SHIFTED(4, 16, 4, 16) SHIFTED(4, 16, 4, 64) SHIFTED(4, 16, 2, 16) SHIFTED(4, 20, 5, 0) SHIFTED(4, 24, 6, 0) SHIFTED(4, 28, 7, 0) SHIFTED(4, 24, 3, 0)
}
#endif
