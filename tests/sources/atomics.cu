// What atomic operations cost: tests/records/h200_atomics.json. Each warp executes `count` of them in a row; the lanes of `mask` take
// part. The element that a lane uses is   (warp * by_warp + time * by_time) % wrap + lane * by_lane % lanes_wrap.
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <algorithm>
#include <vector>
enum { ADD_I, ADD_F, ADD_H2, ADD_D, MAX_I, CAS_I, EXCH_I, ADD_L, RETURN_I, RETURN_F };
const char* NAMES[] = {"add int", "add float", "add half2", "add double", "max int", "cas int", "exch int", "add int64", "add int, returned", "add float, returned"};
template <int OP> __device__ __forceinline__ float op(char* p, long long i, float v, int k) {
    if (OP == ADD_I) atomicAdd((int*)p + i, k);
    if (OP == ADD_F) atomicAdd((float*)p + i, v);
    if (OP == ADD_H2) atomicAdd((half2*)p + i, __floats2half2_rn(v, v));
    if (OP == ADD_D) atomicAdd((double*)p + i, (double)v);
    if (OP == MAX_I) atomicMax((int*)p + i, k);
    if (OP == CAS_I) return atomicCAS((int*)p + i, k, k + 1);
    if (OP == EXCH_I) return atomicExch((int*)p + i, k);
    if (OP == ADD_L) atomicAdd((unsigned long long*)p + i, (unsigned long long)k);
    if (OP == RETURN_I) return atomicAdd((int*)p + i, k);
    if (OP == RETURN_F) return atomicAdd((float*)p + i, v);
    return 0;
}
template <int OP> __global__ void global_atomics(char* p, int count, unsigned mask, int by_warp, int by_time, int wrap, int by_lane, int lanes_wrap, float* out) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32; float s = 0; int at = (lane * by_lane) % lanes_wrap;
    if (mask >> lane & 1) {
        unsigned i = (unsigned)(warp * by_warp);
#pragma unroll 4
        for (int t = 0; t < count; t++) { s += op<OP>(p, (i & (wrap - 1)) + at, 1.f, 1 + (t & 3) + lane); i += by_time; }
    }
    if (s == 12345.f) out[0] = s;
}
// a lane uses word (lane / share) * apart of the block's shared memory, each warp the same or its own
template <int OP> __global__ void shared_atomics(int count, int share, int apart, int own, long long* t, float* out) {
    __shared__ __align__(16) char s[32768]; for (int i = threadIdx.x; i < 8192; i += blockDim.x) ((int*)s)[i] = 0;
    __syncthreads(); int lane = threadIdx.x % 32, warp = threadIdx.x / 32; long long i = ((lane / share) * apart + own * warp * 32) % 1024; float r = 0; long long begin = clock64();
#pragma unroll 4
    for (int k = 0; k < count; k++) r += op<OP>(s, i, 1.f, 1 + (k & 3) + lane);
    __syncthreads(); long long end = clock64(); if (threadIdx.x == 0) t[blockIdx.x] = end - begin; if (r == 12345.f) out[0] = r;
}
int repetitions = 5; char* p; float* out; long long* t; cudaEvent_t e0, e1;
template <int OP> void g(const char* what, int blocks, int warps, int count, unsigned mask, int by_warp, int by_time, int wrap, int by_lane = 1, int lanes_wrap = 1 << 20) {
    std::vector<float> all;
    for (int k = 0; k < repetitions; k++) { cudaEventRecord(e0); global_atomics<OP><<<blocks, warps * 32>>>(p, count, mask, by_warp, by_time, wrap, by_lane, lanes_wrap, out); cudaEventRecord(e1); cudaEventSynchronize(e1); float ms; cudaEventElapsedTime(&ms, e0, e1); all.push_back(ms * 1e6); }
    std::sort(all.begin(), all.end()); all.resize(5, all[0]); double n = (double)blocks * warps * count;
    printf("global|%s|%s|%d|%d|%d|%x|%d|%d|%d|%d|%d|%.0f|%.4f\n", NAMES[OP], what, blocks, warps, count, mask, by_warp, by_time, wrap, by_lane, lanes_wrap, all[2], all[2] / n);
}
template <int OP> void all_global() {
    const unsigned ALL = ~0u; const int BIG = 1 << 22;
    g<OP>("one lane, one address", 132, 8, 256, 1, 0, 0, BIG); g<OP>("one lane, one address", 132, 1, 256, 1, 0, 0, BIG); g<OP>("one lane, one address", 1, 1, 1024, 1, 0, 0, BIG); g<OP>("one lane, one address", 1, 8, 1024, 1, 0, 0, BIG); g<OP>("one lane, one address", 16, 8, 512, 1, 0, 0, BIG);
    for (int k : {2, 4, 8, 32, 128, 1024}) g<OP>("one lane, words of neighbours", 132, 8, 256, 1, 1, 1, k);
    for (int k : {2, 8, 64, 1024, 16384}) g<OP>("one lane, lines", 132, 8, 256, 1, 32, 32, k * 32);
    for (int k : {2, 4, 16}) g<OP>("one lane, sectors of a line", 132, 8, 256, 1, 8, 8, k * 8);
    for (int lanes : {2, 4, 8, 16, 32}) g<OP>("so many lanes, one address", 132, 8, 64, lanes == 32 ? ALL : (1u << lanes) - 1, 0, 0, BIG, 0);
    for (int lanes : {2, 4, 8, 16, 32}) g<OP>("so many lanes, one line", 132, 8, 64, lanes == 32 ? ALL : (1u << lanes) - 1, 0, 0, BIG, 1);
    for (int k : {1, 2, 8, 64, 1024, 16384}) g<OP>("all lanes, so many lines", 132, 8, 64, ALL, 32, 32, k * 32);
    g<OP>("all lanes, own lines", 132, 8, 256, ALL, 32 * 256, 32, BIG); g<OP>("all lanes, own lines", 132, 32, 64, ALL, 32 * 64, 32, BIG); g<OP>("all lanes, own lines", 1, 8, 256, ALL, 32 * 256, 32, BIG); g<OP>("all lanes, own lines", 16, 8, 256, ALL, 32 * 256, 32, BIG); g<OP>("all lanes, own lines", 132, 1, 256, ALL, 32 * 256, 32, BIG);
    g<OP>("one lane a sector", 132, 8, 64, 0x01010101, 32 * 64, 32, BIG); g<OP>("all lanes, sectors of their own", 132, 8, 64, ALL, 8 * 32 * 64, 8 * 32, BIG, 8); g<OP>("all lanes, lines of their own", 132, 8, 64, ALL, 32 * 32 * 64, 32 * 32, BIG, 32);
    for (int w : {2, 4, 8, 16}) g<OP>("so many words of a line by all lanes", 132, 8, 64, ALL, 0, 0, BIG, 1, w);
    for (int w : {2, 4, 8, 16}) g<OP>("so many words by all lanes, own lines", 132, 8, 64, ALL, 32 * 64, 32, BIG, 1, w);
}
template <int OP> void all_shared() {
    for (int warps : {1, 4, 8, 32}) for (int own = 0; own < 2; own++) for (int share : {1, 2, 4, 8, 32}) for (int apart : {1, 2, 8, 32}) {
        if (share > 1 && apart > 1) continue; const int count = 64; long long h[132];
        for (int k = 0; k < 2; k++) shared_atomics<OP><<<132, warps * 32>>>(count, share, apart, own, t, out);
        cudaMemcpy(h, t, sizeof h, cudaMemcpyDeviceToHost); std::sort(h, h + 132);
        printf("shared|%s|%d|%d|%d|%d|%d|%lld|%.2f\n", NAMES[OP], warps, own, share, apart, count, h[66], (double)h[66] / count / warps);
    }
}
int main(int argc, char** argv) { if (argc > 1) repetitions = atoi(argv[1]);
    cudaMalloc(&p, 1 << 28); cudaMemset(p, 0, 1 << 28); cudaMalloc(&out, 4); cudaMalloc(&t, 132 * 8); cudaEventCreate(&e0); cudaEventCreate(&e1);
    all_global<ADD_I>(); all_global<ADD_F>(); all_global<ADD_H2>(); all_global<ADD_D>(); all_global<MAX_I>(); all_global<CAS_I>(); all_global<EXCH_I>(); all_global<ADD_L>(); all_global<RETURN_I>(); all_global<RETURN_F>();
    all_shared<ADD_I>(); all_shared<ADD_F>(); all_shared<MAX_I>(); all_shared<CAS_I>(); all_shared<EXCH_I>(); all_shared<ADD_L>(); all_shared<RETURN_I>(); all_shared<RETURN_F>(); all_shared<ADD_H2>(); all_shared<ADD_D>();
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
