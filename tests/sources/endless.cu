// Kernels that may never end.

extern "C" __global__ void cycle(float *c, int n) {  // [cycle]
    __shared__ float s[64];
    unsigned x = threadIdx.x;
    s[x & 63] = 1.0f;
    __syncthreads();
    if (threadIdx.x < 32) return;
    float y;
    do {
        y = s[(x + 1) & 15];
        x = (x + 1) & 15;
    } while (y != 3.0f);  // [again]
    c[x] = y;
}

// Two warps in turn, neither of which executes much between barriers.
extern "C" __global__ void meet(unsigned *c, unsigned n) {
    unsigned x = 0;
    for (unsigned i = 0; i < n; ++i) {
        __syncthreads();
        x = (x * 1664525u + threadIdx.x) | 1u;
    }
    c[threadIdx.x] = x;
}
