// Blocks that load a tile, meet at a barrier, compute and meet again, step by step: who computes, who waits? Timed on an
// H200: tests/records/h200_turns.json. Block b reads the tiles of stream b / sharing, 16 bytes a thread and step.
// KIND of work: 0 multiply-adds, 1 reads of shared memory, 2 both, 3 multiply-adds that depend on each other.
// log: for each warp and step the clock before the loads, behind the barrier and behind the work.
template <int KIND> __device__ __forceinline__ void body(int work, const float4* tile, float& a, float& b, float& c, float& d) {
  if (KIND == 0) {
    float4 x = tile[threadIdx.x ^ 33];
#pragma unroll 8
    for (int j = 0; j < work; j++) { a = a * x.x + x.y; b = b * x.y + x.z; c = c * x.z + x.w; d = d * x.w + x.x; }
  } else if (KIND == 1) {
#pragma unroll 8
    for (int j = 0; j < work; j++) { float4 x = tile[(threadIdx.x ^ (j & 7)) ]; a += x.x; b += x.y; c += x.z; d += x.w; }
  } else if (KIND == 2) {
#pragma unroll 8
    for (int j = 0; j < work; j++) { float4 x = tile[(threadIdx.x ^ (j & 7)) ]; a = a * x.x + x.y; b = b * x.y + x.z; c = c * x.z + x.w; d = d * x.w + x.x;
      a = a * x.y + x.x; b = b * x.z + x.y; c = c * x.w + x.z; d = d * x.x + x.w; }
  } else {
    float4 x = tile[threadIdx.x ^ 33];
#pragma unroll 8
    for (int j = 0; j < work; j++) { a = a * x.x + x.y; }
  }
}
template <int KIND> __global__ void __launch_bounds__(512) turns(const float4* tiles, int sharing, int steps, int work, float* out, unsigned* log, unsigned* sm) {
  __shared__ float4 tile[512];
  extern __shared__ char room[];
  const float4* at = tiles + (long long)(blockIdx.x / sharing) * steps * blockDim.x + threadIdx.x;
  float a = threadIdx.x, b = 1.5f, c = 2.5f, d = 3.5f;
  int warps = blockDim.x / 32;
  unsigned* my = log + ((size_t)blockIdx.x * warps + threadIdx.x / 32) * steps * 3;
  for (int i = 0; i < steps; i++) {
    unsigned t0 = clock();
    tile[threadIdx.x] = at[i * blockDim.x];
    __syncthreads();
    unsigned t1 = clock();
    body<KIND>(work, tile, a, b, c, d);
    unsigned t2 = clock() + (a == 12345.f);
    __syncthreads();
    if (threadIdx.x % 32 == 0) { my[i * 3] = t0; my[i * 3 + 1] = t1; my[i * 3 + 2] = t2; }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d + (work < 0 ? room[0] : 0);
  if (threadIdx.x == 0) { unsigned s; asm volatile("mov.u32 %0, %%smid;" : "=r"(s)); sm[blockIdx.x] = s; }
}
