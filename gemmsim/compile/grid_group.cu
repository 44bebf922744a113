// What numba's cuda.cg.this_grid() and its sync() call. The blocks count themselves at the word behind the first of the
// grid's workspace. One of them adds what is missing to 2**31, so that the counter's top bit turns once all have come.

extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(cudaCGScope) {
    unsigned high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    return static_cast<unsigned long long>(high) << 32 | low;
}

extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long grid, unsigned) {
    __syncthreads();
    if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {
        unsigned *arrived = reinterpret_cast<unsigned *>(grid) + 1;
        const bool first = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
        const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
        __threadfence();
        const unsigned before = atomicAdd(arrived, first ? 0x80000000u - others : 1u);
        while (((before ^ *static_cast<volatile unsigned *>(arrived)) & 0x80000000u) == 0) {}
        __threadfence();
    }
    __syncthreads();
    return cudaSuccess;
}
