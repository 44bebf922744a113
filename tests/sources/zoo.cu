// Every operand form that the tests of the parser want to meet, in one kernel. It is compiled, never run.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__constant__ int bank[2000];
__device__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
struct Big { int a[70]; float b; };

__device__ __forceinline__ float inner(const float* f, int i) { return f[i] * 2.f; }
__device__ __forceinline__ float outer(const float* f, int i) { return inner(f, i) + inner(f, i + 1); }
__device__ __noinline__ float deep(float x, int n) { return n <= 0 ? x : deep(x * 1.5f, n - 1) + table[n & 7]; }

__device__ void shuffles(float* f, int* i, unsigned* u) {
    float v = f[threadIdx.x];
    v += __shfl_xor_sync(~0u, v, 16) + __shfl_down_sync(~0u, v, 8) + __shfl_sync(~0u, v, i[3]);
    unsigned ballot = __ballot_sync(~0u, v > 1.f);
    u[0] = __popc(ballot) + __clz(ballot) + __any_sync(~0u, v > 2.f) + __syncthreads_count(v > 0.f);
    u[1] = __byte_perm(ballot, u[2], i[1]) + __funnelshift_l(ballot, u[3], i[4]) + __dp4a(i[0], i[1], i[2]);
    u[4] = i[3] / i[7] + u[5] % u[6] + __mulhi(u[7], u[8]) + min(i[8], i[9]) + abs(i[10]) + __match_any_sync(~0u, i[2]);
    ((long long*)i)[8] = (long long)i[1] * i[2] / ((long long*)i)[9];
}

__device__ void atomics(float* f, int* i, unsigned long long* l, double* d) {
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x % 4], i[1]);
    atomicCAS(&s[5], 1, 2);
    i[4] = atomicAdd(&i[3], 1);
    atomicAdd(f, 1.f);
    atomicAdd(d, 1.0);
    l[2] = atomicCAS(l, 1ull, 2ull);
    __threadfence();
    i[8] = s[9] + ((volatile int*)i)[6] + __ldg(i + 2);
}

__device__ void math(float* f, double* d, int* i, __half* h, __nv_bfloat16* b) {
    float x = f[0];
    f[1] = sinf(x) + expf(x) * logf(x) + rsqrtf(x) / f[3] + fminf(x, 3.f) + floorf(x) + __saturatef(x) - fabsf(f[9]);
    d[1] = sqrt(d[0]) + d[2] / d[3] + fma(d[1], d[2], -0.75) + fmax(d[1], 2.5);
    i[0] = (int)x + (int)d[4] + ((unsigned char*)i)[99] * ((signed char*)i)[98];
    h[0] = h[1] * h[2] + h[3] + __float2half(0.1f);
    b[0] = b[1] * b[2] + __float2bfloat16(1.5f);
    *(__half2*)(h + 8) = __hfma2(*(__half2*)(h + 10), __floats2half2_rn(0.25f, -3.f), *(__half2*)(h + 12));
}

__device__ void tensor(__half* a, float* c, int* q) {
    __shared__ __half tile[16 * 24];
    for (int i = threadIdx.x; i < 16 * 24; i += 32) tile[i] = a[i];
    __syncthreads();
    unsigned r0, r1, r2, r3, at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at));
    float s0 = c[1], s1 = 0, s2 = 0, s3 = 0;
    int i0 = 0, i1 = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3) : "r"(r0), "r"(r1), "r"(r2));
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
                 : "+r"(i0), "+r"(i1) : "r"(r0), "r"(r1));
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(a + threadIdx.x * 8));
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 1;");
#endif
    c[3] = s0 + s1 + s2 + s3 + r3;
    q[1] = i0 + i1;
}

__device__ void branches(int* a, float* f) {
    int v = a[threadIdx.x];
    switch (v) {
        case 0: f[0] = cosf(f[1]); break;
        case 1: a[1] = atomicAdd(a + 3, 7); break;
        case 2: f[3] = f[4] * f[5]; a[7] = 3; break;
        case 3: a[9] = a[10] * a[11]; break;
        case 4: f[8] += 3; break;
        case 5: f[9] = f[10] - 1; a[3] = 4; break;
        case 6: a[12] = __popc(a[13]); break;
        case 7: f[14] = sqrtf(f[15]); break;
    }
    while (a[threadIdx.x] != 0) {
        if (f[v] > 0) { if (a[3] == 7) return; f[v] -= 1; continue; }
        if (a[v] == 4) break;
        a[v]--;
    }
}

extern "C" __global__ void __launch_bounds__(128)
zoo(float* f, int* i, unsigned* u, unsigned long long* l, double* d, __half* h, const __grid_constant__ Big big, int n) {
    extern __shared__ char dynamic[];
    dynamic[threadIdx.x] = n;
    __syncthreads();
    f[4] = dynamic[n] + outer(f, n) + deep(f[3], n);
    i[3] = big.a[n] + bank[n * 3] + bank[threadIdx.x] + bank[blockIdx.x + 7];
    float local[64];
    for (int k = 0; k < n; k++) local[k % 64] = f[k];
    f[5] = local[n];
    shuffles(f, i, u);
    atomics(f, i, l, d);
    math(f, d, i, h, (__nv_bfloat16*)h + 64);
    tensor(h, f, i);
    branches(i, f);
}
