// Special functions, conversions, shuffles and votes: how long one takes after another, and how many an SM does.
// tests/records/h200_special.json. CHAINS independent chains a warp.
#include <cstdio>
#include <algorithm>
#include <cuda_fp16.h>
enum { EX2, LG2, RCP, RSQ, SQRT, SIN, TANH, EX2_H2, TANH_H2, F2I, I2F, F2I_I2F, F2F64, POPC, CLZ, SHFL_BFLY, SHFL_IDX, SHFL_ADD, VOTE, REDUX, H2F, HADD2_F32, BREV, EX2_FFMA, EX2_FFMA4, MUFU_LDS, DIVIDE, EXPF, COUNT };
const char* NAMES[] = {"MUFU.EX2", "MUFU.LG2", "MUFU.RCP+FADD", "MUFU.RSQ", "MUFU.SQRT", "MUFU.SIN", "MUFU.TANH", "MUFU.EX2.F16x2", "MUFU.TANH.F16x2", "F2I+IADD", "I2F+FADD", "F2I+I2F", "F2F.F64+back", "POPC", "FLO", "SHFL.BFLY", "SHFL.IDX", "SHFL.BFLY+FADD", "VOTE", "REDUX", "F2F.F16+back", "HADD2.F32+F2F", "BREV", "EX2+FFMA", "EX2+4 FFMA", "MUFU.RCP+LDS", "divide", "expf"};
template <int OP> __device__ __forceinline__ void step(float& x, unsigned& u, float* s, int apart) {
    if (OP == EX2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    if (OP == LG2) asm volatile("lg2.approx.ftz.f32 %0, %0;" : "+f"(x));
    if (OP == RCP) { asm volatile("rcp.approx.ftz.f32 %0, %0;" : "+f"(x)); x += 0.5f; }
    if (OP == RSQ) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    if (OP == SQRT) asm volatile("sqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    if (OP == SIN) asm volatile("sin.approx.ftz.f32 %0, %0;" : "+f"(x));
    if (OP == TANH) asm volatile("tanh.approx.f32 %0, %0;" : "+f"(x));
    if (OP == EX2_H2) asm volatile("ex2.approx.f16x2 %0, %0;" : "+r"(u));
    if (OP == TANH_H2) asm volatile("tanh.approx.f16x2 %0, %0;" : "+r"(u));
    if (OP == F2I) { int i; asm volatile("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(x)); x = __int_as_float(i + 0x3f800000); }
    if (OP == I2F) { asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(__float_as_int(x))); x += 1.5f; }
    if (OP == F2I_I2F) { int i; asm volatile("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(x)); asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(i)); }
    if (OP == F2F64) { double d; asm volatile("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(x)); asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(x) : "d"(d)); }
    if (OP == POPC) asm volatile("popc.b32 %0, %0;" : "+r"(u));
    if (OP == CLZ) asm volatile("bfind.u32 %0, %0;" : "+r"(u));
    if (OP == SHFL_BFLY) x = __shfl_xor_sync(~0u, x, apart);
    if (OP == SHFL_IDX) u = __shfl_sync(~0u, u, u);
    if (OP == SHFL_ADD) x += __shfl_xor_sync(~0u, x, apart);
    if (OP == VOTE) u = __ballot_sync(~0u, u & 1);
    if (OP == REDUX) u = __reduce_add_sync(~0u, u);
    if (OP == H2F) { unsigned short h; asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); asm volatile("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); }
    if (OP == HADD2_F32) { unsigned r; asm volatile("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(r) : "f"(x)); unsigned short h = r; asm volatile("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); }
    if (OP == BREV) asm volatile("brev.b32 %0, %0;" : "+r"(u));
    if (OP == EX2_FFMA) { asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); x = fmaf(x, x, 0.5f); }
    if (OP == EX2_FFMA4) { asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); x = fmaf(x, x, 0.5f); x = fmaf(x, x, 0.5f); x = fmaf(x, x, 0.5f); x = fmaf(x, x, 0.5f); }
    if (OP == MUFU_LDS) { asm volatile("rcp.approx.ftz.f32 %0, %0;" : "+f"(x)); x = s[__float_as_int(x) & 31]; }
    if (OP == DIVIDE) x = 3.f / x;
    if (OP == EXPF) x = expf(x);
}
template <int OP, int CHAINS> __global__ void special(long long* t, float* out, int count, int apart) {
    __shared__ float s[32]; if (threadIdx.x < 32) s[threadIdx.x] = 1.f; __syncthreads();
    float x[CHAINS]; unsigned u[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; c++) { x[c] = 1.25f + c + threadIdx.x * 0.001f; u[c] = threadIdx.x + c; }
    long long begin = clock64();
#pragma unroll 1
    for (int k = 0; k < count; k += 8)
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int c = 0; c < CHAINS; c++) step<OP>(x[c], u[c], s, apart);
    float r = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; c++) r += x[c] + u[c];
    long long end = clock64(); out[blockIdx.x * blockDim.x + threadIdx.x] = r; if (threadIdx.x == 0) t[blockIdx.x] = end - begin;
}
template <int OP> void all(long long* t, float* out) {
    const int count = 256; long long h[132];
    for (int warps : {1, 4, 8, 16, 32}) for (int chains : {1, 4}) {
        for (int k = 0; k < 2; k++) { if (chains == 1) special<OP, 1><<<132, warps * 32>>>(t, out, count, 1); else special<OP, 4><<<132, warps * 32>>>(t, out, count, 1); }
        cudaMemcpy(h, t, sizeof h, cudaMemcpyDeviceToHost); std::sort(h, h + 132);
        printf("special|%s|%d|%d|%d|%lld|%.2f\n", NAMES[OP], warps, chains, count, h[66], (double)h[66] / count / chains);
    }
}
template <int OP> struct Each { static void go(long long* t, float* out) { all<OP>(t, out); Each<OP + 1>::go(t, out); } };
template <> struct Each<COUNT> { static void go(long long*, float*) {} };
int main() { long long* t; float* out; cudaMalloc(&t, 132 * 8); cudaMalloc(&out, 132 * 1024 * 4); Each<0>::go(t, out); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); }
