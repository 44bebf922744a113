// The first thread of each block writes the number of its SM, and the block waits, so that others find it there:
// tests/records/h200_cluster_places.json.
extern "C" __global__ void cluster_places(unsigned *sm, long long cycles) {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    if (threadIdx.x == 0) sm[blockIdx.y * gridDim.x + blockIdx.x] = number;
    for (long long begun = clock64(); clock64() - begun < cycles;) {}
}
