// Tiles that all SMs load as a GEMM does: by TMA, by cp.async, by registers. Timed on an H200: tests/records/h200_tma_load.json.
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { u64 opaque[16]; };
#define ASM asm volatile
__device__ __forceinline__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 now() { u32 t; ASM("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
__device__ __forceinline__ void init(u64* b, int n) { ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void expect(u64* b, int n) { ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void wait(u64* b, int parity) {
  ASM("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ void async_fence() { ASM("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void load2(const Map* m, void* to, u64* b, int x, int y) {
  ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y) : "memory"); }
__device__ __forceinline__ int work(int x, int n) { for (int i = 0; i < n; i++) x = __mul24(x, 5) ^ i; return x; }

// Block b is tile (b / across, b % across) of C: step k loads rows_a x 64 halves of A at its row and rows_b x 64 of B
// at its column, `depth` steps ahead, and works `chain` dependent steps for each. wrap: steps after which k begins anew.
extern "C" __global__ void pairs(const __grid_constant__ Map a, const __grid_constant__ Map b, int across, int rows_a,
                                 int rows_b, int depth, int chain, int wrap, int n, u32* out, int* sink) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 full[16];
  if (threadIdx.x) return;
  for (int i = 0; i < depth; i++) init(&full[i], 1);
  async_fence();
  int y = (int)(blockIdx.x / across) * rows_a, x = (int)(blockIdx.x % across) * rows_b;
  int bytes = (rows_a + rows_b) * 128, s = 0, parity = 0, sum = 0, k = 0, ks = 0;
  u32 t0 = now();
  for (int i = 0; i < depth; i++) {
    expect(&full[i], bytes);
    load2(&a, buf + i * bytes, &full[i], ks * 64, y);
    if (rows_b) load2(&b, buf + i * bytes + rows_a * 128, &full[i], ks * 64, x);
    if (++ks == wrap) ks = 0;
  }
  for (int i = 0; i < n; i++) {
    wait(&full[s], parity);
    sum = work(sum + *(int*)(buf + s * bytes), chain);
    if (i + depth < n) {
      expect(&full[s], bytes);
      load2(&a, buf + s * bytes, &full[s], ks * 64, y);
      if (rows_b) load2(&b, buf + s * bytes + rows_a * 128, &full[s], ks * 64, x);
      if (++ks == wrap) ks = 0;
    }
    if (++s == depth) { s = 0; parity ^= 1; }
  }
  out[blockIdx.x] = now() - t0;
  sink[blockIdx.x] = sum;
}

// The same tiles, fetched by the block's 128 threads with 16 bytes each: by cp.async past L1, `DEPTH` steps ahead.
__device__ __forceinline__ void copy16(void* to, const void* from) { ASM("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory"); }
template <int DEPTH> __device__ void copies(const char* a, const char* b, int across, int rows_a, int rows_b, int chain, int wrap, int pitch, int n, u32* out, int* sink) {
  extern __shared__ __align__(1024) char buf[];
  int y = (int)(blockIdx.x / across) * rows_a, x = (int)(blockIdx.x % across) * rows_b, rows = rows_a + rows_b, bytes = rows * 128;
  int lane = (threadIdx.x & 7) * 16, row = threadIdx.x >> 3, step = blockDim.x >> 3, sum = 0, s = 0, ks = 0;
  auto fetch = [&](int slot) {
    for (int r = row; r < rows; r += step)
      copy16(buf + slot * bytes + r * 128 + (lane ^ ((r & 7) * 16)), (r < rows_a ? a + (size_t)(y + r) * pitch : b + (size_t)(x + r - rows_a) * pitch) + ks * 128 + lane);
    if (++ks == wrap) ks = 0;
  };
  u32 t0 = now();
  for (int i = 0; i < DEPTH; i++) { fetch(i); ASM("cp.async.commit_group;" ::: "memory"); }
  for (int i = 0; i < n; i++) {
    ASM("cp.async.wait_group %0;" ::"n"(DEPTH - 1) : "memory");
    __syncthreads();
    sum = work(sum + *(int*)(buf + s * bytes + threadIdx.x * 4), chain);
    __syncthreads();
    if (i + DEPTH < n) fetch(s);
    ASM("cp.async.commit_group;" ::: "memory");
    if (++s == DEPTH) s = 0;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = now() - t0;
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
#define CP(D) extern "C" __global__ void copies##D(const char* a, const char* b, int across, int rows_a, int rows_b, int chain, int wrap, int pitch, int n, u32* out, int* sink) { copies<D>(a, b, across, rows_a, rows_b, chain, wrap, pitch, n, out, sink); }
CP(1) CP(2) CP(3) CP(4)
// By registers: the words of the next step are loaded before this one's work, and stored after it. 128 + 64 rows by 128 threads: 12 loads of 16 bytes.
extern "C" __global__ void registers(const char* a, const char* b, int across, int rows_a, int rows_b, int chain, int wrap, int pitch, int n, u32* out, int* sink) {
  extern __shared__ __align__(1024) char buf[];
  int y = (int)(blockIdx.x / across) * 128, x = (int)(blockIdx.x % across) * 64;
  int lane = (threadIdx.x & 7) * 16, row = threadIdx.x >> 3, sum = 0, ks = 0;
  uint4 held[12];
  u32 t0 = now();
  for (int i = 0; i <= n; i++) {
    if (i < n) {
#pragma unroll
      for (int j = 0; j < 12; j++) { int r = row + j * 16; held[j] = *(const uint4*)((j < 8 ? a + (size_t)(y + r) * pitch : b + (size_t)(x + r - 128) * pitch) + ks * 128 + lane); }
      if (++ks == wrap) ks = 0;
    }
    if (i) { __syncthreads(); sum = work(sum + *(int*)(buf + threadIdx.x * 4), chain); __syncthreads(); }
    if (i < n) {
#pragma unroll
      for (int j = 0; j < 12; j++) { int r = row + j * 16; *(uint4*)(buf + r * 128 + (lane ^ ((r & 7) * 16))) = held[j]; }
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = now() - t0;
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
