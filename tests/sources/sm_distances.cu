// How far SMs are from each other, by the clock before each step: tests/records/h200_sm_distances.json. Each warp reads LINES lines of A
// by its block's row and of B by its column in each step, of the next step with AHEAD, and multiplies for a while.
#include <cstdio>
#include <cstdlib>
#include <vector>
template <int LINES, bool AHEAD>
__global__ void __launch_bounds__(1024) walk(const float *a, const float *b, float *out, long long *t, unsigned *where, int steps, int columns, int work) {
    int warps = blockDim.x / 32, w = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float *pa = a + ((size_t)(blockIdx.x / columns) * steps * warps + w) * 32 * LINES + lane;
    const float *pb = b + ((size_t)(blockIdx.x % columns) * steps * warps + w) * 32 * LINES + lane;
    size_t step = (size_t)warps * 32 * LINES;
    float acc[8], x[LINES], y[LINES], nx[LINES], ny[LINES];
    for (int i = 0; i < 8; i++) acc[i] = i;
    for (int l = 0; l < LINES; l++) { nx[l] = __ldcg(pa + l * 32); ny[l] = __ldcg(pb + l * 32); }
    if (threadIdx.x == 0) { unsigned id; asm("mov.u32 %0, %%smid;" : "=r"(id)); where[blockIdx.x] = id; }
    for (int s = 0; s < steps; s++) {
        if (threadIdx.x == 0) t[(size_t)blockIdx.x * steps + s] = clock64();
        if (AHEAD) for (int l = 0; l < LINES; l++) { x[l] = nx[l]; y[l] = ny[l]; }
        int at = AHEAD ? (s + 1 < steps ? s + 1 : s) : s;
        for (int l = 0; l < LINES; l++) { nx[l] = __ldcg(pa + at * step + l * 32); ny[l] = __ldcg(pb + at * step + l * 32); }
        if (!AHEAD) for (int l = 0; l < LINES; l++) { x[l] = nx[l]; y[l] = ny[l]; }
        float p = 0, q = 0;
        for (int l = 0; l < LINES; l++) { p += x[l]; q += y[l]; }
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < work; k++)
#pragma unroll
            for (int i = 0; i < 64; i++) acc[i % 8] = fmaf(acc[i % 8], p, q);
        __syncthreads();
    }
    float sum = 0; for (int i = 0; i < 8; i++) sum += acc[i];
    out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
int main() {
    float *a, *b, *o; long long *t; unsigned *w; const int steps = 96, columns = 11; char *flush;
    cudaMalloc(&a, (size_t)1 << 30); cudaMalloc(&b, (size_t)1 << 30); cudaMalloc(&o, 1 << 24); cudaMalloc(&t, 132 * steps * 8); cudaMalloc(&w, 132 * 4); cudaMalloc(&flush, (size_t)1 << 29);
    cudaMemset(a, 0, (size_t)1 << 30); cudaMemset(b, 0, (size_t)1 << 30);
    std::vector<long long> T(132 * steps); std::vector<unsigned> W(132);
    for (int lines : {1, 4, 8}) for (int ahead = 0; ahead < 2; ahead++) for (int warps : {4, 8}) for (int work : {4, 24}) for (int cold = 0; cold < 2; cold++) {
        auto f = lines == 1 ? (ahead ? walk<1, true> : walk<1, false>) : lines == 4 ? (ahead ? walk<4, true> : walk<4, false>) : (ahead ? walk<8, true> : walk<8, false>);
        cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024);
        for (int k = 0; k < 2; k++) { if (cold) cudaMemset(flush, k, (size_t)1 << 29); f<<<132, warps * 32, 219 * 1024>>>(a, b, o, t, w, steps, columns, work); }
        cudaError_t e = cudaDeviceSynchronize();
        cudaMemcpy(T.data(), t, T.size() * 8, cudaMemcpyDeviceToHost); cudaMemcpy(W.data(), w, W.size() * 4, cudaMemcpyDeviceToHost);
        printf("cfg %d %d %d %d %d %s\n", lines, ahead, warps, work, cold, cudaGetErrorString(e));
        for (int i = 0; i < 132; i++) { printf("%u", W[i]); for (int s = 0; s < steps; s++) printf(" %lld", T[i * steps + s]); printf("\n"); }
    }
}
