// Blocks of a grid that copy tiles of A (by their row) and of B (by their column) step by step, as those of a GEMM do, and
// compute little or nothing: what limits them is L2. Counted on an H200: tests/records/h200_l2_tiles.json.
// a_chunks, b_chunks: pieces of 16 bytes a step; work: dependent multiply-adds of each thread a step; jitter: cycles by which the
// blocks begin apart, up to; plain: by loads through L1 and registers instead of cp.async.cg
extern "C" __global__ void __launch_bounds__(128) l2_tiles(const char* a, const char* b, int a_chunks, int b_chunks, int steps, int stages,
                                                          int columns, int work, int jitter, int plain, float* out) {
  extern __shared__ float4 room[];
  int row = blockIdx.x / columns, column = blockIdx.x % columns;
  const float4* from_a = (const float4*)a + (long long)row * steps * a_chunks;
  const float4* from_b = (const float4*)b + (long long)column * steps * b_chunks;
  int chunks = a_chunks + b_chunks;
  float x = threadIdx.x, y = 1.5f;
  if (jitter) {
    unsigned h = blockIdx.x * 2654435761u; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    long long until = clock64() + h % jitter;
    while (clock64() < until) {}
  }
  auto fetch = [&](int step) {
    if (step < steps) {
      float4* to = room + (step % stages) * chunks;
      for (int c = threadIdx.x; c < chunks; c += 128) {
        const float4* at = c < a_chunks ? from_a + (long long)step * a_chunks + c : from_b + (long long)step * b_chunks + (c - a_chunks);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to + c)), "l"(at));
      }
    }
    asm volatile("cp.async.commit_group;");
  };
  if (!plain) {
    for (int s = 0; s < stages - 1; s++) fetch(s);
    for (int i = 0; i < steps; i++) {
      if (stages == 2) asm volatile("cp.async.wait_group 0;");
      else if (stages == 3) asm volatile("cp.async.wait_group 1;");
      else asm volatile("cp.async.wait_group 2;");
      __syncthreads();
      fetch(i + stages - 1);
      x += room[(i % stages) * chunks + threadIdx.x].x;
      for (int j = 0; j < work; j++) x = x * y + 0.5f;
    }
  } else {
    for (int i = 0; i < steps; i++) {
      float4 got[16];
#pragma unroll
      for (int n = 0; n < 16; n++) {
        int c = threadIdx.x + n * 128;
        if (c < chunks) got[n] = __ldg(c < a_chunks ? from_a + (long long)i * a_chunks + c : from_b + (long long)i * b_chunks + (c - a_chunks));
      }
      __syncthreads();
#pragma unroll
      for (int n = 0; n < 16; n++) { int c = threadIdx.x + n * 128; if (c < chunks) room[c] = got[n]; }
      __syncthreads();
      x += room[threadIdx.x].x;
      for (int j = 0; j < work; j++) x = x * y + 0.5f;
    }
  }
  out[blockIdx.x * 128 + threadIdx.x] = x;
}
