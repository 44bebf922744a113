// Tiles of A and B that threads stage through registers. Timed on an H200: tests/records/h200_staged_tiles.json.
typedef unsigned u32;
__device__ __forceinline__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 now() { u32 t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
// 256 threads load tiles as tensorcore_warptiled does: of A 128 rows of 64 bytes, two loads of 16 bytes a thread, of B 32 rows of 512
// bytes, four loads. Then they spin, store what has come to shared memory, and meet. PARTS: 1 A, 2 B, 3 both.
template <int PARTS> __device__ __forceinline__ void staged(const char* a, const char* b, int across, int pitch_a, int pitch_b, int n, int spin, u32* out, int* sink) {
  extern __shared__ __align__(1024) char buf[];
  int y = blockIdx.x / across * 128, x = blockIdx.x % across * 512, t = threadIdx.x;
  const char* fa = a + (size_t)(y + t / 4) * pitch_a + t % 4 * 16;
  const char* fb = b + (size_t)(t / 8) * pitch_b + x + t % 8 * 16;
  u32 to = at(buf) + t * 16, t0 = now();
  for (int i = 0; i < n; i++) {
    uint4 h[6];
#define LD(v, p) asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory")
#define ST(v, p) asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" :: "r"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory")
    if (PARTS & 1) { LD(h[0], fa + i * 64); LD(h[1], fa + (size_t)64 * pitch_a + i * 64); }
    if (PARTS & 2) {
#pragma unroll
      for (int j = 0; j < 4; j++) LD(h[2 + j], fb + (size_t)i * 32 * pitch_b + j * 128); }
    if (spin) { u32 s = now(); while (now() - s < spin) ; }
#pragma unroll
    for (int j = PARTS & 1 ? 0 : 2; j < (PARTS & 2 ? 6 : 2); j++) ST(h[j], to + j * 4096);
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = now() - t0;
  sink[blockIdx.x * 256 + t] = *(int*)(buf + t * 4);
}
#define STAGED(P) extern "C" __global__ void staged##P(const char* a, const char* b, int across, int pitch_a, int pitch_b, int n, int spin, u32* out, int* sink) { staged<P>(a, b, across, pitch_a, pitch_b, n, spin, out, sink); }
STAGED(1) STAGED(2) STAGED(3)
