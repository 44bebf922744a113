// Asynchronous copies that read nothing and write zeros, as those of a pipeline behind its last tile, and such as read.
// Timed on an H200: tests/records/h200_zero_copies.json. Each warp makes COUNT copies of WIDTH bytes a lane, waits for them,
// and meets the others.
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
// apart: bytes from one lane's destination to the next's; row: bytes from one copy's source to the next's
template <int WIDTH, int COUNT> __global__ void zeros(const char* data, int taken, int apart, int row, int steps, unsigned* log) {
  extern __shared__ __align__(1024) char room[];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const char* from = data + (size_t)warp * COUNT * row + lane * WIDTH;
  unsigned to = shared_address(room) + warp * 32 * WIDTH + lane * apart;
  __syncthreads();
  unsigned begin = clock(), all = 0;
  for (int i = 0; i < steps; i++) {
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
      if (WIDTH == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + n * 512), "l"(from + n * row), "r"(taken) : "memory");
      if (WIDTH == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to + n * 512), "l"(from + n * row), "r"(taken) : "memory");
      if (WIDTH == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + n * 512), "l"(from + n * row), "r"(taken) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    unsigned sent = clock();
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    all += clock() - sent;
    __syncthreads();
  }
  unsigned end = clock();
  if (lane == 0) { log[2 * warp] = end - begin; log[2 * warp + 1] = all; }
}
