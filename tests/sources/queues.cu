// How many requests are under way before the next one waits: 24 slow requests a warp, addressed by constants from one
// register, with a read of the clock behind each. Lanes are 128 bytes apart (SPREAD), or rows of ROW bytes.
#include <cstdio>
#include <vector>
typedef unsigned u32;
__device__ __forceinline__ u32 clk() { u32 c; asm volatile("mov.u32 %0, %%clock;" : "=r"(c) :: "memory"); return c; }
enum { LDG32, LDG128, STG32, STG128, CA4, CA16, CG16, LDS32, LDS128, STS32, STS128, LDSM4, RED };
const int N = 24;
template <int KIND, int ROW, int I> struct Go { static __device__ __forceinline__ void go(const char* g, u32 a, u32 t, float4* v, u32* c, float s) {
    constexpr int LANE = (KIND == LDG128 || KIND == STG128 || KIND == CA16 || KIND == CG16) ? 16 : 4;
    constexpr int STEP = 32 * LANE / ROW * 128;  // rows 128 bytes apart
    if (KIND == LDG32) asm volatile("ld.global.ca.f32 %0, [%1+%2];" : "=f"(v[I].x) : "l"(g), "n"(I * STEP) : "memory");
    if (KIND == LDG128) asm volatile("ld.global.ca.v4.f32 {%0,%1,%2,%3}, [%4+%5];" : "=f"(v[I].x), "=f"(v[I].y), "=f"(v[I].z), "=f"(v[I].w) : "l"(g), "n"(I * STEP) : "memory");
    if (KIND == STG32) asm volatile("st.global.f32 [%0+%2], %1;" ::"l"(g), "f"(s), "n"(I * STEP) : "memory");
    if (KIND == STG128) asm volatile("st.global.v4.f32 [%0+%2], {%1,%1,%1,%1};" ::"l"(g), "f"(s), "n"(I * STEP) : "memory");
    if (KIND == RED) asm volatile("red.global.add.f32 [%0+%2], %1;" ::"l"(g), "f"(s), "n"(I * STEP) : "memory");
    if (KIND == CA4) asm volatile("cp.async.ca.shared.global [%0+%2], [%1+%3], 4;" ::"r"(t), "l"(g), "n"(I * 512), "n"(I * STEP) : "memory");
    if (KIND == CA16) asm volatile("cp.async.ca.shared.global [%0+%2], [%1+%3], 16;" ::"r"(t), "l"(g), "n"(I * 512), "n"(I * STEP) : "memory");
    if (KIND == CG16) asm volatile("cp.async.cg.shared.global [%0+%2], [%1+%3], 16;" ::"r"(t), "l"(g), "n"(I * 512), "n"(I * STEP) : "memory");
    if (KIND == LDS32) asm volatile("ld.shared.f32 %0, [%1+%2];" : "=f"(v[I].x) : "r"(a), "n"(I * 4) : "memory");
    if (KIND == LDS128) asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4+%5];" : "=f"(v[I].x), "=f"(v[I].y), "=f"(v[I].z), "=f"(v[I].w) : "r"(a), "n"(I * 16) : "memory");
    if (KIND == STS32) asm volatile("st.shared.f32 [%0+%2], %1;" ::"r"(a), "f"(s), "n"(I * 4) : "memory");
    if (KIND == STS128) asm volatile("st.shared.v4.f32 [%0+%2], {%1,%1,%1,%1};" ::"r"(a), "f"(s), "n"(I * 16) : "memory");
    if (KIND == LDSM4) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+%5];" : "=f"(v[I].x), "=f"(v[I].y), "=f"(v[I].z), "=f"(v[I].w) : "r"(a), "n"(I * 16) : "memory");
    c[I + 1] = clk();
    Go<KIND, ROW, I + 1>::go(g, a, t, v, c, s);
} };
template <int KIND, int ROW> struct Go<KIND, ROW, N> { static __device__ __forceinline__ void go(const char*, u32, u32, float4*, u32*, float) {} };
template <int KIND, int ROW> __global__ void __launch_bounds__(512) requests(char* data, u32* out, float* sink) {
    extern __shared__ __align__(128) char shared[];
    constexpr int LANE = (KIND == LDG128 || KIND == STG128 || KIND == CA16 || KIND == CG16) ? 16 : 4;
    constexpr int STEP = 32 * LANE / ROW * 128, PER = ROW / LANE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    char* mine = data + (size_t)warp * N * STEP + lane / PER * 128 + lane % PER * LANE;
    const u32 base = (u32)__cvta_generic_to_shared(shared), at = base + lane * 512, to = base + warp % 4 * 12288 + lane * 16;
    float4 v[N]; u32 c[N + 1]; float s = threadIdx.x == 1000 ? 1 : 0;
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = make_float4(0, 0, 0, 0);
    __syncthreads();
    c[0] = clk();
    Go<KIND, ROW, 0>::go(mine, at, to, v, c, s);
    asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; ++i) s += v[i].x + v[i].y + v[i].z + v[i].w;
    if (s == 1.5f) *sink = s;
    if (lane == 0) for (int i = 0; i <= N; ++i) out[warp * (N + 1) + i] = c[i];
}
__global__ void touch(float* p, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = 0; }
char* data; u32* out; float* sink;
template <int KIND, int ROW> void go(const char* name) {
    for (int warps : {1, 4, 8, 16}) {
        std::vector<u32> h(warps * (N + 1));
        cudaFuncSetAttribute(requests<KIND, ROW>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
        for (int r = 0; r < 3; ++r) {
            touch<<<1024, 256>>>((float*)data, (32 << 20) / 4);
            requests<KIND, ROW><<<1, warps * 32, 65536>>>(data, out, sink);
            cudaMemcpy(h.data(), out, h.size() * 4, cudaMemcpyDeviceToHost);
        }
        printf("[\"%s\", %d, %d, [", name, ROW, warps);
        u32 t0 = h[0]; for (int w = 0; w < warps; ++w) if ((int)(h[w * (N + 1)] - t0) < 0) t0 = h[w * (N + 1)];
        for (int i = 0; i <= N; ++i) { double m = 0; for (int w = 0; w < warps; ++w) m += h[w * (N + 1) + i] - t0; printf("%s%.0f", i ? ", " : "", m / warps); }
        puts("]],");
        if (cudaGetLastError()) puts("FAILED");
    }
}
int main() {
    cudaMalloc(&data, 64 << 20); cudaMalloc(&out, 1 << 20); cudaMalloc(&sink, 4);
#define GO(k, r) go<k, r>(#k);
    GO(LDG32, 4) GO(LDG32, 16) GO(LDG128, 16) GO(LDG128, 64) GO(STG32, 4) GO(STG32, 16) GO(STG128, 16) GO(STG128, 64) GO(RED, 4) GO(CA4, 4) GO(CA4, 16) GO(CA16, 16) GO(CA16, 64) GO(CG16, 16) GO(CG16, 32) GO(CG16, 64) GO(CG16, 128)
    GO(LDS32, 4) GO(LDS128, 16) GO(STS32, 4) GO(STS128, 16) GO(LDSM4, 16)
}
