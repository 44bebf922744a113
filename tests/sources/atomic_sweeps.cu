// Warps that add rows of theirs to the same row of memory, which they go through from its beginning, or each from a place of its own.
// clang-format off
// LOADS: of how many floats of its own row each step's addends are the sum. shift: block b begins b * shift lines further on.
template <typename T, int LOADS>
__global__ void atomic_sweep(const T* rows, T* sums, int lines, int shift) {
    const int lane = threadIdx.x % 32, warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; const T* row = rows + (size_t)warp * LOADS * lines * 32; int at = (long long)blockIdx.x * shift % lines;
#pragma unroll 1
    for (int i = 0; i < lines; i++) { T v = 1;
#pragma unroll
        for (int k = 0; k < LOADS; k++) v += row[(i * LOADS + k) * 32 + lane];
        atomicAdd(sums + at * 32 + lane, v); at = at + 1 == lines ? 0 : at + 1; } }
