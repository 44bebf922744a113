// How fast L2 answers requests of one to four sectors of a line: tests/records/h200_l2_requests.json. Each load of a warp asks for LINES lines,
// SECTORS of each, past L1; the lines of all warps are spread over `bytes` of memory, each of which is read by one warp.
#include <cstdio>
#include <algorithm>
template <int LINES, int SECTORS> __global__ void __launch_bounds__(1024) requests(const float* a, float* out, int loads, int passes, int which) {
    int lane = threadIdx.x % 32; size_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; float s = 0;
    const int per_line = 32 / LINES, line = lane / per_line, word = lane % per_line;
    const float* p = a + warp * loads * LINES * 32 + line * 32 + (word * SECTORS / per_line + which) % 4 * 8 + word % 8;
    for (int k = 0; k < passes; k++)
#pragma unroll 4
        for (int t = 0; t < loads; t++) s += __ldcg(p + (size_t)t * LINES * 32);
    if (s == 12345.f) out[0] = s;
}
float *a, *out; cudaEvent_t e0, e1;
template <int LINES, int SECTORS> void one(int blocks, int warps, int loads) {
    float ms[5]; const int passes = 8;
    for (int k = 0; k < 5; k++) { cudaEventRecord(e0); requests<LINES, SECTORS><<<blocks, warps * 32>>>(a, out, loads, passes, 0); cudaEventRecord(e1); cudaEventSynchronize(e1); cudaEventElapsedTime(&ms[k], e0, e1); }
    std::sort(ms, ms + 5); double n = (double)blocks * warps * loads * passes;
    printf("requests|%d|%d|%d|%d|%d|%d|%.2f|%.3f|%.1f\n", LINES, SECTORS, blocks, warps, loads, passes, ms[2] * 1e3, ms[2] * 1e6 / n / LINES * 132 / std::min(blocks, 132), n * LINES * SECTORS * 32 / (ms[2] * 1e6));
}
template <int LINES, int SECTORS> void all() { for (int blocks : {132, 264, 66, 16}) for (int warps : {8, 32}) one<LINES, SECTORS>(blocks, warps, std::min(256, 200000 / LINES / (blocks * warps) / 4 * 4)); }
int main() {
    cudaMalloc(&a, 128 << 20); cudaMalloc(&out, 4); cudaMemset(a, 0, 128 << 20); cudaEventCreate(&e0); cudaEventCreate(&e1);
    all<1, 4>(); all<1, 2>(); all<1, 1>(); all<2, 4>(); all<2, 2>(); all<2, 1>(); all<4, 1>(); all<8, 1>(); all<32, 1>();
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
