// Blocks that read the same tiles step by step, as those of a GEMM do, and work on each. Timed on an H200: tests/records/h200_shared_streams.json.
// Block b reads the tiles of stream b / sharing: one of 4 KiB a step, 16 bytes a thread of 256. waited: cycles from a
// step's loads to the barrier behind them, summed over the steps; begun: the GPU's clock when the block began.
extern "C" __global__ void __launch_bounds__(256) shared_streams(const float4* tiles, int sharing, int steps, int work, float* out,
                                          long long* waited, unsigned* sm, long long* begun) {
  __shared__ float4 tile[256];
  extern __shared__ char room[];
  long long sum = 0, start; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  const float4* at = tiles + (long long)(blockIdx.x / sharing) * steps * 256 + threadIdx.x;
  float a = threadIdx.x, b = 1.5f, c = 2.5f, d = 3.5f;
  for (int i = 0; i < steps; i++) {
    long long t0 = clock64();
    tile[threadIdx.x] = at[i * 256];
    __syncthreads();
    sum += clock64() - t0;
    float4 x = tile[threadIdx.x ^ 33];
#pragma unroll 8
    for (int j = 0; j < work; j++) { a = a * x.x + x.y; b = b * x.y + x.z; c = c * x.z + x.w; d = d * x.w + x.x; }
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = a + b + c + d + (work < 0 ? room[0] : 0);
  if (threadIdx.x == 0) { waited[blockIdx.x] = sum; unsigned s; asm volatile("mov.u32 %0, %%smid;" : "=r"(s)); sm[blockIdx.x] = s; begun[blockIdx.x] = start; }
}
