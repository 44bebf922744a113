// Where the block scheduler puts each block: thread 0 writes the SM's number, and the block stays until the others
// that fit beside it have been placed.
extern "C" __global__ void placement(unsigned *smid, unsigned long long wait_ns)
{
    extern __shared__ char occupied[];
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        unsigned long long start, now;
        unsigned id;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
        smid[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = id;
        do {
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        } while (now - start < wait_ns);
    }
    __syncthreads();
}
