// Tensor maps that each block makes for itself, as Triton's kernels do, and maps that are parameters: cycles of each map
// made, and of the first load and of later ones with it. Timed on an H200: tests/records/h200_tensor_maps.json.
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { u64 opaque[16]; };
#define ASM asm volatile
__device__ __forceinline__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 now() { u32 t; ASM("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
__device__ __forceinline__ void wait(u64* b, int parity) {
  ASM("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ void load(const void* m, void* to, u64* b, int x, int y) {
  ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(8192) : "memory");
  ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y) : "memory"); }
__device__ __forceinline__ void make(void* to, const void* from) {
  ASM("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to), "r"(at(from)) : "memory");
  ASM("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to) : "memory"); }

// MADE: each block makes COUNT maps, one after another. Then thread 0 loads a tile of 64 x 64 halves with each in turn,
// three times. log: u32 [blocks, 16], the clock at first, behind each map that is made, before the loads, behind each.
template <int COUNT, bool MADE> __global__ void maps(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, char* made, u32* log) {
  extern __shared__ __align__(1024) char tile[]; __shared__ __align__(128) u32 copies[COUNT][32]; __shared__ u64 full;
  const Map* given[3] = {&a, &b, &c}; u32* my = log + blockIdx.x * 16; char* own = made + (size_t)blockIdx.x * 512; int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < COUNT; i++) if (t < 32) copies[i][t] = ((const u32*)given[i])[t];
  if (t == 0) { ASM("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory"); ASM("fence.proxy.async.shared::cta;" ::: "memory"); }
  __syncthreads();
  if (t == 0) my[0] = now();
  if (MADE) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      if (t < 32) make(own + i * 128, copies[i]);
      __syncthreads();
      if (t == 0) my[1 + i] = now();
    } }
  if (t == 0) {
    my[4] = now();
#pragma unroll
    for (int i = 0; i < 3 * COUNT; i++) {
      load(MADE ? (const void*)(own + i % COUNT * 128) : (const void*)given[i % COUNT], tile, &full, i % COUNT * 64, blockIdx.x % 16 * 64);
      wait(&full, i & 1);
      my[5 + i] = now();
    } }
}

// As `maps`, of stores: thread 0 stores a tile of 64 rows of 128 bytes three times and waits, READ: until it has been read
// from shared memory, else until it has been written.
template <bool MADE, bool READ> __global__ void stores(const __grid_constant__ Map a, char* made, u32* log) {
  extern __shared__ __align__(1024) char tile[]; __shared__ __align__(128) u32 copy[32];
  u32* my = log + blockIdx.x * 16; char* own = made + (size_t)blockIdx.x * 512; int t = threadIdx.x;
  if (t < 32) copy[t] = ((const u32*)&a)[t];
  for (int i = t; i < 2048; i += 128) ((u32*)tile)[i] = i;
  ASM("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (MADE) { if (t < 32) make(own, copy); __syncthreads(); }
  if (t == 0) {
    my[0] = now();
#pragma unroll
    for (int i = 0; i < 3; i++) {
      ASM("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" ::"l"(MADE ? (const void*)own : (const void*)&a), "r"(at(tile)), "r"((int)(blockIdx.x % 16) * 64), "r"((int)(blockIdx.x / 16) * 64 % 1024) : "memory");
      ASM("cp.async.bulk.commit_group;" ::: "memory");
      if (READ) ASM("cp.async.bulk.wait_group.read 0;" ::: "memory"); else ASM("cp.async.bulk.wait_group 0;" ::: "memory");
      my[1 + i] = now();
    } }
}
