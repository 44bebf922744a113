// What loads that hit L1 and loads that miss it cost an SM, by their width, their lines and their conflicts.
// clang-format off
#include <cstdint>
__device__ __forceinline__ long long now() { long long t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory"); return t; }
__device__ __forceinline__ float sum(unsigned char v) { return v; } __device__ __forceinline__ float sum(unsigned short v) { return v; } __device__ __forceinline__ float sum(float v) { return v; }
__device__ __forceinline__ float sum(float2 v) { return v.x + v.y; } __device__ __forceinline__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ float load(const char* p) { float v; asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p)); return v; }
// When each warp began and ended. Behind a barrier warps read the clock before it opens; so there are two.
__device__ __forceinline__ void keep(long long* times, long long begin, long long end) { if (threadIdx.x % 32 == 0) { long long* t = times + ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 2; t[0] = begin; t[1] = end; } }

// Each warp goes through memory of its own, U loads at once, STEP bytes apart; lane l loads word l % lanes of each. HIT: all warps load the same 2 U steps over and over.
template <typename T, int STEP, int U, int HIT>
__global__ void __launch_bounds__(1024) streams(const char* a, int lanes, int passes, long long* times, float* out) {
    const int row = HIT ? 0 : (blockIdx.x * blockDim.x + threadIdx.x) / 32; float s = 0; a += (size_t)row * passes * STEP * U + threadIdx.x % 32 % lanes * sizeof(T);
    if (HIT) { for (int u = 0; u < 2 * U; u++) s += sum(*(const T*)(a + u * STEP)); out[threadIdx.x] = s; __syncthreads(); __syncthreads(); }
    const long long begin = now();
#pragma unroll 1
    for (int p = 0; p < passes; p++, a += HIT && p % 2 == 0 ? -STEP * U : STEP * U) { T v[U];
#pragma unroll
        for (int u = 0; u < U; u++) v[u] = *(const T*)(a + u * STEP);
#pragma unroll
        for (int u = 0; u < U; u++) s += sum(v[u]); }
    const long long end = now(); out[blockIdx.x * blockDim.x + threadIdx.x] = s; keep(times, begin, end); }

// Each warp loads LOADS times at once, so many lines with one word of each in the same bank, and waits for all; hits go round 16 KiB, misses go on.
template <int LOADS, int HIT>
__global__ void __launch_bounds__(1024) lines(const char* a, int lines, int passes, long long* times, float* out) {
    const int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32; float s = 0; a += lane * lines / 32 * 128 + (HIT ? 0 : (size_t)warp * passes * LOADS * lines * 128);
    if (HIT) { for (int k = 0; k < 32; k++) s += load(a + k * 512 % 16384); out[threadIdx.x] = s; __syncthreads(); __syncthreads(); }
    const long long begin = now();
#pragma unroll 1
    for (int p = 0; p < passes; p++) { float v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) v[k] = load(a + (HIT ? (p + k) % 8 * 512 : k * lines * 128));
        if (!HIT) a += LOADS * lines * 128;
#pragma unroll
        for (int k = 0; k < LOADS; k++) s += v[k]; }
    const long long end = now(); out[blockIdx.x * blockDim.x + threadIdx.x] = s; keep(times, begin, end); }

// A thread a row of its own, `stride` bytes apart, U words at once.
template <int U>
__global__ void __launch_bounds__(1024) own_rows(const char* a, int stride, int words, long long* times, float* out) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x; a += (size_t)thread * stride; float s = 0; const long long begin = now();
#pragma unroll 1
    for (int k = 0; k < words; k += U) { float v[U];
#pragma unroll
        for (int u = 0; u < U; u++) v[u] = load(a + 4 * (k + u));
#pragma unroll
        for (int u = 0; u < U; u++) s += v[u]; }
    const long long end = now(); out[thread] = s; keep(times, begin, end); }
