// Tiles that the threads of a block load in batches, and wait for. Timed on an H200: tests/records/h200_batches.json.
typedef unsigned u32;
__device__ __forceinline__ u32 now() { u32 t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }

// Each step: 128 rows of 128 bytes of A and of B by 128 threads, 16 bytes each, AT loads at once; a barrier behind each batch.
template <int AT> __device__ __forceinline__ void batches(const char* a, const char* b, int across, int pitch, int n, u32* out, int* sink) {
  extern __shared__ __align__(1024) char buf[];
  int y = (int)(blockIdx.x / across) * 128, x = (int)(blockIdx.x % across) * 128, lane = (threadIdx.x & 7) * 16, row = threadIdx.x >> 3;
  const char* from_a = a + (size_t)(y + row) * pitch + lane; const char* from_b = b + (size_t)(x + row) * pitch + lane;
  u32 to = (u32)__cvta_generic_to_shared(buf) + row * 128 + lane, t0 = now();
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int first = 0; first < 16; first += AT) {
      uint4 held[AT];
#pragma unroll
      for (int j = 0; j < AT; j++) {
        int r = first + j;
        const char* from = (r < 8 ? from_a + (size_t)r * 16 * pitch : from_b + (size_t)(r - 8) * 16 * pitch) + i * 128;
        asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(held[j].x), "=r"(held[j].y), "=r"(held[j].z), "=r"(held[j].w) : "l"(from) : "memory");
      }
#pragma unroll
      for (int j = 0; j < AT; j++)
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" :: "r"(to + (first + j) * 2048), "r"(held[j].x), "r"(held[j].y), "r"(held[j].z), "r"(held[j].w) : "memory");
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = now() - t0;
  sink[blockIdx.x * blockDim.x + threadIdx.x] = *(int*)(buf + threadIdx.x * 4);
}
#define BATCHES(AT) extern "C" __global__ void batches##AT(const char* a, const char* b, int across, int pitch, int n, u32* out, int* sink) { batches<AT>(a, b, across, pitch, n, out, sink); }
BATCHES(1) BATCHES(2) BATCHES(4)
