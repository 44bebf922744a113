// Loops of straight-line code, some of which jump over lines now and then. Timed on an H200: tests/records/h200_code_loops.json.
// A line of code is 128 bytes: eight FFMA of 16 bytes, which issue every cycle. Warps of SMs that are not chosen end at once.
// cycles: of each warp of a block, of the iterations after the second; where: the SM of each block.
#define LINE                                                                                                   \
  "fma.rn.f32 %0, %0, %16, %17;\nfma.rn.f32 %1, %1, %16, %17;\nfma.rn.f32 %2, %2, %16, %17;\nfma.rn.f32 %3, %3, %16, %17;\n" \
  "fma.rn.f32 %4, %4, %16, %17;\nfma.rn.f32 %5, %5, %16, %17;\nfma.rn.f32 %6, %6, %16, %17;\nfma.rn.f32 %7, %7, %16, %17;\n"
#define NEXT                                                                                                   \
  "fma.rn.f32 %8, %8, %16, %17;\nfma.rn.f32 %9, %9, %16, %17;\nfma.rn.f32 %10, %10, %16, %17;\nfma.rn.f32 %11, %11, %16, %17;\n" \
  "fma.rn.f32 %12, %12, %16, %17;\nfma.rn.f32 %13, %13, %16, %17;\nfma.rn.f32 %14, %14, %16, %17;\nfma.rn.f32 %15, %15, %16, %17;\n"
#define L2 LINE NEXT
#define L8 L2 L2 L2 L2
#define L32 L8 L8 L8 L8
#define L128 L32 L32 L32 L32
#define L512 L128 L128 L128 L128
#define RUN(text)                                                                                              \
  asm volatile(text                                                                                            \
               : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]), "+f"(r[8]),   \
                 "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15])                       \
               : "f"(x), "f"(y))

template <int LINES>
__device__ __forceinline__ void lines(float (&r)[16], float x, float y) {  // LINES must be even
  if constexpr (LINES & 1024) RUN(L512 L512);
  if constexpr (LINES & 512) RUN(L512);
  if constexpr (LINES & 256) RUN(L128 L128);
  if constexpr (LINES & 128) RUN(L128);
  if constexpr (LINES & 64) RUN(L32 L32);
  if constexpr (LINES & 32) RUN(L32);
  if constexpr (LINES & 16) RUN(L8 L8);
  if constexpr (LINES & 8) RUN(L8);
  if constexpr (LINES & 4) RUN(L2 L2);
  if constexpr (LINES & 2) RUN(L2);
}

// CHUNKS times LINES lines in a loop; behind each time GAP lines that are jumped over, as `skip` is none of the chunks.
template <int LINES, int GAP, int CHUNKS>
__global__ void __launch_bounds__(256)
    code_loops(const unsigned char* chosen, int iterations, long long* cycles, unsigned* where, float* out, float x, float y, int skip) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) where[blockIdx.x] = sm;
  if (!chosen[sm]) return;
  float r[16];
  for (int i = 0; i < 16; i++) r[i] = threadIdx.x + i;
  long long begin = 0;
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    if (i == 2) begin = clock64();
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      lines<LINES>(r, x, y);
      if (GAP > 0 && skip == c) lines<GAP>(r, x, y);
    }
  }
  long long end = clock64();
  if (threadIdx.x % 32 == 0) cycles[blockIdx.x * 8 + threadIdx.x / 32] = end - begin;
  float sum = 0;
  for (int i = 0; i < 16; i++) sum += r[i];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}
