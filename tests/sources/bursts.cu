// Blocks that load a piece of memory at once, wait for all of it and compute, over and over. Timed on an H200: tests/records/h200_bursts.json.
// Block b reads pieces of LOADS * T * 16 bytes, 16 bytes a load of T threads, in turn from `span` words of 16 bytes of its own, a
// power of two. log: cycles of a block, those that it waited, and those of the first quarter of the steps.
template <int LOADS, int T>
__global__ void __launch_bounds__(T) bursts(const float4* data, long long span, int steps, int work, float* out, long long* log) {
  extern __shared__ float4 room[];
  float x = threadIdx.x, y = 1.5f;
  const float4* at = data + (long long)blockIdx.x * span;
  long long t0 = clock64(), waited = 0, quarter = 0;
  for (int i = 0; i < steps; i++) {
    long long a = clock64();
    const float4* here = at + (((long long)i * LOADS * T) & (span - 1)) + threadIdx.x;
    float4 got[LOADS];
#pragma unroll
    for (int n = 0; n < LOADS; n++) { const float4* p = here + n * T; asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(got[n].x), "=f"(got[n].y), "=f"(got[n].z), "=f"(got[n].w) : "l"(p)); }
    float s = 0;
#pragma unroll
    for (int n = 0; n < LOADS; n++) s += got[n].x + got[n].y + got[n].z + got[n].w;
    x += s;
    __syncthreads();
    long long b = clock64(); waited += b - a; if (i == steps / 4) quarter = waited;
    for (int j = 0; j < work; j++) x = x * y + 0.5f;
    __syncthreads();
  }
  long long t1 = clock64();
  out[blockIdx.x * T + threadIdx.x] = x;
  if (threadIdx.x == 0) { log[blockIdx.x * 3] = t1 - t0; log[blockIdx.x * 3 + 1] = waited; log[blockIdx.x * 3 + 2] = quarter; }
}
