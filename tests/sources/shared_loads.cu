// Loads from shared memory of one SM: how long they take, and how they share the data stage and the write ports.
#ifndef __CUDACC_RTC__
#include <cstdio>
#include <vector>
#endif
__device__ __forceinline__ unsigned clock_now() { unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
// The clocks of all warps: out[warp * 2] at the fifth step, out[warp * 2 + 1] behind the last.
__device__ __forceinline__ void note(unsigned* out, unsigned start, unsigned end) { if (threadIdx.x % 32 == 0) { out[threadIdx.x / 32 * 2] = start; out[threadIdx.x / 32 * 2 + 1] = end; } }
extern __shared__ __align__(1024) char buffer[];
__device__ __forceinline__ unsigned cleared() {
    for (int i = threadIdx.x; i < 12288; i += blockDim.x) ((unsigned*)buffer)[i] = 0;
    __syncthreads();
    return (unsigned)__cvta_generic_to_shared(buffer);
}
template <int W> __device__ __forceinline__ void load(unsigned (&v)[4], unsigned at) {
    if constexpr (W == 4) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[0]) : "r"(at) : "memory");
    if constexpr (W == 8) asm volatile("ld.volatile.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "r"(at) : "memory");
    if constexpr (W == 16) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
}
// Four times a step, N loads of W bytes a lane; the next ones need the last one's result. Lane l reads PITCH bytes times
// l / GROUP % DISTINCT behind the others. Of the warps only every EVERYth takes part; where it is not 1, the loads do
// not need each other.
template <int W, int GROUP, int DISTINCT, int PITCH, int N, int EVERY> __global__ void __launch_bounds__(512) chain(unsigned* out, int steps) {
    unsigned at = cleared() + threadIdx.x % 32 / GROUP % DISTINCT * PITCH, v[N][4], start = 0;
    if (threadIdx.x / 32 % EVERY) { unsigned t = clock_now(); note(out, t, t); return; }
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        if (k == 4) start = clock_now();
#pragma unroll
        for (int u = 0; u < 4; ++u) {
#pragma unroll
            for (int i = 0; i < N; ++i) load<W>(v[i], at + i * 2048);
            if (EVERY == 1) at += v[N - 1][0];
        }
    }
    note(out, start, clock_now());
    unsigned s = at;
    for (int i = 0; i < N; ++i) for (int e = 0; e < W / 4; ++e) s ^= v[i][e];
    if (s == 12345) out[0] = s;
}
// 16 times a step, a load of W bytes a lane whose first word is the address of the next; lanes read PITCH bytes apart, GROUP of them the same.
template <int W, int GROUP, int PITCH> __global__ void __launch_bounds__(512) chase(unsigned* out, int steps) {
    unsigned base = cleared(), at = base + threadIdx.x % 32 / GROUP * PITCH, v[4], s = 0, start = 0;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) ((unsigned*)buffer)[i] = base + i * 4 / W * W;
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        if (k == 4) start = clock_now();
#pragma unroll
        for (int u = 0; u < 16; ++u) { load<W>(v, at); at = v[0]; }
    }
    note(out, start, clock_now());
    for (int e = 0; e < W / 4; ++e) s ^= v[e];
    if (s == 12345) out[0] = s;
}
// Four times a step, eight loads of a kind each, digits of KINDS from the last, each with FMAS multiplications behind it:
// 1 32 bits a lane, 2 64 bits, 3 128 bits of which eight lanes read the same (2 wavefronts), 4 128 bits (4), 5 128 bits
// with conflicts (8), 6 and 7 32 bits with conflicts (2 and 4).
template <int KINDS, int FMAS> __global__ void __launch_bounds__(512) mix(unsigned* out, int steps) {
    unsigned base = cleared(), lane = threadIdx.x % 32, v[8][4], start = 0; float f[8];
    unsigned at[8] = {0, base + lane * 4, base + lane * 8, base + lane / 8 * 16, base + lane * 16, base + lane * 32, base + lane * 8, base + lane * 16};
    for (int i = 0; i < 8; ++i) f[i] = lane;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        if (k == 4) start = clock_now();
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            int kinds = KINDS;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int kind = kinds % 10; kinds /= 10;
                if (kind == 1 || kind == 6 || kind == 7) load<4>(v[i], at[kind] + i * 1024);
                if (kind == 2) load<8>(v[i], at[kind] + i * 1024);
                if (kind >= 3 && kind <= 5) load<16>(v[i], at[kind] + i * 1024);
#pragma unroll
                for (int j = 0; j < FMAS; ++j) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(f[j % 8]));
            }
        }
    }
    note(out, start, clock_now());
    float g = 0; for (int i = 0; i < 8; ++i) g += f[i];
    if (g == 3.5f) out[0] = 1;
}
// The inner loop of a tiled product: ACROSS threads side by side compute TM x TN sums each, DEPTH products a step.
// TRANSPOSED: a thread's words of A lie side by side, and else its words of a row of A.
template <int TM, int TN, int ACROSS, int DEPTH, int TRANSPOSED> __global__ void __launch_bounds__(512) tile(unsigned* out, int steps) {
    cleared();
    const int y = threadIdx.x / ACROSS * TM, x = threadIdx.x % ACROSS * TN;
    float acc[TM][TN]; unsigned start = 0; int at = 0;
    for (int i = 0; i < TM; ++i) for (int j = 0; j < TN; ++j) acc[i][j] = 0;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        if (k == 4) start = clock_now();
        const float* a = (const float*)buffer + at; const float* b = (const float*)buffer + 8192 + at / 8;
        at ^= 64;
#pragma unroll
        for (int q = 0; q < DEPTH; q += 4) {
            float fa[4][TM], fb[4][TN];
            if (TRANSPOSED) {
#pragma unroll
                for (int e = 0; e < 4; ++e)
#pragma unroll
                    for (int i = 0; i < TM; i += 4) { float4 v = *(const float4*)(a + (q + e) * 256 + y + i); fa[e][i] = v.x; fa[e][i + 1] = v.y; fa[e][i + 2] = v.z; fa[e][i + 3] = v.w; }
            } else {
#pragma unroll
                for (int i = 0; i < TM; ++i) { float4 v = *(const float4*)(a + (y + i) * DEPTH + q); fa[0][i] = v.x; fa[1][i] = v.y; fa[2][i] = v.z; fa[3][i] = v.w; }
            }
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int j = 0; j < TN; j += 4) { float4 v = *(const float4*)(b + (q + e) * 128 + x + j); fb[e][j] = v.x; fb[e][j + 1] = v.y; fb[e][j + 2] = v.z; fb[e][j + 3] = v.w; }
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) acc[i][j] += fa[e][i] * fb[e][j];
        }
    }
    note(out, start, clock_now());
    float g = 0;
    for (int i = 0; i < TM; ++i) for (int j = 0; j < TN; ++j) g += acc[i][j];
    if (g == 3.5f) out[0] = g;
}
#ifndef __CUDACC_RTC__
static unsigned* out;
// Cycles a step, of 64 steps more in the launch.
template <class F> void go(F kernel, const char* name) {
    for (int warps : {1, 4, 8, 16}) {
        double t[2]; std::vector<unsigned> h(64);
        for (int j = 0; j < 2; ++j) {
            for (int r = 0; r < 3; ++r) { kernel<<<1, warps * 32, 49152>>>(out, j ? 76 : 12); if (cudaDeviceSynchronize()) puts("FAILED"); }
            cudaMemcpy(h.data(), out, 256, cudaMemcpyDeviceToHost);
            unsigned first = h[0], last = h[1];
            for (int w = 1; w < warps; ++w) { if ((int)(h[w * 2] - first) < 0) first = h[w * 2]; if ((int)(h[w * 2 + 1] - last) > 0) last = h[w * 2 + 1]; }
            t[j] = last - first;
        }
        printf("[\"%s\", %d, %.2f],\n", name, warps, (t[1] - t[0]) / 64);
    }
}
#define GO(...) go(__VA_ARGS__, #__VA_ARGS__);
int main() {
    cudaMalloc(&out, 1 << 16);
#define CHAIN(W, G, D, P) GO(chain<W, G, D, P, 1, 1>) GO(chain<W, G, D, P, 8, 1>) GO(chain<W, G, D, P, 8, 4>)
    CHAIN(4, 1, 32, 4) CHAIN(4, 1, 32, 8) CHAIN(4, 1, 32, 16) CHAIN(4, 1, 32, 32) CHAIN(8, 1, 32, 8) CHAIN(8, 1, 32, 16) CHAIN(16, 1, 32, 16) CHAIN(16, 1, 32, 32) CHAIN(16, 8, 4, 16) CHAIN(16, 2, 16, 16)
    GO(chase<4, 1, 4>) GO(chase<4, 1, 8>) GO(chase<4, 1, 16>) GO(chase<4, 1, 32>) GO(chase<8, 1, 8>) GO(chase<8, 1, 16>) GO(chase<16, 1, 16>) GO(chase<16, 1, 32>) GO(chase<16, 8, 16>)
#define MIX(K) GO(mix<K, 0>) GO(mix<K, 2>) GO(mix<K, 4>)
    MIX(44444444) MIX(33333333) MIX(11111111) MIX(22222222) MIX(55555555) MIX(34343434) MIX(33443344) MIX(33334444) MIX(34443444) MIX(33343334) MIX(14141414) MIX(11141114) MIX(24242424) MIX(35353535) MIX(15151515) MIX(13131313) MIX(12121212) MIX(77777777) MIX(36363636) MIX(37373737) MIX(74747474) MIX(64646464)
#define TILE(TM, TN) GO(tile<TM, TN, 16, 16, 0>) GO(tile<TM, TN, 32, 8, 0>) GO(tile<TM, TN, 16, 8, 1>)
    TILE(4, 4) TILE(8, 4) TILE(4, 8) TILE(8, 8)
}
#endif
