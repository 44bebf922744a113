// Warps that go through rows of memory, 32 * WIDTH floats at a time, TOGETHER neighbouring warps side by side in each row:
// tests/records/h200_row_streams.json.
// AHEAD loads are on their way at once. With WRITES each piece is stored to another array, too.
#include <cstdio>
#include <cstdlib>
#include <algorithm>
template <int WIDTH> __device__ __forceinline__ float get(const float* p, float (&x)[4]) {
    if (WIDTH == 1) { x[0] = *p; return x[0]; }
    float4 v = *(const float4*)p; x[0] = v.x; x[1] = v.y; x[2] = v.z; x[3] = v.w; return x[0] + x[1] + x[2] + x[3];
}
template <int WIDTH, int AHEAD, int WRITES> __global__ void row_streams(const float* a, float* b, int row, int steps, int together, float* out) {
    size_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; int lane = threadIdx.x % 32; float s = 0;
    size_t begin = warp / together * row + warp % together * 32 * WIDTH + lane * WIDTH; const float* p = a + begin; float* q = b + begin;
#pragma unroll 1
    for (int t = 0; t < steps; t += AHEAD) {
        float x[AHEAD][4], sum = 0;
#pragma unroll
        for (int k = 0; k < AHEAD; k++) sum += get<WIDTH>(p + k * 32 * WIDTH * together, x[k]);
        s += sum; int more = s == 12345.f ? 1 : 0;  // the next loads wait for these
#pragma unroll
        for (int k = 0; k < AHEAD; k++) if (WRITES) { if (WIDTH == 1) q[k * 32 * together + more] = x[k][0]; else *(float4*)(q + k * 128 * together + 4 * more) = make_float4(x[k][0], x[k][1], x[k][2], x[k][3]); }
        p += AHEAD * 32 * WIDTH * together + more; q += AHEAD * 32 * WIDTH * together;
    }
    if (s == 12345.f) out[0] = s;
}
float *a, *b, *out; char* flush; cudaEvent_t e0, e1;
template <int WIDTH, int AHEAD, int WRITES> void one(int row, int warps, int steps, int together) {  // row in floats; warps of an SM
    int blocks = warps > 8 ? 132 * (warps / 8) : 132, per = std::min(warps, 8); float ms[5];
    for (int k = 0; k < 5; k++) {
        cudaMemset(flush, k, 256 << 20); cudaEventRecord(e0);
        row_streams<WIDTH, AHEAD, WRITES><<<blocks, per * 32>>>(a, b, row, steps, together, out);
        cudaEventRecord(e1); cudaEventSynchronize(e1); cudaEventElapsedTime(&ms[k], e0, e1);
    }
    std::sort(ms, ms + 5);
    printf("rows|%d|%d|%d|%d|%d|%d|%d|%.3f\n", WIDTH, AHEAD, WRITES, row, warps, steps, together, ms[2] * 1e3);
}
template <int WIDTH, int AHEAD, int WRITES> void all() {
    for (int warps : {1, 4, 8, 16, 32, 48}) one<WIDTH, AHEAD, WRITES>(16384, warps, 64, 1);
    for (int warps : {16, 32, 48}) for (int together : {2, 8, 32, 132, 528, 2112}) one<WIDTH, AHEAD, WRITES>(64 * 32 * WIDTH * together, warps, 64, together);
    for (int warps : {16, 32}) one<WIDTH, AHEAD, WRITES>(16384 + 64, warps, 64, 1);
}
int main() {
    cudaMalloc(&a, (size_t)1 << 30); cudaMalloc(&b, (size_t)1 << 30); cudaMalloc(&out, 4); cudaMalloc(&flush, 256 << 20); cudaMemset(a, 0, (size_t)1 << 30); cudaEventCreate(&e0); cudaEventCreate(&e1);
    all<1, 1, 0>(); all<1, 4, 0>(); all<4, 1, 0>(); all<1, 1, 1>(); all<4, 1, 1>();
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
