// Loads of rows, from L2 and DRAM. Timed on an H200: tests/records/h200_rows.json.
typedef unsigned u32;
__device__ __forceinline__ u32 now() { u32 t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
// L loads of 16 bytes a thread at once, of rows of `row` bytes that lie `pitch` apart; step i loads their i-th pieces, and a barrier
// follows. Blocks have rows of their own, or all the same (share). The first two steps are not timed.
template <int L> __device__ __forceinline__ void rows(const char* a, int row, int pitch, int n, int share, u32* out, int* sink) {
  int per = row / 16, t = threadIdx.x, rows = blockDim.x / per;
  const char* from = a + (size_t)(share ? 0 : blockIdx.x) * (L * rows) * pitch + (size_t)(t / per) * pitch + t % per * 16;
  u32 t0 = now(); u32 sum = 0;
  for (int i = 0; i < n; i++) {
    if (i == 2) t0 = now();
    uint4 h[L];
#pragma unroll
    for (int j = 0; j < L; j++) asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(h[j].x), "=r"(h[j].y), "=r"(h[j].z), "=r"(h[j].w) : "l"(from + (size_t)j * rows * pitch + i * row) : "memory");
#pragma unroll
    for (int j = 0; j < L; j++) sum += h[j].x ^ h[j].w;
    __syncthreads();
    from += sum & 1;
  }
  if (t == 0) out[blockIdx.x] = now() - t0;
  sink[blockIdx.x * blockDim.x + t] = sum;
}
#define ROWS(L) extern "C" __global__ void rows##L(const char* a, int row, int pitch, int n, int share, u32* out, int* sink) { rows<L>(a, row, pitch, n, share, out, sink); }
ROWS(1) ROWS(2) ROWS(4)
