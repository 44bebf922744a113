// One warp fills shared memory with asynchronous copies; the other warps of the block wait for it at an mbarrier, twice.

__device__ void wait(unsigned barrier, unsigned long long token) {
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(barrier), "l"(token) : "memory");
}

// in [2, 32], out [2, threads]: of each of two rounds what lane t of the first warp has copied, plus the warp's number
extern "C" __global__ void handover(const unsigned *in, unsigned *out) {
    __shared__ unsigned tile[32];
    __shared__ unsigned long long full, empty;
    unsigned full_at = (unsigned)__cvta_generic_to_shared(&full), empty_at = (unsigned)__cvta_generic_to_shared(&empty);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, threads = blockDim.x;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(full_at), "r"(threads));
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(empty_at), "r"(threads));
    }
    __syncthreads();
    for (int round = 0; round < 2; round++) {
        unsigned long long token;
        if (warp == threads / 32 - 1) {  // the last warp produces, so that the others really wait
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                :: "r"((unsigned)__cvta_generic_to_shared(tile + lane)), "l"(in + round * 32 + lane) : "memory");
            asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(full_at) : "memory");
        }
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(full_at) : "memory");
        wait(full_at, token);
        out[round * threads + threadIdx.x] = tile[lane] + warp;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(empty_at) : "memory");
        wait(empty_at, token);
    }
}

// in and out [threads, 8]: what each thread loads in one access of 256 bits, stored again with its words in order
#if __CUDA_ARCH__ >= 1000
extern "C" __global__ void wide(const unsigned *in, unsigned *out) {
    unsigned a[8];
    asm volatile("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]), "=r"(a[4]), "=r"(a[5]), "=r"(a[6]), "=r"(a[7])
        : "l"(in + threadIdx.x * 8));
    out[256 + threadIdx.x] = a[5];
    asm volatile("st.global.v8.b32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};"
        :: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
           "l"(out + threadIdx.x * 8));
}
#endif
