// Loops of half-precision arithmetic by warps of one block on one SM: what tests/records/h200_half.json was measured with.
// A second operand of which one half is taken twice keeps the compiler from HFMA2.MMA.
#include <cuda_fp16.h>
#define CLOCK(t) asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory")
#define BOTH asm volatile("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(x[i]) : "r"(a), "r"(b));
#define HALF asm volatile("{.reg .b16 l, h; .reg .b32 w; mov.b32 {l, h}, %1; mov.b32 w, {l, l}; fma.rn.f16x2 %0, w, %2, %0;}" : "+r"(x[i]) : "r"(a), "r"(b));
#define FLOAT asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(f[i]) : "f"(fa), "f"(fb));
#define INTEGER asm volatile("mad.lo.s32 %0, %1, %2, %0;" : "+r"(x[i]) : "r"(a), "r"(b));
template <int OP, int CHAINS> __global__ void loop(long long* out, unsigned* sink, int n, unsigned a0, unsigned b0) {
    unsigned x[CHAINS], a = a0 + threadIdx.x, b = b0; float f[CHAINS], fa = __uint_as_float(a), fb = __uint_as_float(b);
    for (int i = 0; i < CHAINS; i++) { x[i] = i + threadIdx.x; f[i] = i; }
    long long t0, t1; __syncthreads(); __syncthreads(); CLOCK(t0);
    for (int k = 0; k < n; k++) {
#pragma unroll
        for (int u = 0; u < 256 / CHAINS; u++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++) {
                if (OP == 0) BOTH
                if (OP == 1) asm volatile("add.rn.f16x2 %0, %1, %0;" : "+r"(x[i]) : "r"(a));
                if (OP == 2) asm volatile("mul.rn.f16x2 %0, %1, %0;" : "+r"(x[i]) : "r"(a));
                if (OP == 3) { if (i % 2) BOTH else FLOAT }
                if (OP == 4) { if (i % 4) BOTH else FLOAT }
                if (OP == 5) { if (i % 2) BOTH else INTEGER }
                if (OP == 6) HALF
                if (OP == 7) { if (i % 2) HALF else FLOAT }
                if (OP == 8) { if (i % 4) FLOAT else HALF }
                if (OP == 9) { if (i % 4) HALF else FLOAT }
                if (OP == 10) { if (i % 2) HALF else INTEGER }
                if (OP == 11) { if (i % 2) HALF else asm volatile("lop3.b32 %0, %1, %2, %0, 0x96;" : "+r"(x[i]) : "r"(a), "r"(b)); }
                if (OP == 12) FLOAT
            } }
    CLOCK(t1); __syncthreads(); unsigned s = 0; for (int i = 0; i < CHAINS; i++) s += x[i] + (unsigned)f[i]; if (s == 12345) *sink = s;
    if (threadIdx.x % 32 == 0) { out[2 * (threadIdx.x / 32)] = t0; out[2 * (threadIdx.x / 32) + 1] = t1; } }
