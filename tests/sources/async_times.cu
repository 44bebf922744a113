// Microbenchmarks of bulk copies and mbarriers, timed on an H200: tests/records/h200_async.json.
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { u64 opaque[16]; };
#define ASM asm volatile
__device__ __forceinline__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 now() { u32 t; ASM("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
__device__ __forceinline__ u64 ns() { u64 t; ASM("mov.u64 %0, %%globaltimer;" : "=l"(t) :: "memory"); return t; }
__device__ __forceinline__ void init(u64* b, int n) { ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void expect(u64* b, int n) { ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void arrive(u64* b) { ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory"); }
__device__ __forceinline__ void wait(u64* b, int parity) {
  ASM("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ int test(u64* b, int parity) { int r;
  ASM("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }" : "=r"(r) : "r"(at(b)), "r"(parity) : "memory"); return r; }
__device__ __forceinline__ void async_fence() { ASM("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void init_fence() { ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() { ASM("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
__device__ __forceinline__ u32 peer(const void* p, int rank) { u32 r; ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(rank)); return r; }
__device__ __forceinline__ void arrive_at(u32 b) { ASM("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(b) : "memory"); }
__device__ __forceinline__ u32 rank_of() { u32 r; ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ void load2(const Map* m, void* to, u64* b, int x, int y) {
  ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y) : "memory"); }
__device__ __forceinline__ void load2many(const Map* m, void* to, u64* b, int x, int y, unsigned short mask) {
  ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3,%4}], [%2], %5;" ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y), "h"(mask) : "memory"); }
__device__ __forceinline__ void bulk(void* to, const void* from, u64* b, int bytes) {
  ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::"r"(at(to)), "l"(from), "r"(at(b)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void store2(const Map* m, const void* from, int x, int y) {
  ASM("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" ::"l"(m), "r"(at(from)), "r"(x), "r"(y) : "memory"); }
__device__ __forceinline__ void add2(const Map* m, const void* from, int x, int y) {
  ASM("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3}], [%1];" ::"l"(m), "r"(at(from)), "r"(x), "r"(y) : "memory"); }
__device__ __forceinline__ void bulk_store(void* to, const void* from, int bytes) {
  ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void commit() { ASM("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_read() { ASM("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
template <int N> __device__ __forceinline__ void wait_all() { ASM("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ int work(int x, int n) { for (int i = 0; i < n; i++) x = __mul24(x, 5) ^ i; return x; }

// One copy at a time. out[2i]: cycles from before the expect to after the issue; out[2i+1]: to the end of the wait.
extern "C" __global__ void latency(const __grid_constant__ Map m, const char* src, int tile, int rows, int bytes, int n, int span, u32* out) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar;
  if (threadIdx.x) return;
  init(&bar, 1); async_fence();
  for (int i = 0; i < n; i++) {
    int k = i % span; u32 t0 = now();
    expect(&bar, bytes);
    if (tile) load2(&m, buf, &bar, 0, k * rows); else bulk(buf, src + (size_t)k * bytes, &bar, bytes);
    u32 t1 = now();
    wait(&bar, i & 1);
    u32 t2 = now(); out[2 * i] = t1 - t0; out[2 * i + 1] = t2 - t0;
  }
}
template <int KIND> __device__ __forceinline__ void put(const Map* m, char* dst, char* from, int rows, int bytes, int k) {
  if (KIND == 0) store2(m, from, 0, k * rows); else if (KIND == 1) add2(m, from, 0, k * rows); else bulk_store(dst + (size_t)k * bytes, from, bytes); }
// A stream of stores, at most DEPTH groups whose shared memory has not been read.
template <int KIND, int DEPTH> __device__ void store_stream_of(const Map* m, char* dst, int rows, int bytes, int n, int span, u64* out) {
  extern __shared__ __align__(1024) char buf[];
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) ((u32*)buf)[i] = 0;
  async_fence(); __syncthreads();
  if (threadIdx.x) return;
  u32 t0 = now(); u64 g0 = ns();
  for (int i = 0; i < n; i++) {
    wait_read<DEPTH - 1>();
    put<KIND>(m, dst, buf, rows, bytes, (int)(((long long)blockIdx.x * n + i) % span)); commit();
  }
  wait_all<0>();
  u32 t1 = now(); u64 g1 = ns();
  out[3 * blockIdx.x] = t1 - t0; out[3 * blockIdx.x + 1] = g0; out[3 * blockIdx.x + 2] = g1;
}
#define SS(K, D) extern "C" __global__ void store_stream##K##_##D(const __grid_constant__ Map m, char* dst, int rows, int bytes, int n, int span, u64* out) { store_stream_of<K, D>(&m, dst, rows, bytes, n, span, out); }
SS(0, 1) SS(0, 4) SS(1, 4) SS(2, 1)
// Warps 1..W wait (32 lanes each) for warp 0, which arrives after a pause. out: arrive's clock, then when each went on. Rounds follow each other.
extern "C" __global__ void wake(int pause, int rounds, u32* out) {
  __shared__ u64 go, back; int w = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x == 0) { init(&go, 1); init(&back, warps - 1); }
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    if (w == 0) {
      if (threadIdx.x == 0) { u32 t = now(); while (now() - t < pause); out[r * 33] = now(); arrive(&go); out[r * 33 + 32] = now(); wait(&back, r & 1); }
      __syncwarp();
    } else {
      wait(&go, r & 1); u32 t = now();
      if (threadIdx.x % 32 == 0) { out[r * 33 + w] = t; arrive(&back); }
    }
  }
}
// Two warps pass a turn to each other n times; out: cycles.
extern "C" __global__ void ping(int n, u32* out) {
  __shared__ u64 b[2]; int w = threadIdx.x / 32;
  if (threadIdx.x == 0) { init(&b[0], 1); init(&b[1], 1); }
  __syncthreads();
  if (threadIdx.x % 32) return;
  u32 t0 = now();
  for (int i = 0; i < n; i++) if (w == 0) { arrive(&b[0]); wait(&b[1], i & 1); } else { wait(&b[0], i & 1); arrive(&b[1]); }
  if (w == 0) out[0] = now() - t0;
}
// A producer warp and consumer warps: a ring of `depth` tiles, each of which costs a consumer `chain` dependent steps. out: cycles of the whole.
extern "C" __global__ void ring(const __grid_constant__ Map m, int rows, int depth, int chain, int n, u64* out, int* sink) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 full[16], empty[16];
  int w = threadIdx.x / 32, consumers = blockDim.x / 32 - 1, bytes = rows * 128;
  if (threadIdx.x == 0) { for (int i = 0; i < depth; i++) { init(&full[i], 1); init(&empty[i], consumers); } async_fence(); }
  __syncthreads();
  u32 t0 = now(); int s = 0, parity = 0, sum = threadIdx.x;
  if (w == 0) {
    if (threadIdx.x == 0) for (int i = 0; i < n; i++) {
      wait(&empty[s], parity ^ 1); expect(&full[s], bytes); load2(&m, buf + s * bytes, &full[s], 0, (i & 63) * rows);
      if (++s == depth) { s = 0; parity ^= 1; }
    }
    __syncwarp();
  } else {
    for (int i = 0; i < n; i++) {
      wait(&full[s], parity);
      sum = work(sum + ((int*)(buf + s * bytes))[threadIdx.x & 31], chain);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(&empty[s]);
      if (++s == depth) { s = 0; parity ^= 1; }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = now() - t0;
  sink[threadIdx.x] = sum;
}
// For ncu: one copy of a tile at a place; one store; one reduction.
extern "C" __global__ void one_load(const __grid_constant__ Map m, int x, int y, int bytes) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar;
  if (threadIdx.x) return;
  init(&bar, 1); async_fence(); expect(&bar, bytes); load2(&m, buf, &bar, x, y); wait(&bar, 0);
}
extern "C" __global__ void one_store(const __grid_constant__ Map m, int x, int y) {
  extern __shared__ __align__(1024) char buf[];
  if (threadIdx.x) return;
  async_fence(); store2(&m, buf, x, y); commit(); wait_all<0>();
}
extern "C" __global__ void one_add(const __grid_constant__ Map m, int x, int y) {
  extern __shared__ __align__(1024) char buf[];
  if (threadIdx.x) return;
  for (int i = 0; i < 2048; i++) ((u32*)buf)[i] = 0;
  async_fence(); add2(&m, buf, x, y); commit(); wait_all<0>();
}
