// Bursts of global loads by one block, with a read of the clock behind each. LINES rows a request, each of 128 / LINES
// bytes a lane group; rows PITCH bytes apart. HIT: the same lines again (in L1), else lines that L2 has.
#include <cstdio>
#include <cstdlib>
#include <vector>
typedef unsigned u32;
__device__ __forceinline__ u32 clk() { u32 c; asm volatile("mov.u32 %0, %%clock;" : "=r"(c) :: "memory"); return c; }
template <int N> __global__ void burst(const float* p, int lines, int pitch, int step, u32* out, float* sink, int warm) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, per = 32 / lines;
    const char* mine = (const char*)p + (size_t)(lane / per) * pitch + lane % per * 4 + (size_t)warp * step * N;
    float v[N], s = 0;
    u32 c[N + 1];
    for (int pass = 0; pass < 2; ++pass) {
        if (pass == 0 && !warm) continue;
        __syncthreads();
        c[0] = clk();
#pragma unroll
        for (int i = 0; i < N; ++i) {
            asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v[i]) : "l"(mine + (size_t)i * step) : "memory");
            c[i + 1] = clk();
        }
#pragma unroll
        for (int i = 0; i < N; ++i) s += v[i];
        asm volatile("" :: "f"(s) : "memory");
        __syncwarp();
        u32 end;
        asm volatile("{ .reg .f32 t; add.f32 t, %1, %1; mov.u32 %0, %%clock; }" : "=r"(end) : "f"(s) : "memory");
        if (lane == 0) { for (int i = 0; i <= N; ++i) out[warp * (N + 2) + i] = c[i]; out[warp * (N + 2) + N + 1] = end; }
        __syncthreads();
    }
    if (s == 1.2345f) *sink = s;
}
__global__ void touch(float* p, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = 0; }
int main() {
    const int N = 24;
    float* p; u32* out; float* sink;
    size_t bytes = 64 << 20;
    cudaMalloc(&p, bytes); cudaMalloc(&out, 1 << 20); cudaMalloc(&sink, 4);
    auto show = [&](int lines, int pitch, int step, int warps, int warm) {
        std::vector<u32> h(warps * (N + 2));
        for (int r = 0; r < 3; ++r) {
            touch<<<1024, 256>>>(p, bytes / 4);
            burst<N><<<1, warps * 32>>>(p, lines, pitch, step, out, sink, warm);
            cudaMemcpy(h.data(), out, h.size() * 4, cudaMemcpyDeviceToHost);
        }
        if (cudaGetLastError()) { printf("FAILED\n"); return; }
        printf("[%d, %d, %d, %d, %d, [", lines, pitch, step, warps, warm);
        for (int i = 1; i <= N; ++i) { double m = 0; for (int w = 0; w < warps; ++w) m += h[w * (N + 2) + i] - h[w * (N + 2)]; printf("%s%.0f", i > 1 ? ", " : "", m / warps); }
        double m = 0, most = 0; u32 first = h[0];
        for (int w = 0; w < warps; ++w) if ((int)(h[w * (N + 2)] - first) < 0) first = h[w * (N + 2)];
        for (int w = 0; w < warps; ++w) { m += h[w * (N + 2) + N + 1] - h[w * (N + 2)]; double e = h[w * (N + 2) + N + 1] - first; if (e > most) most = e; }
        printf("], %.0f, %.0f],\n", m / warps, most);
    };
    for (int warm : {1, 0})
        for (int lines : {1, 2, 4, 8, 16, 32})
            for (int warps : {1, 4, 8, 16}) {
                // same bank: rows a multiple of 128 bytes apart
                if (warm) show(lines, 1024, 0, warps, 1);             // all loads the same lines: in L1
                else show(lines, 1024, warps * 24 * 0 + 4096 * 8, warps, 0);  // each load lines of its own
            }
    // hits, rows at other banks: one wavefront
    for (int lines : {2, 4, 8}) for (int warps : {1, 8, 16}) show(lines, 1024 + 128 / lines, 0, warps, 1);
}
