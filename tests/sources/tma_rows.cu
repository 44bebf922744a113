// Tiles by TMA whose rows have 32, 64 or 128 bytes: what tests/records/h200_tma_rows.json was measured with. A block
// loads `tiles` tiles one after another, `depth` of them under way, from `wrap` places in memory, the first at `column`.
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { u64 opaque[16]; };
#define ASM asm volatile
__device__ __forceinline__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 now() { u32 t; ASM("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
__device__ __forceinline__ void wait(u64* b, int parity) {
  ASM("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(at(b)), "r"(parity) : "memory"); }
__device__ __forceinline__ void load(const Map* m, char* to, u64* b, int bytes, int x, int y) {
  ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(bytes) : "memory");
  ASM("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(at(to)), "l"(m), "r"(at(b)), "r"(x), "r"(y) : "memory"); }
extern "C" __global__ void rows(const __grid_constant__ Map map, int column, int width, int height, int depth, int wrap, int apart, int tiles, u32* out) {
  extern __shared__ __align__(1024) char buf[]; __shared__ u64 full[16];
  if (threadIdx.x) return;
  for (int i = 0; i < depth; i++) ASM("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full[i])) : "memory");
  ASM("fence.proxy.async.shared::cta;" ::: "memory");
  int bytes = width * height, y = blockIdx.x * apart, s = 0, parity = 0, k = 0;
  u32 begin = 0;
  for (int i = 0; i < depth; i++) { load(&map, buf + i * bytes, &full[i], bytes, column + k * width, y); if (++k == wrap) k = 0; }
  for (int i = 0; i < tiles; i++) {
    if (i == 2 * depth) begin = now();
    wait(&full[s], parity);
    if (i + depth < tiles) { load(&map, buf + s * bytes, &full[s], bytes, column + k * width, y); if (++k == wrap) k = 0; }
    if (++s == depth) { s = 0; parity ^= 1; }
  }
  out[blockIdx.x] = now() - begin;
}
