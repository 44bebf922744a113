// Tiles that TMA copies to shared memory, out of it, or adds; runs of bytes; tensor maps that a kernel makes.
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { u64 opaque[16]; };
__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ void wait(u64* b, int parity) {
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory");
}
__device__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#define C1 "{%3}"
#define C2 "{%3,%4}"
#define C3 "{%3,%4,%5}"
#define C4 "{%3,%4,%5,%6}"
#define C5 "{%3,%4,%5,%6,%7}"
#define S1 "{%2}"
#define S2 "{%2,%3}"
#define S3 "{%2,%3,%4}"
#define S4 "{%2,%3,%4,%5}"
#define S5 "{%2,%3,%4,%5,%6}"
#define A1 "r"(c[0])
#define A2 A1,"r"(c[1])
#define A3 A2,"r"(c[2])
#define A4 A3,"r"(c[3])
#define A5 A4,"r"(c[4])
#define LOAD(R) \
__device__ void tma_load##R(const Map* m, void* to, u64* b, const int* c) { \
  asm volatile("cp.async.bulk.tensor." #R "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " C##R "], [%2];" \
    ::"r"(at(to)), "l"(m), "r"(at(b)), A##R : "memory"); } \
extern "C" __global__ void load##R(const __grid_constant__ Map m, const int* c, u32* out, int bytes) { \
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar; \
  u32* w = (u32*)buf; \
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) w[i] = 0xABABABABu; \
  if (threadIdx.x == 0) init(&bar, 1); \
  async_fence(); __syncthreads(); \
  if (threadIdx.x == 0) { expect(&bar, bytes); tma_load##R(&m, buf, &bar, c); } \
  wait(&bar, 0); \
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = w[i]; } \
extern "C" __global__ void store##R(const __grid_constant__ Map m, const int* c, const u32* in, int bytes) { \
  extern __shared__ __align__(1024) char buf[]; u32* w = (u32*)buf; \
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) w[i] = in[i]; \
  async_fence(); __syncthreads(); \
  if (threadIdx.x == 0) { \
    asm volatile("cp.async.bulk.tensor." #R "d.global.shared::cta.bulk_group [%0, " S##R "], [%1];" ::"l"(&m), "r"(at(buf)), A##R : "memory"); \
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory"); } } \
extern "C" __global__ void add##R(const __grid_constant__ Map m, const int* c, const u32* in, int bytes) { \
  extern __shared__ __align__(1024) char buf[]; u32* w = (u32*)buf; \
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) w[i] = in[i]; \
  async_fence(); __syncthreads(); \
  if (threadIdx.x == 0) { \
    asm volatile("cp.reduce.async.bulk.tensor." #R "d.global.shared::cta.add.tile.bulk_group [%0, " S##R "], [%1];" ::"l"(&m), "r"(at(buf)), A##R : "memory"); \
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory"); } }
LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5)

// A run of bytes in, 1 added to each word, and out; then added to what is there once more.
extern "C" __global__ void through(const u32* in, u32* out, int bytes) {
  extern __shared__ __align__(128) char buf[]; __shared__ u64 bar; u32* w = (u32*)buf;
  if (threadIdx.x == 0) { init(&bar, 1); async_fence(); }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(&bar, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];"
      ::"r"(at(buf)), "l"((const char*)in + blockIdx.x * bytes), "r"(at(&bar)), "r"(bytes) : "memory");
  }
  wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) w[i] += 1;
  async_fence(); __syncthreads();
  if (threadIdx.x == 0) {
    char* to = (char*)out + blockIdx.x * bytes;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(to), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(buf)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to), "r"(at(buf)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// A tile by a map in global memory; its bytes are expected only after the copy was begun.
extern "C" __global__ void by_pointer(const Map* m, const int* c, u32* out, int bytes) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar; u32* w = (u32*)buf;
  if (threadIdx.x == 0) { init(&bar, 1); async_fence(); }
  __syncthreads();
  if (threadIdx.x == 0) { tma_load2(m, buf, &bar, c); expect(&bar, bytes); }
  wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = w[i];
}

// A tile of each block's own.
extern "C" __global__ void tiles(const __grid_constant__ Map m, u32* out, int rows, int bytes, int expected) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar; u32* w = (u32*)buf;
  int c[2] = {(int)blockIdx.x * 64, (int)blockIdx.y * rows};
  if (threadIdx.x == 0) { init(&bar, 1); async_fence(); }
  __syncthreads();
  if (threadIdx.x == 0) { expect(&bar, expected); tma_load2(&m, buf, &bar, c); }
  wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[(blockIdx.y * gridDim.x + blockIdx.x) * (bytes / 4) + i] = w[i];
}

// Tiles one below the other, from another one on in each block of a column.
extern "C" __global__ void down(const __grid_constant__ Map m, int rows, int bytes) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(&bar, 1); async_fence();
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
      int c[2] = {(int)blockIdx.x * 64, ((int)blockIdx.y + i) * rows};
      expect(&bar, bytes); tma_load2(&m, buf, &bar, c); wait(&bar, i & 1);
    }
  }
}

#ifdef MAPS  // needs sm_90a
#define SET(FIELD, TYPE, REG, VALUE) asm volatile("tensormap.replace.tile." FIELD ".global.b1024." TYPE " [%0], %1;" ::"l"(m), REG(VALUE) : "memory")
#define SET_AT(FIELD, TYPE, N, REG, VALUE) asm volatile("tensormap.replace.tile." FIELD ".global.b1024." TYPE " [%0], " #N ", %1;" ::"l"(m), REG(VALUE) : "memory")
#define FIX(FIELD, VALUE) asm volatile("tensormap.replace.tile." FIELD ".global.b1024.b32 [%0], " #VALUE ";" ::"l"(m) : "memory")
// All fields of a map of three dimensions of halves, with 128-byte swizzle, as the compiler writes them.
extern "C" __global__ void make_map(void* m, const void* data, const int* n, u64 stride0, u64 stride1) {
  SET("global_address", "b64", "l", data); SET("rank", "b32", "r", 2);
  SET_AT("box_dim", "b32", 0, "r", n[0]); SET_AT("box_dim", "b32", 1, "r", n[1]); SET_AT("box_dim", "b32", 2, "r", n[2]);
  SET_AT("global_dim", "b32", 0, "r", n[3]); SET_AT("global_dim", "b32", 1, "r", n[4]); SET_AT("global_dim", "b32", 2, "r", n[5]);
  SET_AT("element_stride", "b32", 0, "r", 1); SET_AT("element_stride", "b32", 1, "r", n[6]); SET_AT("element_stride", "b32", 2, "r", n[7]);
  SET_AT("global_stride", "b64", 0, "l", stride0); SET_AT("global_stride", "b64", 1, "l", stride1);
  FIX("elemtype", 6); FIX("interleave_layout", 0); FIX("swizzle_mode", 3); FIX("fill_mode", 1);
}
#endif
