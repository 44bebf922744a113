// The power of an H200 under one kind of work at a time, at two or more rates: tests/records/h200_power_loops.json.
// Blocks begin a turn of work every `pace` cycles, at once with 0; between turns their warps wait at a barrier. Numbers are
// random and change from instruction to instruction. The board's energy counter is read before and after half a second.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>
#include <dlfcn.h>

enum { NOTHING, LDS128, LDS32, LDS_WORD, LDS_TWICE, FP32, FP64, FP16, INSTRUCTION, MMA_BF16, MMA_INT8, BF16, F16, TF32, E4M3, LOADS, STORES, BULK, MULTICAST };

#define F4(n) "+f"(d[n]), "+f"(d[n + 1]), "+f"(d[n + 2]), "+f"(d[n + 3])
#define F16(n) F4(n), F4(n + 4), F4(n + 8), F4(n + 12)
#define T8(a) "%" #a "0, %" #a "1, %" #a "2, %" #a "3, %" #a "4, %" #a "5, %" #a "6, %" #a "7, %" #a "8, %" #a "9, "
#define MULTIPLY(SHAPE, TYPES, ORDERS)                                                                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256" SHAPE ".f32." TYPES " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " T8(1) T8(2) \
               T8(3) T8(4) T8(5) T8(6) T8(7) T8(8) T8(9) T8(10) T8(11) "%120, %121, %122, %123, %124, %125, %126, %127}, "   \
               "%128, %129, 1, 1, 1" ORDERS ";"                                                                              \
               : F16(0), F16(16), F16(32), F16(48), F16(64), F16(80), F16(96), F16(112) : "l"(a), "l"(b))

__device__ uint32_t random_word(size_t i) {
  uint32_t x = (uint32_t)i * 2654435761u;
  x ^= x >> 15; x *= 2246822519u; x ^= x >> 13; x *= 3266489917u;
  return x ^ x >> 16;
}

// Words of two bf16, two f16, a float or four e4m3, normally distributed; or any bits.
__global__ void fill(uint32_t* words, size_t n, int type) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = random_word(i);
    float u = 0, v = 0;
    for (int k = 0; k < 6; k++) {
      u += random_word(i * 12 + k + 1) * 0x1p-32f - .5f;
      v += random_word(i * 12 + k + 7) * 0x1p-32f - .5f;
    }
    if (type == BF16) x = __float_as_uint(u) >> 16 | (__float_as_uint(v) & 0xffff0000u);
    if (type == F16) { __half2 h = __floats2half2_rn(u, v); x = *(uint32_t*)&h; }
    if (type == TF32) x = __float_as_uint(u);
    if (type == E4M3) x = (x & 0x8f8f8f8fu) | (0x20202020u + (random_word(i + 77) & 0x18181818u));
    words[i] = x;
  }
}

template <int WORK>
__global__ void __launch_bounds__(WORK >= BF16 && WORK <= E4M3 ? 256 : 512)
    loop(uint32_t* data, size_t words, size_t apart, int turns, int reps, int pace, float* out, unsigned* count, long long* times) {
  extern __shared__ unsigned char room[];
  __shared__ __align__(8) uint64_t full, gone;
  int t = threadIdx.x, ranks = 1, rank = 0;
  uint32_t base = ((uint32_t)__cvta_generic_to_shared(room) + 1023) & ~1023u;
  uint32_t full_at = (uint32_t)__cvta_generic_to_shared(&full), gone_at = (uint32_t)__cvta_generic_to_shared(&gone);
  if (WORK == MULTICAST) {
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  }
  for (int i = t; i < 49152; i += blockDim.x) asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + i * 4), "r"(data[i]));
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(full_at));
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(gone_at), "r"(ranks));
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;");
  }
  float f[16], d[128]; double g[8]; uint32_t u[16]; __half2 h[8];
  float c = -1.75f - t * 1e-4f;
  for (int i = 0; i < 16; i++) { f[i] = c + .1f * i; u[i] = data[t + i * 512]; }
  for (int i = 0; i < 8; i++) { g[i] = f[i]; h[i] = __floats2half2_rn(f[i], f[i + 8]); }
  if (WORK >= BF16 && WORK <= E4M3)
    for (int i = 0; i < 128; i++) d[i] = 0;
  __half2 hc = __floats2half2_rn(c, c - .01f);
  auto wait = [&](uint32_t at, unsigned parity) {
    uint32_t done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
  };
  __syncthreads();
  if (WORK == MULTICAST) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (t == 0) {  // all blocks begin at about one time
    atomicAdd(count, 1);
    while (*(volatile unsigned*)count % gridDim.x) {}
  }
  __syncthreads();
  long long began = clock64(), nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  for (int n = 0; n < turns; n++) {
    if (t == 0 && pace) while (clock64() < began + (long long)n * pace) {}
    __syncthreads();
    if (WORK >= BF16 && WORK <= E4M3) {
      asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll 1
      for (int r = 0; r < reps; r++) {
        int k = (n * reps + r) * 7 % 20;
        uint64_t order = 8ull << 16 | 16ull << 32, a = (base + t / 128 * 2048 + k * 1024) >> 4 | order, b = (base + 65536 + k * 4096) >> 4 | order;
        if (WORK == BF16) MULTIPLY("k16", "bf16.bf16", ", 0, 1");
        if (WORK == F16) MULTIPLY("k16", "f16.f16", ", 0, 1");
        if (WORK == TF32) MULTIPLY("k8", "tf32.tf32", "");
        if (WORK == E4M3) MULTIPLY("k32", "e4m3.e4m3", "");
      }
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
      for (int i = 0; i < 128; i++) asm volatile("" : "+f"(d[i]));
    } else if (WORK == BULK) {  // 64 KB at once; blocks read `apart` words from each other
      if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full_at), "r"(65536 * reps));
        for (int r = 0; r < reps * 4; r++) {
          size_t at = (blockIdx.x * apart + ((size_t)n * reps * 4 + r) * 4096) & (words - 1);
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(base + r % 8 * 16384), "l"(data + at), "r"(16384), "r"(full_at) : "memory");
        }
        wait(full_at, n & 1);
      }
    } else if (WORK == MULTICAST) {  // each block of a cluster fetches its part for all of them
      if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full_at), "r"(65536 * reps));
        for (int i = 0; i < ranks; i++) {  // all of the cluster are ready
          uint32_t there;
          asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(gone_at), "r"(i));
          asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
        }
        wait(gone_at, n & 1);
        int part = 16384 / ranks;
        for (int r = 0; r < reps * 4; r++) {
          size_t at = (blockIdx.x / ranks * apart + ((size_t)n * reps * 4 + r) * 4096 + rank * part / 4) & (words - 1);
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(base + r % 8 * 16384 + rank * part), "l"(data + at), "r"(part), "r"(full_at), "h"((short)((1 << ranks) - 1)) : "memory");
        }
        wait(full_at, n & 1);
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < reps; r++) {
        size_t at = blockIdx.x * apart + ((size_t)n * reps + r) * 32768;
#pragma unroll
        for (int i = 0; i < 128; i++) {
          if (WORK == LDS128 && i < 32) {
            uint32_t a, b, c, d;
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(base + t * 16 + i * 4096));
            u[i % 8] ^= a ^ b; u[i % 8] ^= c ^ d;
          }
          if (WORK == LDS32 || WORK == LDS_WORD || WORK == LDS_TWICE) {  // all lanes, all of them one word, or two wavefronts
            uint32_t a;
            asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a) : "r"(base + (WORK == LDS32 ? t * 4 : WORK == LDS_WORD ? t / 32 * 4 : t * 8) + i * 1024));
            u[i % 8] ^= a;
          }
          if (WORK == FP32) f[i % 16] = fmaf(f[i % 16], f[i % 16], c);  // x * x - 1.75 to 1.8 never settles
          if (WORK == FP64 && i < 64) g[i % 8] = fma(g[i % 8], g[i % 8], (double)c);
          if (WORK == FP16) h[i % 8] = __hfma2(h[i % 8], h[i % 8], hc);
          if (WORK == INSTRUCTION) u[i % 8] = u[i % 8] * 1664525u + u[8];
          if (WORK == MMA_BF16 && i < 16)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(f[i % 4 * 4]), "+f"(f[i % 4 * 4 + 1]), "+f"(f[i % 4 * 4 + 2]), "+f"(f[i % 4 * 4 + 3])
                         : "r"(u[i % 13]), "r"(u[i % 13 + 1]), "r"(u[i % 13 + 2]), "r"(u[i % 13 + 3]), "r"(u[i * 3 % 15]), "r"(u[i * 3 % 15 + 1]));
          if (WORK == LOADS && i < 16) {
            uint32_t a, b, c, d;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(data + ((at + i * 2048 + t * 4) & (words - 1))));
            u[i % 8] ^= a ^ b; u[i % 8] ^= c ^ d;
          }
          if (WORK == STORES && i < 16)
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(data + ((at + i * 2048 + t * 4) & (words - 1))), "r"(u[i % 13]), "r"(u[i % 13 + 1]), "r"(u[i % 13 + 2]), "r"(u[i % 13 + 3]) : "memory");
        }
        if (WORK == MMA_INT8)
#pragma unroll
          for (int i = 0; i < 16; i++) {
            int* s = (int*)f;
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+r"(s[i % 4 * 4]), "+r"(s[i % 4 * 4 + 1]), "+r"(s[i % 4 * 4 + 2]), "+r"(s[i % 4 * 4 + 3])
                         : "r"(u[i % 13]), "r"(u[i % 13 + 1]), "r"(u[i % 13 + 2]), "r"(u[i % 13 + 3]), "r"(u[i * 3 % 15]), "r"(u[i * 3 % 15 + 1]));
          }
      }
    }
    __syncthreads();
  }
  long long ended;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ended));
  if (blockIdx.x == 0 && t == 0) { times[0] = clock64() - began; times[1] = ended - nanoseconds; }
  float s = 0;
  for (int i = 0; i < 16; i++) s += f[i] + u[i];
  for (int i = 0; i < 8; i++) s += (float)g[i] + __low2float(h[i]);
  if (WORK >= BF16 && WORK <= E4M3)
    for (int i = 0; i < 128; i++) s += d[i];
  out[blockIdx.x * blockDim.x + t] = s;
  if (WORK == MULTICAST) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

int (*energy)(void*, unsigned long long*), (*temperature)(void*, int, unsigned*);
void* board;
uint32_t* data;
float* out;
unsigned* count;
long long* times;
bool once;
constexpr size_t CACHED = 16 << 20, STREAMED = 4ull << 30;  // bytes
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// units: of the work, by a block in `reps` = 1; apart: bytes
template <int WORK> void run(const char* name, int threads, int reps, int pace, double units, size_t bytes = CACHED, size_t apart = 126976, int cluster = 1) {
  auto kernel = loop<WORK>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
  cudaMemset(count, 0, 4);
  fill<<<1024, 256>>>(data, (1 << 20), WORK);
  if (WORK >= LOADS) fill<<<4096, 256>>>(data, bytes / 4, WORK);
  cudaLaunchConfig_t how = {};
  how.gridDim = dim3(132); how.blockDim = dim3(threads); how.dynamicSmemBytes = 200 * 1024;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim = {(unsigned)cluster, 1, 1};
  how.attrs = attribute; how.numAttrs = cluster > 1;
  int turns = once ? 400 : 20;
  auto launch = [&] { cudaLaunchKernelEx(&how, kernel, data, bytes / 4, apart / 4, turns, reps, pace, out, count, times); };
  launch(); cudaDeviceSynchronize();
  if (once) { printf("cfg %s %d %d %zu %zu %d %s\n", name, reps, pace, bytes, apart, cluster, cudaGetErrorString(cudaGetLastError())); return; }
  double a = now();
  launch(); cudaDeviceSynchronize();
  turns = (int)(20 * 2e-3 / (now() - a)) + 1;
  if (turns > 4000) turns = 4000;
  double from = now(), began = 0, ended = 0;
  unsigned long long first = 0, last = 0, x;
  long n = 0, n_began = 0, n_ended = 0;
  while (now() - from < 0.95) {
    for (int i = 0; i < 3; i++) launch();
    cudaDeviceSynchronize(); n += 3;
    if (now() - from < 0.3) continue;
    energy(board, &x);
    if (!first) first = x;
    else if (!began && x != first) { first = last = x; began = now(); n_began = n; }
    else if (began && x != last) { last = x; ended = now(); n_ended = n; }
  }
  unsigned celsius = 0;
  temperature(board, 0, &celsius);
  double seconds = ended - began;
  long long t[2];
  cudaMemcpy(t, times, 16, cudaMemcpyDeviceToHost);
  printf("[\"%s\", %d, %d, %d, %.0f, %.4g, %.1f, %u], %.2f s %s\n", name, threads, cluster, pace, t[0] * 1e3 / t[1], (n_ended - n_began) / seconds * turns * reps * units * 132, (last - first) * 1e-3 / seconds, celsius, seconds, cudaGetErrorString(cudaGetLastError()));
  fflush(stdout);
}

int main(int argc, char** argv) {
  bool memory = argc > 1;  // only what accesses memory; "once": a launch each, for Nsight Compute
  once = memory && argv[1][0] == 'o';
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  ((int (*)())dlsym(nvml, "nvmlInit_v2"))();
  ((int (*)(unsigned, void**))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &board);
  energy = (decltype(energy))dlsym(nvml, "nvmlDeviceGetTotalEnergyConsumption");
  temperature = (decltype(temperature))dlsym(nvml, "nvmlDeviceGetTemperature");
  cudaMalloc(&data, STREAMED); cudaMalloc(&out, 1 << 20); cudaMalloc(&count, 4); cudaMalloc(&times, 16);
  if (!memory) {
    run<NOTHING>("nothing", 512, 1, 4000, 0);
    for (int pace : {0, 12000}) run<FP32>("fp32", 512, 8, pace, 512 * 256.);
    for (int pace : {0, 12000}) run<FP64>("fp64", 512, 8, pace, 512 * 128.);
    for (int pace : {0, 12000}) run<FP16>("fp16", 512, 8, pace, 512 * 512.);
    for (int pace : {0, 12000}) run<INSTRUCTION>("instruction", 512, 8, pace, 16 * 128.);
    for (int pace : {0, 32000}) run<LDS128>("wavefront of LDS.128", 512, 8, pace, 16 * 32 * 4.);
    for (int pace : {0, 32000}) run<LDS32>("wavefront of LDS", 512, 8, pace, 16 * 128.);
    for (int pace : {0, 32000}) run<LDS_WORD>("wavefront of LDS, one word", 512, 8, pace, 16 * 128.);
    for (int pace : {0, 64000}) run<LDS_TWICE>("wavefront of LDS, two of them", 512, 8, pace, 16 * 128 * 2.);
    for (int pace : {0, 10000}) run<MMA_BF16>("mma.sync tensor_bf16", 512, 8, pace, 16 * 16 * 4096.);
    for (int pace : {0, 10000}) run<MMA_INT8>("mma.sync tensor_int8", 512, 8, pace, 16 * 16 * 8192.);
    for (int pace : {0, 7000, 12000}) run<BF16>("tensor_bf16", 256, 24, pace, 2 * 64 * 256 * 16 * 2.);
    for (int pace : {0, 7000, 12000}) run<F16>("tensor_fp16", 256, 24, pace, 2 * 64 * 256 * 16 * 2.);
    for (int pace : {0, 12000}) run<TF32>("tensor_tf32", 256, 24, pace, 2 * 64 * 256 * 8 * 2.);
    for (int pace : {0, 12000}) run<E4M3>("tensor_fp8", 256, 24, pace, 2 * 64 * 256 * 32 * 2.);
  }
  for (int pace : {0, 40000}) run<LOADS>("loads of l2_byte", 512, 8, pace, 131072.);
  run<LOADS>("loads of l2_byte, the same by all", 512, 8, 0, 131072., CACHED, 0);
  run<STORES>("stores of l2_byte", 512, 8, 0, 131072.);
  for (int pace : {0, 8000}) run<BULK>("l2_byte", 128, 4, pace, 65536.);
  for (int pace : {0, 8000}) run<BULK>("l2_byte, the same by all", 128, 4, pace, 65536., CACHED, 0);
  run<MULTICAST>("l2_byte, multicast", 128, 4, 0, 65536., CACHED, 126976, 2);
  run<LOADS>("loads of dram_read_byte", 512, 8, 0, 131072., STREAMED, STREAMED / 132 / 4096 * 4096);
  run<STORES>("stores of dram_write_byte", 512, 8, 0, 131072., STREAMED, STREAMED / 132 / 4096 * 4096);
  for (int pace : {0, 24000}) run<BULK>("dram_read_byte", 128, 4, pace, 65536., STREAMED, STREAMED / 132 / 16384 * 16384);
  run<NOTHING>("nothing", 512, 1, 4000, 0);
}
