// Blocks that load tiles of A (by their row) and of B (by their column) by TMA, step by step, as those of a GEMM do, and compute
// nothing: tests/records/h200_drifting_tiles.json. With stores, a block stores its tile of C before it waits for its next one.
// mode 0: no clusters, 1: clusters of two blocks, one below the other, 2: a stage is empty when both are done, 3: B is multicast, too.
#include <cstdint>
#include <cuda.h>
extern "C" __global__ void __launch_bounds__(128) drifting_tiles(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
    int bm, int bn, int steps, int stages, int rows, int columns, int work, int mode, int stores, float* out) {
  extern __shared__ __align__(1024) unsigned char room[];
  __shared__ __align__(8) uint64_t full[8];
  __shared__ __align__(8) uint64_t empty[8];
  int bytes = (bm + bn) * 128, pair = mode ? 2 : 1;
  int group = blockIdx.x / pair, groups = gridDim.x / pair, rank = blockIdx.x % pair;
  int tiles = rows / pair * columns;
  int mine = (tiles - group + groups - 1) / groups, all = mine * steps;
  uint32_t ring = (uint32_t)__cvta_generic_to_shared(room), bar = (uint32_t)__cvta_generic_to_shared(full), gone = (uint32_t)__cvta_generic_to_shared(empty);
  ring = (ring + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar + 8 * s));
      asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(gone + 8 * s));
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (mode) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  auto wait = [&](uint32_t at, int parity) {
    uint32_t done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
  };
  auto load = [&](const CUtensorMap* map, uint32_t at, int k, int row, uint32_t full_at) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at), "l"(map), "r"(k), "r"(row), "r"(full_at) : "memory");
  };
  auto fetch = [&](int i) {
    if (i < all && threadIdx.x == 0) {
      int tile = group + i / steps * groups, k = i % steps * 64;
      int row = (tile / columns * pair + rank) * bm, column = tile % columns * bn;
      uint32_t at = ring + i % stages * bytes, full_at = bar + 8 * (i % stages), b_at = at + bm * 128;
      if (mode >= 2 && i >= stages) wait(gone + 8 * (i % stages), (i / stages - 1) & 1);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full_at), "r"(bytes) : "memory");
      load(&a, at, k, row, full_at);
      if (mode == 3)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(b_at + rank * bn / 2 * 128), "l"(&b), "r"(k), "r"(column + rank * bn / 2), "r"(full_at), "h"((short)3) : "memory");
      else { load(&b, b_at, k, column, full_at); load(&b, b_at + bn / 2 * 128, k, column + bn / 2, full_at); }
    }
  };
  for (int i = 0; i < stages - 1; i++) fetch(i);
  float x = 0;
  for (int i = 0; i < all; i++) {
    wait(bar + 8 * (i % stages), i / stages & 1);
    unsigned began = clock();
    x += *(float*)(room + i % stages * bytes + threadIdx.x * 4);
    while (clock() - began < work) {}
    __syncthreads();
    if (mode >= 2 && threadIdx.x < 2) {
      uint32_t there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(gone + 8 * (i % stages)), "r"(threadIdx.x));
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
    }
    fetch(i + stages - 1);
    if (stores && i % steps == steps - 1) {
      float4* c = (float4*)(out + ((size_t)(i / steps) * gridDim.x + blockIdx.x) * bm * bn);
      for (int j = threadIdx.x; j < bm * bn / 4; j += 128) c[j] = make_float4(x, x, x, x);
    }
  }
  if (!stores) out[blockIdx.x * 128 + threadIdx.x] = x;
  if (mode) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
