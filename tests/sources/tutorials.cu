// Kernels of the kinds that tutorials and collections about matrix products and language models have, each launched 12
// times in a row, for two or three sizes. Arrays are parts of one allocation; those of a section are zero when it begins.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

typedef unsigned int u32;
#define ALL 0xffffffffu
#define FLAT (blockIdx.x * blockDim.x + threadIdx.x)
__device__ __forceinline__ float4 ld4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void st4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }
template <int W = 32> __device__ __forceinline__ float sum_lanes(float x) {
#pragma unroll
    for (int d = W / 2; d > 0; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
    return x;
}
template <int W = 32> __device__ __forceinline__ float max_lanes(float x) {
#pragma unroll
    for (int d = W / 2; d > 0; d >>= 1) x = fmaxf(x, __shfl_xor_sync(ALL, x, d));
    return x;
}
template <int N> __device__ __forceinline__ float sum_threads(float x) {
    __shared__ float part[N / 32];
    x = sum_lanes(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < N / 32 ? part[threadIdx.x % 32] : 0.f;
    return sum_lanes(x);
}
template <int N> __device__ __forceinline__ float max_threads(float x) {
    __shared__ float part[N / 32];
    x = max_lanes(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x % 32 < N / 32 ? part[threadIdx.x % 32] : -3e38f;
    return max_lanes(x);
}
__device__ __forceinline__ u32 shared_at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy16(void* to, const void* from) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_at(to)), "l"(from)); }
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n"); }
template <int N> __device__ __forceinline__ void wait_copies() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N)); }
__device__ __forceinline__ void ldsm4(u32* r, const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(p)));
}
__device__ __forceinline__ void ldsm4t(u32* r, const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(p)));
}
__device__ __forceinline__ void mma_f32(float* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ------------------------------------------------------------------------------------------------ fp32 products, C = A B

__global__ void sgemm_rows_by_y(const float* A, const float* B, float* C, int M, int N, int K) {  // naive, any size
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float s = 0.f;
    for (int k = 0; k < K; ++k) s += A[row * K + k] * B[k * N + col];
    C[row * N + col] = s;
}

template <int BK> __global__ void __launch_bounds__(1024) sgemm_sliced_k(const float* A, const float* B, float* C, int M, int N, int K) {  // 32 x 32, a thread an element, K in slices of BK
    __shared__ float As[32][BK], Bs[BK][32];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + tx;
    float s = 0.f;
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = 0; i < BK; i += 32) {
            As[ty][tx + i] = row < M && k0 + tx + i < K ? A[row * K + k0 + tx + i] : 0.f;
            Bs[ty + i][tx] = col < N && k0 + ty + i < K ? B[(k0 + ty + i) * N + col] : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) s += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = s;
}

template <int PAD> __global__ void __launch_bounds__(256) sgemm_8x8(const float* A, const float* B, float* C, int M, int N, int K) {  // 128 x 128 x 8, 8 x 8 a thread, A transposed on its way
    __shared__ float As[8][128 + PAD], Bs[8][128];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, ar = tid / 2, ac = tid % 2 * 4, br = tid / 32, bc = tid % 32 * 4;
    A += blockIdx.y * 128 * K;
    B += blockIdx.x * 128;
    float acc[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        float4 a = ld4(A + ar * K + k0 + ac);
        As[ac][ar] = a.x; As[ac + 1][ar] = a.y; As[ac + 2][ar] = a.z; As[ac + 3][ar] = a.w;
        st4(&Bs[br][bc], ld4(B + (k0 + br) * N + bc));
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float x[8], y[8];
            *(float4*)x = ld4(&As[k][ty * 8]); *(float4*)(x + 4) = ld4(&As[k][ty * 8 + 4]);
            *(float4*)y = ld4(&Bs[k][tx * 8]); *(float4*)(y + 4) = ld4(&Bs[k][tx * 8 + 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float* c = C + (blockIdx.y * 128 + ty * 8 + i) * N + blockIdx.x * 128 + tx * 8;
        st4(c, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
        st4(c + 4, make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]));
    }
}

__global__ void __launch_bounds__(256) sgemm_two_buffers(const float* A, const float* B, float* C, int M, int N, int K) {  // as before, halves of a thread's tile apart; next slice and next operands on the way
    __shared__ float As[2][8][132], Bs[2][8][128];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, ar = tid / 2, ac = tid % 2 * 4, br = tid / 32, bc = tid % 32 * 4;
    const float* a_from = A + (blockIdx.y * 128 + ar) * K + ac;
    const float* b_from = B + br * N + blockIdx.x * 128 + bc;
    float acc[8][8] = {}, x[2][8], y[2][8];
    float4 a = ld4(a_from), b = ld4(b_from);
    As[0][ac][ar] = a.x; As[0][ac + 1][ar] = a.y; As[0][ac + 2][ar] = a.z; As[0][ac + 3][ar] = a.w;
    st4(&Bs[0][br][bc], b);
    __syncthreads();
    *(float4*)x[0] = ld4(&As[0][0][ty * 4]); *(float4*)(x[0] + 4) = ld4(&As[0][0][64 + ty * 4]);
    *(float4*)y[0] = ld4(&Bs[0][0][tx * 4]); *(float4*)(y[0] + 4) = ld4(&Bs[0][0][64 + tx * 4]);
    int now = 0;
    for (int k0 = 8; k0 <= K; k0 += 8) {
        if (k0 < K) { a = ld4(a_from + k0); b = ld4(b_from + (size_t)k0 * N); }
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            if (k == 7) {
                if (k0 < K) {
                    As[now ^ 1][ac][ar] = a.x; As[now ^ 1][ac + 1][ar] = a.y; As[now ^ 1][ac + 2][ar] = a.z; As[now ^ 1][ac + 3][ar] = a.w;
                    st4(&Bs[now ^ 1][br][bc], b);
                }
                __syncthreads();
                now ^= 1;
            }
            const int at = (k + 1) % 8, to = (k + 1) % 2;
            *(float4*)x[to] = ld4(&As[now][at][ty * 4]); *(float4*)(x[to] + 4) = ld4(&As[now][at][64 + ty * 4]);
            *(float4*)y[to] = ld4(&Bs[now][at][tx * 4]); *(float4*)(y[to] + 4) = ld4(&Bs[now][at][64 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] += x[k % 2][i] * y[k % 2][j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float* c = C + (blockIdx.y * 128 + i / 4 * 64 + ty * 4 + i % 4) * N + blockIdx.x * 128 + tx * 4;
        st4(c, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
        st4(c + 64, make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]));
    }
}

__global__ void __launch_bounds__(256) sgemm_cp_async(const float* A, const float* B, float* C, int M, int N, int K) {  // 128 x 128 x 16 by cp.async, A as it lies in memory
    __shared__ __align__(16) float As[2][128][20], Bs[2][16][128];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    auto fetch = [&](int s, int k0) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int e = tid + i * 256;
            copy16(&As[s][e / 4][e % 4 * 4], A + (blockIdx.y * 128 + e / 4) * K + k0 + e % 4 * 4);
            copy16(&Bs[s][e / 32][e % 32 * 4], B + (k0 + e / 32) * N + blockIdx.x * 128 + e % 32 * 4);
        }
        commit();
    };
    float acc[8][8] = {};
    fetch(0, 0);
    for (int k0 = 0, s = 0; k0 < K; k0 += 16, s ^= 1) {
        if (k0 + 16 < K) { fetch(s ^ 1, k0 + 16); wait_copies<1>(); } else wait_copies<0>();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float x[8], y[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = As[s][ty + 16 * i][k];
            *(float4*)y = ld4(&Bs[s][k][tx * 4]); *(float4*)(y + 4) = ld4(&Bs[s][k][64 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float* c = C + (blockIdx.y * 128 + ty + 16 * i) * N + blockIdx.x * 128 + tx * 4;
        st4(c, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
        st4(c + 64, make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]));
    }
}

__global__ void __launch_bounds__(256) sgemm_4x4(const float* A, const float* B, float* C, int M, int N, int K) {  // 64 x 64 x 16, 4 x 4 a thread
    __shared__ float As[16][64], Bs[16][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        float4 a = ld4(A + (blockIdx.y * 64 + tid / 4) * K + k0 + tid % 4 * 4);
        As[tid % 4 * 4][tid / 4] = a.x; As[tid % 4 * 4 + 1][tid / 4] = a.y; As[tid % 4 * 4 + 2][tid / 4] = a.z; As[tid % 4 * 4 + 3][tid / 4] = a.w;
        st4(&Bs[ty][tx * 4], ld4(B + (k0 + ty) * N + blockIdx.x * 64 + tx * 4));
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float x[4], y[4];
            *(float4*)x = ld4(&As[k][ty * 4]);
            *(float4*)y = ld4(&Bs[k][tx * 4]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) st4(C + (blockIdx.y * 64 + ty * 4 + i) * N + blockIdx.x * 64 + tx * 4, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
}

template <int BM, int BN, int BK, int WM, int WN> __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32) sgemm_warps(const float* A, const float* B, float* C, int M, int N, int K) {  // a warp WM x WN, its lanes 4 x 8 with tiles of WM / 4 x WN / 8
    constexpr int T = BM / WM * (BN / WN) * 32, TM = WM / 4, TN = WN / 8;
    __shared__ float As[BK][BM + 4], Bs[BK][BN];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int row = warp / (BN / WN) * WM + lane / 8 * 4, col = warp % (BN / WN) * WN + lane % 8 * 4;
    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int e = tid; e < BM * BK / 4; e += T) {
            int r = e / (BK / 4), c = e % (BK / 4) * 4;
            float4 a = ld4(A + (blockIdx.y * BM + r) * K + k0 + c);
            As[c][r] = a.x; As[c + 1][r] = a.y; As[c + 2][r] = a.z; As[c + 3][r] = a.w;
        }
#pragma unroll
        for (int e = tid; e < BN * BK / 4; e += T) st4(&Bs[e / (BN / 4)][e % (BN / 4) * 4], ld4(B + (k0 + e / (BN / 4)) * N + blockIdx.x * BN + e % (BN / 4) * 4));
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float x[TM], y[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) *(float4*)(x + i) = ld4(&As[k][row + i * 4]);
#pragma unroll
            for (int j = 0; j < TN; j += 4) *(float4*)(y + j) = ld4(&Bs[k][col + j * 8]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) st4(C + (blockIdx.y * BM + row + i / 4 * 16 + i % 4) * N + blockIdx.x * BN + col + j * 8, make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
}

template <int SPLITS> __global__ void __launch_bounds__(256) sgemm_split_atomics(const float* A, const float* B, float* C, int M, int N, int K) {  // 64 x 64, a part of K each blockIdx.z
    __shared__ float As[64][17], Bs[16][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, part = K / SPLITS;
    float acc[4][4] = {};
    for (int k0 = blockIdx.z * part; k0 < (blockIdx.z + 1) * part; k0 += 16) {
#pragma unroll
        for (int e = tid; e < 1024; e += 256) {
            As[e / 16][e % 16] = A[(blockIdx.y * 64 + e / 16) * K + k0 + e % 16];
            Bs[e / 64][e % 64] = B[(k0 + e / 64) * N + blockIdx.x * 64 + e % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += As[ty + 16 * i][k] * Bs[k][tx + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) atomicAdd(C + (blockIdx.y * 64 + ty + 16 * i) * N + blockIdx.x * 64 + tx + 16 * j, acc[i][j]);
}

__global__ void sgemm_four_columns(const float* A, const float* B, float* C, int M, int N, int K) {  // a thread four columns of a row, no shared memory
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= M || col >= N) return;
    float4 s = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int k = 0; k < K; ++k) {
        float a = A[row * K + k];
        float4 b = ld4(B + k * N + col);
        s.x += a * b.x; s.y += a * b.y; s.z += a * b.z; s.w += a * b.w;
    }
    st4(C + row * N + col, s);
}

__global__ void __launch_bounds__(64) sgemm_batched_strided(const float* A, const float* B, float* C, int M, int N, int K, long long stride_a, long long stride_b, long long stride_c, float alpha, float beta) {  // 32 x 32 a block of 64
    __shared__ float As[16][36], Bs[16][32];
    const int tid = threadIdx.x, tx = tid % 8, ty = tid / 8;
    A += blockIdx.z * stride_a + blockIdx.y * 32 * K;
    B += blockIdx.z * stride_b + blockIdx.x * 32;
    C += blockIdx.z * stride_c + blockIdx.y * 32 * N + blockIdx.x * 32;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int e = tid + 64 * i;
            float4 a = ld4(A + e / 4 * K + k0 + e % 4 * 4);
            As[e % 4 * 4][e / 4] = a.x; As[e % 4 * 4 + 1][e / 4] = a.y; As[e % 4 * 4 + 2][e / 4] = a.z; As[e % 4 * 4 + 3][e / 4] = a.w;
            st4(&Bs[e / 8][e % 8 * 4], ld4(B + (k0 + e / 8) * N + e % 8 * 4));
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float4 a = ld4(&As[k][ty * 4]), b = ld4(&Bs[k][tx * 4]);
            float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float* c = C + (ty * 4 + i) * N + tx * 4;
        float4 old = ld4(c);
        st4(c, make_float4(alpha * acc[i][0] + beta * old.x, alpha * acc[i][1] + beta * old.y, alpha * acc[i][2] + beta * old.z, alpha * acc[i][3] + beta * old.w));
    }
}

template <bool TA, bool TB> __global__ void __launch_bounds__(128) sgemm_transposed(const float* A, const float* B, float* C, int M, int N, int K) {  // A is K x M if TA, B is N x K if TB; 64 x 64 x 16, 8 x 4 a thread
    __shared__ float As[16][64 + 4], Bs[16][64 + 4];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    float acc[8][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
        for (int e = tid; e < 256; e += 128) {
            if (TA) st4(&As[e / 16][e % 16 * 4], ld4(A + (k0 + e / 16) * M + m0 + e % 16 * 4));
            else {
                float4 v = ld4(A + (m0 + e / 4) * K + k0 + e % 4 * 4);
                As[e % 4 * 4][e / 4] = v.x; As[e % 4 * 4 + 1][e / 4] = v.y; As[e % 4 * 4 + 2][e / 4] = v.z; As[e % 4 * 4 + 3][e / 4] = v.w;
            }
            if (TB) {
                float4 v = ld4(B + (n0 + e / 4) * K + k0 + e % 4 * 4);
                Bs[e % 4 * 4][e / 4] = v.x; Bs[e % 4 * 4 + 1][e / 4] = v.y; Bs[e % 4 * 4 + 2][e / 4] = v.z; Bs[e % 4 * 4 + 3][e / 4] = v.w;
            } else st4(&Bs[e / 16][e % 16 * 4], ld4(B + (k0 + e / 16) * N + n0 + e % 16 * 4));
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float x[8], y[4];
            *(float4*)x = ld4(&As[k][ty * 8]); *(float4*)(x + 4) = ld4(&As[k][ty * 8 + 4]);
            *(float4*)y = ld4(&Bs[k][tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) st4(C + (m0 + ty * 8 + i) * N + n0 + tx * 4, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
}

__global__ void __launch_bounds__(256) sgemm_bias_relu(const float* A, const float* B, const float* bias, float* C, int M, int N, int K) {  // 32 x 64 tiles, 2 x 4 a thread, and an epilogue
    __shared__ float As[32][33], Bs[32][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 32, n0 = blockIdx.x * 64;
    float acc[2][4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
#pragma unroll
        for (int e = tid; e < 1024; e += 256) As[e / 32][e % 32] = A[(m0 + e / 32) * K + k0 + e % 32];
#pragma unroll
        for (int e = tid; e < 512; e += 256) st4(&Bs[e / 16][e % 16 * 4], ld4(B + (k0 + e / 16) * N + n0 + e % 16 * 4));
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 32; ++k) {
            float4 b = ld4(&Bs[k][tx * 4]);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float a = As[ty * 2 + i][k];
                acc[i][0] += a * b.x; acc[i][1] += a * b.y; acc[i][2] += a * b.z; acc[i][3] += a * b.w;
            }
        }
        __syncthreads();
    }
    float4 c = ld4(bias + n0 + tx * 4);
#pragma unroll
    for (int i = 0; i < 2; ++i) st4(C + (m0 + ty * 2 + i) * N + n0 + tx * 4, make_float4(fmaxf(acc[i][0] + c.x, 0.f), fmaxf(acc[i][1] + c.y, 0.f), fmaxf(acc[i][2] + c.z, 0.f), fmaxf(acc[i][3] + c.w, 0.f)));
}

__global__ void __launch_bounds__(256) ssyrk(const float* A, float* C, int N, int K) {  // C = A A^T, tiles of the lower triangle, mirrored
    if (blockIdx.x > blockIdx.y) return;
    __shared__ float P[16][65], Q[16][65];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            P[tx][ty + 16 * i] = A[(m0 + ty + 16 * i) * K + k0 + tx];
            Q[tx][ty + 16 * i] = A[(n0 + ty + 16 * i) * K + k0 + tx];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += P[k][ty + 16 * i] * Q[k][tx + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int r = m0 + ty + 16 * i, c = n0 + tx + 16 * j;
            C[r * N + c] = acc[i][j];
            if (blockIdx.x < blockIdx.y) C[c * N + r] = acc[i][j];
        }
}

__global__ void __launch_bounds__(256) sgemm_guarded(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta) {  // 64 x 64 x 8, 4 x 4 a thread, any size
    __shared__ float As[8][64], Bs[8][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        for (int e = tid; e < 512; e += 256) {
            int r = m0 + e / 8, c = k0 + e % 8;
            As[e % 8][e / 8] = r < M && c < K ? A[r * K + c] : 0.f;
            r = k0 + e / 64, c = n0 + e % 64;
            Bs[e / 64][e % 64] = r < K && c < N ? B[r * N + c] : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) { x[i] = As[k][ty * 4 + i]; y[i] = Bs[k][tx * 4 + i]; }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            int r = m0 + ty * 4 + i, c = n0 + tx * 4 + j;
            if (r < M && c < N) C[r * N + c] = alpha * acc[i][j] + beta * C[r * N + c];
        }
}

__global__ void __launch_bounds__(256) cgemm(const float2* A, const float2* B, float2* C, int M, int N, int K) {  // complex, 32 x 32 x 16, 2 x 2 a thread
    __shared__ float2 As[32][17], Bs[16][32];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
    float2 acc[2][2] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
        for (int e = tid; e < 512; e += 256) {
            As[e / 16][e % 16] = A[(m0 + e / 16) * K + k0 + e % 16];
            Bs[e / 32][e % 32] = B[(k0 + e / 32) * N + n0 + e % 32];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    float2 a = As[ty + 16 * i][k], b = Bs[k][tx + 16 * j];
                    acc[i][j].x += a.x * b.x - a.y * b.y;
                    acc[i][j].y += a.x * b.y + a.y * b.x;
                }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) C[(m0 + ty + 16 * i) * N + n0 + tx + 16 * j] = acc[i][j];
}

__global__ void __launch_bounds__(256) dgemm_4x4(const double* A, const double* B, double* C, int M, int N, int K) {  // 64 x 64 x 8 by DFMA
    __shared__ double As[8][66], Bs[8][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    double acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        double2 a = *(const double2*)(A + (m0 + tid / 4) * K + k0 + tid % 4 * 2), b = *(const double2*)(B + (k0 + tid / 32) * N + n0 + tid % 32 * 2);
        As[tid % 4 * 2][tid / 4] = a.x; As[tid % 4 * 2 + 1][tid / 4] = a.y;
        *(double2*)&Bs[tid / 32][tid % 32 * 2] = b;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            double x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) { x[i] = As[k][ty + 16 * i]; y[i] = Bs[k][tx + 16 * i]; }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) C[(m0 + ty + 16 * i) * N + n0 + tx + 16 * j] = acc[i][j];
}

template <int K> __global__ void __launch_bounds__(256) sgemm_small_k(const float* A, const float* B, float* C, int M, int N) {  // all of K at once: 128 x 64, 8 x 4 a thread
    __shared__ float As[128][K + 1], Bs[K][64];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 128, n0 = blockIdx.x * 64;
    for (int e = tid; e < 128 * K; e += 256) As[e / K][e % K] = A[m0 * K + e];
    for (int e = tid; e < K * 64; e += 256) Bs[e / 64][e % 64] = B[e / 64 * N + n0 + e % 64];
    __syncthreads();
    float acc[8][4] = {};
#pragma unroll
    for (int k = 0; k < K; ++k) {
        float4 b = ld4(&Bs[k][tx * 4]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float a = As[ty + 16 * i][k];
            acc[i][0] += a * b.x; acc[i][1] += a * b.y; acc[i][2] += a * b.z; acc[i][3] += a * b.w;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) st4(C + (size_t)(m0 + ty + 16 * i) * N + n0 + tx * 4, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
}

// ------------------------------------------------------------------------------------------------ fp16 and other products

__global__ void hgemm_rows_by_y(const half* A, const half* B, half* C, int M, int N, int K) {  // naive
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float s = 0.f;
    for (int k = 0; k < K; ++k) s += __half2float(A[row * K + k]) * __half2float(B[k * N + col]);
    C[row * N + col] = __float2half(s);
}

__global__ void __launch_bounds__(512) hgemm_sliced_hfma2(const half* A, const half* B, half* C, int M, int N, int K) {  // 32 x 32 a block of 16 x 32, two columns a thread
    __shared__ half As[32][34];
    __shared__ half2 Bs[32][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + 2 * tx;
    half2 s = __float2half2_rn(0.f);
    for (int k0 = 0; k0 < K; k0 += 32) {
        *(half2*)&As[ty][2 * tx] = *(const half2*)(A + row * K + k0 + 2 * tx);
        Bs[ty][tx] = *(const half2*)(B + (k0 + ty) * N + col);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; ++k) s = __hfma2(__half2half2(As[ty][k]), Bs[k][tx], s);
        __syncthreads();
    }
    *(half2*)(C + row * N + col) = s;
}

__global__ void __launch_bounds__(256) hgemm_8x8_half8(const half* A, const half* B, half* C, int M, int N, int K) {  // 128 x 128 x 16, 8 x 8 a thread by HFMA2, 16 bytes an access
    __shared__ __align__(16) half As[16][128 + 8], Bs[16][128];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
    half2 acc[8][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] = __float2half2_rn(0.f);
    for (int k0 = 0; k0 < K; k0 += 16) {
        half v[8];
        *(uint4*)v = *(const uint4*)(A + (m0 + tid / 2) * K + k0 + tid % 2 * 8);
#pragma unroll
        for (int i = 0; i < 8; ++i) As[tid % 2 * 8 + i][tid / 2] = v[i];
        *(uint4*)&Bs[ty][tx * 8] = *(const uint4*)(B + (k0 + ty) * N + n0 + tx * 8);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            half x[8];
            half2 y[4];
            *(uint4*)x = *(const uint4*)&As[k][ty * 8];
            *(uint4*)y = *(const uint4*)&Bs[k][tx * 8];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] = __hfma2(__half2half2(x[i]), y[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) *(uint4*)(C + (m0 + ty * 8 + i) * N + n0 + tx * 8) = *(uint4*)acc[i];
}

__global__ void __launch_bounds__(128) hgemm_wmma_64(const half* A, const half* B, half* C, int M, int N, int K) {  // 64 x 64 x 32, four warps of 32 x 32
    using namespace nvcuda;
    __shared__ __align__(32) half As[64][32 + 8], Bs[32][64 + 8];
    const int tid = threadIdx.x, warp = tid / 32, wm = warp / 2 * 32, wn = warp % 2 * 32, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> c[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(c[i][j], __float2half(0.f));
    for (int k0 = 0; k0 < K; k0 += 32) {
#pragma unroll
        for (int e = tid; e < 256; e += 128) {
            *(uint4*)&As[e / 4][e % 4 * 8] = *(const uint4*)(A + (m0 + e / 4) * K + k0 + e % 4 * 8);
            *(uint4*)&Bs[e / 8][e % 8 * 8] = *(const uint4*)(B + (k0 + e / 8) * N + n0 + e % 8 * 8);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) { wmma::load_matrix_sync(a[i], &As[wm + 16 * i][k], 40); wmma::load_matrix_sync(b[i], &Bs[k][wn + 16 * i], 72); }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(C + (m0 + wm + 16 * i) * N + n0 + wn + 16 * j, c[i][j], N, wmma::mem_row_major);
}

__global__ void __launch_bounds__(256) hgemm_wmma_async(const half* A, const half* B, float* C, int M, int N, int K) {  // 128 x 128 x 32, eight warps of 64 x 32, cp.async into two buffers
    using namespace nvcuda;
    __shared__ __align__(32) half As[2][128][32 + 8], Bs[2][32][128 + 8];
    const int tid = threadIdx.x, warp = tid / 32, wm = warp / 4 * 64, wn = warp % 4 * 32, m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(c[i][j], 0.f);
    auto fetch = [&](int s, int k0) {
#pragma unroll
        for (int e = tid; e < 512; e += 256) {
            copy16(&As[s][e / 4][e % 4 * 8], A + (m0 + e / 4) * K + k0 + e % 4 * 8);
            copy16(&Bs[s][e / 16][e % 16 * 8], B + (k0 + e / 16) * N + n0 + e % 16 * 8);
        }
        commit();
    };
    fetch(0, 0);
    for (int k0 = 0, s = 0; k0 < K; k0 += 32, s ^= 1) {
        wait_copies<0>();
        __syncthreads();
        if (k0 + 32 < K) fetch(s ^ 1, k0 + 32);
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[4];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b[2];
#pragma unroll
            for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(a[i], &As[s][wm + 16 * i][k], 40);
#pragma unroll
            for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(b[j], &Bs[s][k][wn + 16 * j], 136);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(C + (m0 + wm + 16 * i) * N + n0 + wn + 16 * j, c[i][j], N, wmma::mem_row_major);
}

template <int STAGES, bool SWIZZLE> __global__ void __launch_bounds__(256) hgemm_mma(const half* A, const half* B, half* C, int M, int N, int K) {  // 128 x 128 x 32 by ldmatrix and m16n8k16, eight warps of 64 x 32
    extern __shared__ __align__(128) half tiles[];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, wm = warp / 4 * 64, wn = warp % 4 * 32, m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
    auto a_at = [&](int s, int r, int chunk) { return tiles + s * 8192 + r * 32 + (SWIZZLE ? chunk ^ (r >> 1 & 3) : chunk) * 8; };
    auto b_at = [&](int s, int r, int chunk) { return tiles + s * 8192 + 4096 + r * 128 + (SWIZZLE ? chunk ^ (r & 7) : chunk) * 8; };
    auto fetch = [&](int s, int k0) {
#pragma unroll
        for (int e = tid; e < 512; e += 256) {
            copy16(a_at(s, e / 4, e % 4), A + (m0 + e / 4) * K + k0 + e % 4 * 8);
            copy16(b_at(s, e / 16, e % 16), B + (k0 + e / 16) * N + n0 + e % 16 * 8);
        }
    };
    float c[4][4][4] = {};
    const int steps = K / 32;
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) { if (s < steps) fetch(s, s * 32); commit(); }
    for (int t = 0; t < steps; ++t) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (t + STAGES - 1 < steps) fetch((t + STAGES - 1) % STAGES, (t + STAGES - 1) * 32);
        commit();
        const int s = t % STAGES;
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            u32 a[4][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) ldsm4(a[i], a_at(s, wm + 16 * i + lane % 16, k / 8 + lane / 16));
#pragma unroll
            for (int j = 0; j < 2; ++j) ldsm4t(b[j], b_at(s, k + lane % 16, (wn + 16 * j) / 8 + lane / 16));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) mma_f32(c[i][j], a[i], b[j / 2] + j % 2 * 2);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            half* to = C + (m0 + wm + 16 * i + lane / 4) * N + n0 + wn + 8 * j + lane % 4 * 2;
            *(half2*)to = __floats2half2_rn(c[i][j][0], c[i][j][1]);
            *(half2*)(to + 8 * N) = __floats2half2_rn(c[i][j][2], c[i][j][3]);
        }
}

// C = A B^T with rows of K elements of both, 64 x 64 tiles of 64 bytes, four warps of 32 x 32; global memory through registers into padded rows
#define NT_TILE(TYPE, ACC, REGS, MMA, STORE)                                                                                     \
    constexpr int E = 64 / sizeof(TYPE);                                                                                           \
    __shared__ __align__(16) char As[64][80], Bs[64][80];                                                                          \
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, wm = warp / 2 * 32, wn = warp % 2 * 32, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64; \
    ACC c[2][4][REGS] = {};                                                                                                        \
    uint4 va[2], vb[2];                                                                                                            \
    for (int i = 0; i < 2; ++i) { int e = tid + 128 * i; va[i] = *(const uint4*)(A + (size_t)(m0 + e / 4) * K + e % 4 * (E / 4)); vb[i] = *(const uint4*)(B + (size_t)(n0 + e / 4) * K + e % 4 * (E / 4)); } \
    for (int k0 = E; k0 <= K; k0 += E) {                                                                                           \
        _Pragma("unroll") for (int i = 0; i < 2; ++i) { int e = tid + 128 * i; *(uint4*)&As[e / 4][e % 4 * 16] = va[i]; *(uint4*)&Bs[e / 4][e % 4 * 16] = vb[i]; } \
        __syncthreads();                                                                                                           \
        if (k0 < K) { _Pragma("unroll") for (int i = 0; i < 2; ++i) { int e = tid + 128 * i; va[i] = *(const uint4*)(A + (size_t)(m0 + e / 4) * K + k0 + e % 4 * (E / 4)); vb[i] = *(const uint4*)(B + (size_t)(n0 + e / 4) * K + k0 + e % 4 * (E / 4)); } } \
        _Pragma("unroll") for (int k = 0; k < 64; k += 32) {                                                                       \
            u32 a[2][4], b[2][4];                                                                                                  \
            _Pragma("unroll") for (int i = 0; i < 2; ++i) ldsm4(a[i], &As[wm + 16 * i + lane % 16][k + lane / 16 * 16]);          \
            _Pragma("unroll") for (int j = 0; j < 2; ++j) ldsm4(b[j], &Bs[wn + 16 * j + lane % 8 + lane / 16 * 8][k + lane / 8 % 2 * 16]); \
            _Pragma("unroll") for (int i = 0; i < 2; ++i) { _Pragma("unroll") for (int j = 0; j < 4; ++j) MMA(c[i][j], a[i], b[j / 2] + j % 2 * 2); } \
        }                                                                                                                          \
        __syncthreads();                                                                                                           \
    }                                                                                                                              \
    _Pragma("unroll") for (int i = 0; i < 2; ++i) { _Pragma("unroll") for (int j = 0; j < 4; ++j) { size_t at = (size_t)(m0 + wm + 16 * i + lane / 4) * N + n0 + wn + 8 * j + lane % 4 * 2; STORE } }
__device__ __forceinline__ void mma_bf16(float* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_s8(int* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_f16(u32* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};\n"
                 : "+r"(c[0]), "+r"(c[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__global__ void __launch_bounds__(128) bgemm_mma_nt(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
    NT_TILE(__nv_bfloat16, float, 4, mma_bf16, *(__nv_bfloat162*)(C + at) = __floats2bfloat162_rn(c[i][j][0], c[i][j][1]); *(__nv_bfloat162*)(C + at + 8 * N) = __floats2bfloat162_rn(c[i][j][2], c[i][j][3]);)
}
__global__ void __launch_bounds__(128) igemm_mma_nt(const signed char* A, const signed char* B, int* C, int M, int N, int K) {
    NT_TILE(char, int, 4, mma_s8, *(int2*)(C + at) = make_int2(c[i][j][0], c[i][j][1]); *(int2*)(C + at + 8 * N) = make_int2(c[i][j][2], c[i][j][3]);)
}
__global__ void __launch_bounds__(128) hgemm_mma_f16_nt(const half* A, const half* B, half* C, int M, int N, int K) {
    NT_TILE(half, u32, 2, mma_f16, *(u32*)(C + at) = c[i][j][0]; *(u32*)(C + at + 8 * N) = c[i][j][1];)
}

__global__ void __launch_bounds__(128) tf32_wmma(const float* A, const float* B, float* C, int M, int N, int K) {  // 64 x 64 x 16, four warps of 16 x 64
    using namespace nvcuda;
    __shared__ __align__(32) float As[64][20], Bs[16][68];
    const int tid = threadIdx.x, warp = tid / 32, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> c[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(c[j], 0.f);
    for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
        for (int e = tid; e < 256; e += 128) {
            st4(&As[e / 4][e % 4 * 4], ld4(A + (m0 + e / 4) * K + k0 + e % 4 * 4));
            st4(&Bs[e / 16][e % 16 * 4], ld4(B + (k0 + e / 16) * N + n0 + e % 16 * 4));
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k += 8) {
            wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
            wmma::load_matrix_sync(a, &As[warp * 16][k], 20);
#pragma unroll
            for (int i = 0; i < a.num_elements; ++i) a.x[i] = wmma::__float_to_tf32(a.x[i]);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
                wmma::load_matrix_sync(b, &Bs[k][j * 16], 68);
#pragma unroll
                for (int i = 0; i < b.num_elements; ++i) b.x[i] = wmma::__float_to_tf32(b.x[i]);
                wmma::mma_sync(c[j], a, b, c[j]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::store_matrix_sync(C + (m0 + warp * 16) * N + n0 + 16 * j, c[j], N, wmma::mem_row_major);
}

template <int WARPS> __global__ void __launch_bounds__(WARPS * 32) hgemm_skinny(const half* A, const half* W, half* C, int N, int K) {  // 16 rows times W^T: a block 8 columns, its warps parts of K, operands straight from global memory
    __shared__ float parts[WARPS][16][8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, n0 = blockIdx.x * 8;
    const half *a0 = A + g * K + 2 * t, *a1 = a0 + 8 * K, *w = W + (size_t)(n0 + g) * K + 2 * t;
    float c[4] = {};
#pragma unroll 4
    for (int k = warp * 16; k < K; k += WARPS * 16) {
        u32 a[4] = {*(const u32*)(a0 + k), *(const u32*)(a1 + k), *(const u32*)(a0 + k + 8), *(const u32*)(a1 + k + 8)};
        u32 b[2] = {*(const u32*)(w + k), *(const u32*)(w + k + 8)};
        mma_f32(c, a, b);
    }
    *(float2*)&parts[warp][g][2 * t] = make_float2(c[0], c[1]);
    *(float2*)&parts[warp][g + 8][2 * t] = make_float2(c[2], c[3]);
    __syncthreads();
    if (threadIdx.x < 128) {
        float s = 0.f;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) s += parts[i][threadIdx.x / 8][threadIdx.x % 8];
        C[threadIdx.x / 8 * N + n0 + threadIdx.x % 8] = __float2half(s);
    }
}

// ------------------------------------------------------------------------------------------------ attention and its neighbours

__global__ void qk_scores(const float* Q, const float* Kt, float* S, int T, int D, float scale) {  // Q K^T of a head each blockIdx.z, tiles of 16 x 16
    __shared__ float q[16][17], k[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    Q += (size_t)blockIdx.z * T * D;
    Kt += (size_t)blockIdx.z * T * D;
    float s = 0.f;
    for (int d = 0; d < D; d += 16) {
        q[ty][tx] = Q[row * D + d + tx];
        k[ty][tx] = Kt[(blockIdx.x * 16 + ty) * D + d + tx];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) s += q[ty][i] * k[tx][i];
        __syncthreads();
    }
    S[((size_t)blockIdx.z * T + row) * T + col] = s * scale;
}

template <bool CAUSAL> __global__ void __launch_bounds__(128) flash_mma(const half* Q, const half* Kt, const half* V, half* O, int T, float scale) {  // 64 queries a block, 16 a warp, 64 keys a step, D = 64
    __shared__ __align__(16) half k[64][72], v[64][72];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
    const size_t head = (size_t)blockIdx.y * T * 64;
    const int q0 = blockIdx.x * 64;
#pragma unroll
    for (int e = tid; e < 512; e += 128) *(uint4*)&k[e / 8][e % 8 * 8] = *(const uint4*)(Q + head + (size_t)(q0 + e / 8) * 64 + e % 8 * 8);
    __syncthreads();
    u32 q[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) ldsm4(q[i], &k[warp * 16 + lane % 16][i * 16 + lane / 16 * 8]);
    __syncthreads();
    float o[8][4] = {}, m[2] = {-1e30f, -1e30f}, l[2] = {};
    const int end = CAUSAL ? q0 + 64 : T;
    for (int s0 = 0; s0 < end; s0 += 64) {
#pragma unroll
        for (int e = tid; e < 512; e += 128) {
            copy16(&k[e / 8][e % 8 * 8], Kt + head + (size_t)(s0 + e / 8) * 64 + e % 8 * 8);
            copy16(&v[e / 8][e % 8 * 8], V + head + (size_t)(s0 + e / 8) * 64 + e % 8 * 8);
        }
        commit();
        wait_copies<0>();
        __syncthreads();
        float s[8][4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                u32 b[4];
                ldsm4(b, &k[j * 16 + lane % 8 + lane / 16 * 8][i * 16 + lane / 8 % 2 * 8]);
                mma_f32(s[2 * j], q[i], b);
                mma_f32(s[2 * j + 1], q[i], b + 2);
            }
        float top[2] = {m[0], m[1]};
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                s[j][e] *= scale;
                if (CAUSAL && s0 + j * 8 + t * 2 + e % 2 > q0 + warp * 16 + g + e / 2 * 8) s[j][e] = -1e30f;
                top[e / 2] = fmaxf(top[e / 2], s[j][e]);
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            top[h] = fmaxf(top[h], __shfl_xor_sync(ALL, top[h], 1));
            top[h] = fmaxf(top[h], __shfl_xor_sync(ALL, top[h], 2));
            float c = exp2f(m[h] - top[h]);
            m[h] = top[h];
            l[h] *= c;
#pragma unroll
            for (int j = 0; j < 8; ++j) { o[j][2 * h] *= c; o[j][2 * h + 1] *= c; }
        }
        u32 p[8][2];
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float x = exp2f(s[j][2 * h] - m[h]), y = exp2f(s[j][2 * h + 1] - m[h]);
                l[h] += x + y;
                half2 xy = __floats2half2_rn(x, y);
                p[j][h] = *(u32*)&xy;
            }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 a[4] = {p[2 * i][0], p[2 * i][1], p[2 * i + 1][0], p[2 * i + 1][1]};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                u32 b[4];
                ldsm4t(b, &v[i * 16 + lane % 16][j * 16 + lane / 16 * 8]);
                mma_f32(o[2 * j], a, b);
                mma_f32(o[2 * j + 1], a, b + 2);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(ALL, l[h], 1);
        l[h] += __shfl_xor_sync(ALL, l[h], 2);
        float r = 1.f / l[h];
        half* to = O + head + (size_t)(q0 + warp * 16 + g + 8 * h) * 64 + 2 * t;
#pragma unroll
        for (int j = 0; j < 8; ++j) *(half2*)(to + 8 * j) = __floats2half2_rn(o[j][2 * h] * r, o[j][2 * h + 1] * r);
    }
}

template <int N> __global__ void softmax_registers(const float* x, float* y, int rows) {  // a warp a row of N, once through
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    x += (size_t)row * N;
    y += (size_t)row * N;
    float v[N / 32], m = -3e38f, s = 0.f;
#pragma unroll
    for (int i = 0; i < N / 32; ++i) { v[i] = x[threadIdx.x + 32 * i]; m = fmaxf(m, v[i]); }
    m = max_lanes(m);
#pragma unroll
    for (int i = 0; i < N / 32; ++i) { v[i] = expf(v[i] - m); s += v[i]; }
    s = 1.f / sum_lanes(s);
#pragma unroll
    for (int i = 0; i < N / 32; ++i) y[threadIdx.x + 32 * i] = v[i] * s;
}

template <int T, int V> __global__ void __launch_bounds__(T) softmax_block_float4(const float* x, float* y, int n) {  // a block a row of up to 4 T V, kept in registers
    const float* a = x + (size_t)blockIdx.x * n;
    float* b = y + (size_t)blockIdx.x * n;
    float4 v[V];
    float m = -3e38f, s = 0.f;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        int at = 4 * (threadIdx.x + i * T);
        v[i] = at < n ? ld4(a + at) : make_float4(-3e38f, -3e38f, -3e38f, -3e38f);
        m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    }
    m = max_threads<T>(m);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        v[i].x = __expf(v[i].x - m); v[i].y = __expf(v[i].y - m); v[i].z = __expf(v[i].z - m); v[i].w = __expf(v[i].w - m);
        s += v[i].x + v[i].y + v[i].z + v[i].w;
    }
    s = __fdividef(1.f, sum_threads<T>(s));
#pragma unroll
    for (int i = 0; i < V; ++i) {
        int at = 4 * (threadIdx.x + i * T);
        if (at < n) st4(b + at, make_float4(v[i].x * s, v[i].y * s, v[i].z * s, v[i].w * s));
    }
}

template <int V> __global__ void softmax_half8(const half* x, half* y) {  // a warp a row of 256 V
    size_t row = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    const uint4* a = (const uint4*)x + row * 32 * V;
    uint4* b = (uint4*)y + row * 32 * V;
    float v[V][8], m = -3e38f, s = 0.f;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        uint4 w = a[threadIdx.x + 32 * i];
        const half2* h = (const half2*)&w;
#pragma unroll
        for (int j = 0; j < 4; ++j) { float2 f = __half22float2(h[j]); v[i][2 * j] = f.x; v[i][2 * j + 1] = f.y; m = fmaxf(m, fmaxf(f.x, f.y)); }
    }
    m = max_lanes(m);
#pragma unroll
    for (int i = 0; i < V; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) { v[i][j] = __expf(v[i][j] - m); s += v[i][j]; }
    s = 1.f / sum_lanes(s);
#pragma unroll
    for (int i = 0; i < V; ++i) {
        uint4 w;
        half2* h = (half2*)&w;
#pragma unroll
        for (int j = 0; j < 4; ++j) h[j] = __floats2half2_rn(v[i][2 * j] * s, v[i][2 * j + 1] * s);
        b[threadIdx.x + 32 * i] = w;
    }
}

__global__ void rope_halves(half* q, int heads, int D, float base) {  // halves of a head turned, a block a position
    half* x = q + (size_t)blockIdx.x * heads * D;
    for (int e = threadIdx.x; e < heads * D / 2; e += blockDim.x) {
        int h = e / (D / 2), d = e % (D / 2);
        float s, c, turn = blockIdx.x * exp2f(-2.f * d / D * base);
        sincosf(turn, &s, &c);
        half *p = x + h * D + d, *r = p + D / 2;
        float u = __half2float(*p), w = __half2float(*r);
        *p = __float2half(u * c - w * s);
        *r = __float2half(w * c + u * s);
    }
}

__global__ void rms_norm_warp(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows, int n, float eps) {  // a warp a row, read twice
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const __nv_bfloat162 *a = (const __nv_bfloat162*)(x + (size_t)row * n), *g = (const __nv_bfloat162*)w;
    __nv_bfloat162* b = (__nv_bfloat162*)(y + (size_t)row * n);
    float s = 0.f;
    for (int i = threadIdx.x; i < n / 2; i += 32) { float2 f = __bfloat1622float2(a[i]); s += f.x * f.x + f.y * f.y; }
    s = rsqrtf(sum_lanes(s) / n + eps);
    for (int i = threadIdx.x; i < n / 2; i += 32) { float2 f = __bfloat1622float2(a[i]), k = __bfloat1622float2(g[i]); b[i] = __floats2bfloat162_rn(f.x * s * k.x, f.y * s * k.y); }
}

__global__ void layer_norm_welford(const float* x, const float* w, const float* bias, float* y, float* mean, float* rstd, int n) {  // a warp a row
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    const float* a = x + (size_t)row * n;
    float mu = 0.f, m2 = 0.f, count = 0.f;
    for (int i = lane; i < n; i += 32) {
        float v = a[i], d = v - mu;
        count += 1.f;
        mu += d / count;
        m2 += d * (v - mu);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        float mu_b = __shfl_xor_sync(ALL, mu, d), m2_b = __shfl_xor_sync(ALL, m2, d), delta = mu_b - mu;
        mu = 0.5f * (mu + mu_b);
        m2 += m2_b + delta * delta * count * 0.5f;
        count *= 2.f;
    }
    float r = rsqrtf(m2 / n + 1e-5f);
    if (lane == 0) { mean[row] = mu; rstd[row] = r; }
    for (int i = lane; i < n; i += 32) y[(size_t)row * n + i] = (a[i] - mu) * r * w[i] + bias[i];
}

template <int T> __global__ void __launch_bounds__(T) add_layer_norm(float* residual, const float* x, const float* w, const float* bias, float* y, int n) {  // residual += x, y = its norm; a block a row of up to 4 T
    float* r = residual + (size_t)blockIdx.x * n;
    const int at = 4 * threadIdx.x;
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (at < n) {
        float4 a = ld4(r + at), b = ld4(x + (size_t)blockIdx.x * n + at);
        v = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
        st4(r + at, v);
    }
    float s = sum_threads<T>(v.x + v.y + v.z + v.w), q = sum_threads<T>(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
    float mu = s / n, k = rsqrtf(fmaxf(q / n - mu * mu, 0.f) + 1e-5f);
    if (at < n) {
        float4 g = ld4(w + at), c = ld4(bias + at);
        st4(y + (size_t)blockIdx.x * n + at, make_float4((v.x - mu) * k * g.x + c.x, (v.y - mu) * k * g.y + c.y, (v.z - mu) * k * g.z + c.z, (v.w - mu) * k * g.w + c.w));
    }
}

__global__ void __launch_bounds__(512) cross_entropy(const float* logits, const int* targets, float* losses, float* grad, int n) {  // a block a row: loss, and its gradient
    const float* x = logits + (size_t)blockIdx.x * n;
    float m = -3e38f, s = 0.f;
    for (int i = threadIdx.x; i < n; i += 512) m = fmaxf(m, x[i]);
    m = max_threads<512>(m);
    for (int i = threadIdx.x; i < n; i += 512) s += __expf(x[i] - m);
    s = sum_threads<512>(s);
    int target = targets[blockIdx.x];
    if (threadIdx.x == 0) losses[blockIdx.x] = m + logf(s) - x[target];
    for (int i = threadIdx.x; i < n; i += 512) grad[(size_t)blockIdx.x * n + i] = __expf(x[i] - m) / s - (i == target ? 1.f : 0.f);
}

__global__ void log_softmax_thread(const float* x, float* y, int rows, int n) {  // few classes, a thread a row
    int row = FLAT;
    if (row >= rows) return;
    x += row * n;
    y += row * n;
    float m = x[0], s = 0.f;
    for (int i = 1; i < n; ++i) m = fmaxf(m, x[i]);
    for (int i = 0; i < n; ++i) s += expf(x[i] - m);
    s = m + logf(s);
    for (int i = 0; i < n; ++i) y[i] = x[i] - s;
}

__global__ void embedding_backward(const int* ids, const float* grad, float* table, int columns) {  // a block a token
    float* to = table + (size_t)(ids[blockIdx.x] + blockIdx.x % 64) * columns;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) atomicAdd(to + c, grad[(size_t)blockIdx.x * columns + c]);
}

__global__ void gelu_backward(const float4* x, const float4* dy, float4* dx, int n) {
    int i = FLAT;
    if (i >= n) return;
    float4 a = x[i], b = dy[i];
    float v[4] = {a.x, a.y, a.z, a.w}, g[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        float u = 0.79788456f * (v[j] + 0.044715f * v[j] * v[j] * v[j]), t = tanhf(u), c = 1.f - t * t;
        g[j] *= 0.5f * (1.f + t) + 0.5f * v[j] * c * 0.79788456f * (1.f + 3.f * 0.044715f * v[j] * v[j]);
    }
    dx[i] = make_float4(g[0], g[1], g[2], g[3]);
}

__global__ void swiglu_half8(const half* gate_up, half* y, int n) {  // rows of 2 n: gate, up; a block a row
    const uint4 *g = (const uint4*)(gate_up + (size_t)blockIdx.x * 2 * n), *u = g + n / 8;
    uint4* to = (uint4*)(y + (size_t)blockIdx.x * n);
    for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
        uint4 a = g[i], b = u[i], c;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 p = __half22float2(((half2*)&a)[j]), q = __half22float2(((half2*)&b)[j]);
            ((half2*)&c)[j] = __floats2half2_rn(p.x / (1.f + __expf(-p.x)) * q.x, p.y / (1.f + __expf(-p.y)) * q.y);
        }
        to[i] = c;
    }
}

__global__ void dropout_hash(const float4* x, float4* y, int n, u32 seed, float keep) {  // random numbers by hashing the place
    int i = FLAT;
    if (i >= n) return;
    float4 v = x[i];
    float* e = &v.x;
    float scale = 1.f / keep;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        u32 h = (4 * i + j) ^ seed;
        h ^= h >> 16; h *= 0x7feb352du; h ^= h >> 15; h *= 0x846ca68bu; h ^= h >> 16;
        e[j] = (h >> 8) * (1.f / 16777216.f) < keep ? e[j] * scale : 0.f;
    }
    y[i] = v;
}

__global__ void adamw_float4(float* p, const float* g, float* m, float* v, int n, float lr, float b1, float b2, float eps, float decay, float correct1, float correct2) {
    int stride = 4 * gridDim.x * blockDim.x;
    for (int i = 4 * FLAT; i < n; i += stride) {
        float4 a = ld4(p + i), d = ld4(g + i), e = ld4(m + i), f = ld4(v + i);
        float *pp = &a.x, *dd = &d.x, *ee = &e.x, *ff = &f.x;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            ee[j] = b1 * ee[j] + (1.f - b1) * dd[j];
            ff[j] = b2 * ff[j] + (1.f - b2) * dd[j] * dd[j];
            pp[j] -= lr * (ee[j] * correct1 / (sqrtf(ff[j] * correct2) + eps) + decay * pp[j]);
        }
        st4(p + i, a); st4(m + i, e); st4(v + i, f);
    }
}

// ------------------------------------------------------------------------------------------------ sums and scans

__global__ void __launch_bounds__(512) dot_one_atomic(const float4* a, const float4* b, float* out, int n) {
    float s = 0.f;
    for (int i = FLAT; i < n; i += gridDim.x * 512) { float4 x = a[i], y = b[i]; s += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; }
    s = sum_threads<512>(s);
    if (threadIdx.x == 0) atomicAdd(out, s);
}

template <int T> __global__ void __launch_bounds__(T) reduce_tree(const float* in, float* out, int n) {  // shared memory, halves added; a number a block, the second stage by one block
    __shared__ float s[T];
    float x = 0.f;
    for (int i = blockIdx.x * 2 * T + threadIdx.x; i < n; i += 2 * T * gridDim.x) x += in[i] + (i + T < n ? in[i + T] : 0.f);
    s[threadIdx.x] = x;
    __syncthreads();
#pragma unroll
    for (int d = T / 2; d > 32; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        x = sum_lanes(s[threadIdx.x] + s[threadIdx.x + 32]);
        if (threadIdx.x == 0) out[blockIdx.x] = x;
    }
}

__global__ void __launch_bounds__(256) argmax_rows(const float* x, int* out, int n) {  // a block a row
    __shared__ float best[8];
    __shared__ int place[8];
    float m = -3e38f;
    int at = 0;
    for (int i = threadIdx.x; i < n; i += 256) { float v = x[(size_t)blockIdx.x * n + i]; if (v > m) { m = v; at = i; } }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        float o = __shfl_down_sync(ALL, m, d);
        int p = __shfl_down_sync(ALL, at, d);
        if (o > m || (o == m && p < at)) { m = o; at = p; }
    }
    if (threadIdx.x % 32 == 0) { best[threadIdx.x / 32] = m; place[threadIdx.x / 32] = at; }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) if (best[i] > m || (best[i] == m && place[i] < at)) { m = best[i]; at = place[i]; }
        out[blockIdx.x] = at;
    }
}

struct OfBf16 { static __device__ float sum(uint4 v) { float s = 0.f; const __nv_bfloat162* h = (const __nv_bfloat162*)&v; for (int i = 0; i < 4; ++i) { float2 f = __bfloat1622float2(h[i]); s += f.x + f.y; } return s; } };
struct OfHalf { static __device__ float sum(uint4 v) { const half2* h = (const half2*)&v; half2 s = __hadd2(__hadd2(h[0], h[1]), __hadd2(h[2], h[3])); return __low2float(s) + __high2float(s); } };
struct OfInt8 { static __device__ float sum(uint4 v) { int s = __dp4a((int)v.x, 0x01010101, 0); s = __dp4a((int)v.y, 0x01010101, s); s = __dp4a((int)v.z, 0x01010101, s); return (float)__dp4a((int)v.w, 0x01010101, s); } };
struct OfFp8 { static __device__ float sum(uint4 v) { float s = 0.f; const __nv_fp8x2_storage_t* p = (const __nv_fp8x2_storage_t*)&v; for (int i = 0; i < 8; ++i) { __half2_raw r = __nv_cvt_fp8x2_to_halfraw2(p[i], __NV_E4M3); float2 f = __half22float2(*(half2*)&r); s += f.x + f.y; } return s; } };
template <class Of> __global__ void __launch_bounds__(256) sum_packed(const uint4* x, float* out, int n) {  // 16 bytes a thread, an atomic a block
    int i = FLAT;
    float s = sum_threads<256>(i < n ? Of::sum(x[i]) : 0.f);
    if (threadIdx.x == 0) atomicAdd(out, s);
}

__global__ void __launch_bounds__(256) scan_parts(const int4* in, int4* out, int* totals, int n) {  // exclusive, 1024 a block, four a thread
    __shared__ int warps[8];
    int i = FLAT, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int4 v = i < n ? in[i] : make_int4(0, 0, 0, 0);
    int own = v.x + v.y + v.z + v.w, s = own;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) { int o = __shfl_up_sync(ALL, s, d); if (lane >= d) s += o; }
    if (lane == 31) warps[warp] = s;
    __syncthreads();
    int before = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) if (w < warp) before += warps[w];
    s += before - own;
    if (i < n) out[i] = make_int4(s, s + v.x, s + v.x + v.y, s + v.x + v.y + v.z);
    if (threadIdx.x == 255) totals[blockIdx.x] = s + own;
}
__global__ void __launch_bounds__(256) scan_add(const int* totals, int4* out, int n) {  // adds what blocks before have: each block sums their totals
    __shared__ int before;
    if (threadIdx.x == 0) before = 0;
    __syncthreads();
    int s = 0, i = FLAT;
    for (int b = threadIdx.x; b < blockIdx.x; b += 256) s += totals[b];
    s = __reduce_add_sync(ALL, s);
    if (threadIdx.x % 32 == 0) atomicAdd(&before, s);
    __syncthreads();
    if (i < n) { int4 v = out[i]; s = before; out[i] = make_int4(v.x + s, v.y + s, v.z + s, v.w + s); }
}

template <int BM> __global__ void bn_statistics(const float* x, float* mean, float* variance, int N, int C, int HW) {  // a block a channel of N x C x HW
    float s = 0.f, q = 0.f;
    for (int n = 0; n < N; ++n) {
        const float* p = x + ((size_t)n * C + blockIdx.x) * HW;
        for (int i = threadIdx.x; i < HW; i += BM) { float v = p[i]; s += v; q += v * v; }
    }
    s = sum_threads<BM>(s);
    q = sum_threads<BM>(q);
    if (threadIdx.x == 0) { float m = s / ((float)N * HW); mean[blockIdx.x] = m; variance[blockIdx.x] = q / ((float)N * HW) - m * m; }
}

__global__ void quantize_rows(const float* x, signed char* y, float* scales, int n) {  // fp32 to int8 with a scale a row; a warp a row
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    const float* a = x + (size_t)row * n;
    float m = 0.f;
    for (int i = 4 * threadIdx.x; i < n; i += 128) { float4 v = ld4(a + i); m = fmaxf(m, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)))); }
    m = max_lanes(m);
    float r = 127.f / fmaxf(m, 1e-8f);
    if (threadIdx.x == 0) scales[row] = m / 127.f;
    for (int i = 4 * threadIdx.x; i < n; i += 128) { float4 v = ld4(a + i); *(char4*)(y + (size_t)row * n + i) = make_char4(__float2int_rn(v.x * r), __float2int_rn(v.y * r), __float2int_rn(v.z * r), __float2int_rn(v.w * r)); }
}

// ------------------------------------------------------------------------------------------------ matrix and vector

__global__ void gemv_k16(const float* A, const float* x, float* y, int rows) {  // two rows a warp, 16 lanes each
    int row = blockIdx.x * (blockDim.x / 16) + threadIdx.x / 16, lane = threadIdx.x % 16;
    if (row >= rows) return;
    float s = sum_lanes<16>(A[row * 16 + lane] * x[lane]);
    if (lane == 0) y[row] = s;
}
__global__ void gemv_k32(const float* A, const float* x, float* y, int rows) {  // a warp a row
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float s = sum_lanes(A[row * 32 + threadIdx.x] * x[threadIdx.x]);
    if (threadIdx.x == 0) y[row] = s;
}
__global__ void gemv_k128(const float4* A, const float4* x, float* y, int rows) {  // a warp a row, a float4 a lane
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float4 a = A[row * 32 + threadIdx.x], b = x[threadIdx.x];
    float s = sum_lanes(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
    if (threadIdx.x == 0) y[row] = s;
}
__global__ void gemv_half8(const half* A, const half* x, half* y, int n) {  // a block of 128 a row
    __shared__ float parts[4];
    const uint4 *a = (const uint4*)(A + (size_t)blockIdx.x * n), *b = (const uint4*)x;
    float s = 0.f;
    for (int i = threadIdx.x; i < n / 8; i += 128) {
        uint4 u = a[i], v = b[i];
#pragma unroll
        for (int j = 0; j < 4; ++j) { float2 p = __half22float2(((half2*)&u)[j]), q = __half22float2(((half2*)&v)[j]); s += p.x * q.x + p.y * q.y; }
    }
    s = sum_lanes(s);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = __float2half(parts[0] + parts[1] + parts[2] + parts[3]);
}
__global__ void gemv_int4(const u32* W, const half* scales, const half* x, half* y, int n) {  // eight weights of four bits a word, a scale for 128; a warp a row
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    const u32* w = W + (size_t)row * (n / 8);
    float s = 0.f;
    for (int i = threadIdx.x; i < n / 8; i += 32) {
        u32 q = w[i];
        uint4 v = ((const uint4*)x)[i];
        const half* e = (const half*)&v;
        float part = 0.f;
#pragma unroll
        for (int j = 0; j < 8; ++j) part += (float)((int)(q >> 4 * j & 15) - 8) * __half2float(e[j]);
        s += part * __half2float(scales[row * (n / 128) + i / 16]);
    }
    s = sum_lanes(s);
    if (threadIdx.x == 0) y[row] = __float2half(s);
}
__global__ void spmv_fixed16(const int* columns, const float* values, const float* x, float* y, int rows) {  // CSR, 16 of each row, a thread a row
    int row = FLAT;
    if (row >= rows) return;
    float s = 0.f;
    for (int e = row * 16; e < row * 16 + 16; ++e) s += values[e] * x[columns[e]];
    y[row] = s;
}
__global__ void spmv_lanes(const int* columns, const float* values, const float* x, float* y, int rows) {  // eight lanes a row
    int row = FLAT / 8, lane = threadIdx.x % 8;
    if (row >= rows) return;
    float s = 0.f;
#pragma unroll
    for (int e = lane; e < 16; e += 8) s += values[row * 16 + e] * x[columns[row * 16 + e] + (row & 1023)];
    s = sum_lanes<8>(s);
    if (lane == 0) y[row] = s;
}

// ------------------------------------------------------------------------------------------------ pictures, grids and the rest

__global__ void transpose_swizzled(const float* a, float* b, int rows, int columns) {  // 32 x 32, float4 both ways, places in shared memory by XOR
    __shared__ float4 s[32][8];
    int x = threadIdx.x % 8, y = threadIdx.x / 8, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
    s[y][x ^ (y / 4)] = ld4(a + (size_t)(r0 + y) * columns + c0 + 4 * x);
    __syncthreads();
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = ((const float*)&s[4 * x + i][(y / 4) ^ x])[y % 4];
    st4(b + (size_t)(c0 + y) * rows + r0 + 4 * x, *(float4*)v);
}

__constant__ float weights3[9];
__global__ void __launch_bounds__(256) conv3x3_shared(const float* x, float* y, int H, int W) {  // tiles of 32 x 8 with their edges
    __shared__ float s[10][34];
    int c0 = blockIdx.x * 32, r0 = blockIdx.y * 8, tid = threadIdx.y * 32 + threadIdx.x;
    for (int e = tid; e < 340; e += 256) {
        int r = r0 + e / 34 - 1, c = c0 + e % 34 - 1;
        s[e / 34][e % 34] = r >= 0 && r < H && c >= 0 && c < W ? x[r * W + c] : 0.f;
    }
    __syncthreads();
    float v = 0.f;
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = 0; j < 3; ++j) v += weights3[3 * i + j] * s[threadIdx.y + i][threadIdx.x + j];
    int r = r0 + threadIdx.y, c = c0 + threadIdx.x;
    if (r < H && c < W) y[r * W + c] = v;
}
template <int R> __global__ void __launch_bounds__(256) conv1d(const float* x, const float* w, float* y, int n) {  // 2 R + 1 taps
    __shared__ float s[256 + 2 * R], k[2 * R + 1];
    int i0 = blockIdx.x * 256;
    for (int e = threadIdx.x; e < 256 + 2 * R; e += 256) { int i = i0 + e - R; s[e] = i >= 0 && i < n ? x[i] : 0.f; }
    if (threadIdx.x < 2 * R + 1) k[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    float v = 0.f;
#pragma unroll
    for (int j = 0; j <= 2 * R; ++j) v += k[j] * s[threadIdx.x + j];
    if (i0 + threadIdx.x < n) y[i0 + threadIdx.x] = v;
}
__global__ void depthwise3x3(const float* x, const float* w, float* y, int C, int H, int W) {  // a thread an output, a channel each blockIdx.y
    int i = FLAT, c = blockIdx.y, r = i / W, q = i % W;
    if (i >= H * W) return;
    x += (size_t)c * H * W;
    float v = 0.f;
#pragma unroll
    for (int a = -1; a <= 1; ++a)
#pragma unroll
        for (int b = -1; b <= 1; ++b)
            if (r + a >= 0 && r + a < H && q + b >= 0 && q + b < W) v += x[(r + a) * W + q + b] * __ldg(w + c * 9 + (a + 1) * 3 + b + 1);
    y[(size_t)c * H * W + i] = v;
}
__global__ void im2col3x3(const float* x, float* columns, int C, int H, int W) {  // rows of C * 9, a thread a channel and place
    int i = FLAT;
    if (i >= C * H * W) return;
    int q = i % W, r = i / W % H, c = i / W / H;
    float* to = columns + (size_t)c * 9 * H * W + r * W + q;
#pragma unroll
    for (int a = 0; a < 3; ++a)
#pragma unroll
        for (int b = 0; b < 3; ++b) {
            int rr = r + a - 1, qq = q + b - 1;
            to[(size_t)(3 * a + b) * H * W] = rr >= 0 && rr < H && qq >= 0 && qq < W ? x[(c * H + rr) * W + qq] : 0.f;
        }
}
__global__ void max_pool3_stride2(const float* x, float* y, int C, int H, int W) {  // to H / 2 x W / 2
    int i = FLAT, h = H / 2, w = W / 2;
    if (i >= C * h * w) return;
    int q = i % w, r = i / w % h, c = i / w / h;
    float m = -3e38f;
    for (int a = -1; a <= 1; ++a)
        for (int b = -1; b <= 1; ++b) {
            int rr = 2 * r + a, qq = 2 * q + b;
            if (rr >= 0 && rr < H && qq >= 0 && qq < W) m = fmaxf(m, x[(c * H + rr) * W + qq]);
        }
    y[i] = m;
}
__global__ void stencil7(const float* a, float* b, int n, float c0, float c1) {  // a column of n points a thread, along z
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, plane = n * n;
    if (x < 1 || x >= n - 1 || y < 1 || y >= n - 1) return;
    int i = y * n + x;
    float below = a[i], here = a[i + plane];
    for (int z = 1; z < n - 1; ++z) {
        i += plane;
        float above = a[i + plane];
        b[i] = c0 * here + c1 * (below + above + a[i - 1] + a[i + 1] + a[i - n] + a[i + n]);
        below = here;
        here = above;
    }
}
__global__ void pi_xorshift(unsigned long long* hits, int tries) {  // Monte Carlo
    u32 s = FLAT * 2654435761u + 12345u;
    int in = 0;
    for (int i = 0; i < tries; ++i) {
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        float x = (s & 0xffff) * (1.f / 65536.f), y = (s >> 16) * (1.f / 65536.f);
        if (x * x + y * y < 1.f) ++in;
    }
    in = __reduce_add_sync(ALL, in);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)in);
}
__global__ void mandelbrot(unsigned char* image, int W, int H, int most) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= W || py >= H) return;
    float cx = -2.f + 3.f * px / W, cy = -1.f + 2.f * py / H, x = 0.f, y = 0.f;
    int i = 0;
    for (; i < most && x * x + y * y < 4.f; ++i) { float t = x * x - y * y + cx; y = 2.f * x * y + cy; x = t; }
    image[py * W + px] = (unsigned char)(255 * i / most);
}
__global__ void __launch_bounds__(128) nearest(const float3* points, const float3* queries, float* distance, int* which, int n) {  // tiles of 128 points in shared memory
    __shared__ float px[128], py[128], pz[128];
    float3 q = queries[FLAT];
    float best = 3e38f;
    int at = -1;
    for (int t = 0; t < n; t += 128) {
        float3 p = points[t + threadIdx.x];
        px[threadIdx.x] = p.x; py[threadIdx.x] = p.y; pz[threadIdx.x] = p.z;
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 128; ++k) {
            float dx = px[k] - q.x, dy = py[k] - q.y, dz = pz[k] - q.z, d = dx * dx + dy * dy + dz * dz;
            if (d < best) { best = d; at = t + k; }
        }
        __syncthreads();
    }
    distance[FLAT] = sqrtf(best);
    which[FLAT] = at;
}
__global__ void interleave3(const float* r, const float* g, const float* b, float* rgb, int n) { int i = FLAT; if (i < n) { rgb[3 * i] = r[i]; rgb[3 * i + 1] = g[i]; rgb[3 * i + 2] = b[i]; } }
__global__ void deinterleave2(const float4* xy, float2* x, float2* y, int n) { int i = FLAT; if (i < n) { float4 v = xy[i]; x[i] = make_float2(v.x, v.z); y[i] = make_float2(v.y, v.w); } }

// ------------------------------------------------------------------------------------------------ launches

#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstdlib>
#include <string>

static int times = 12, number;
static char *pool, *zeros;
static size_t taken;
static const size_t pool_bytes = (size_t)512 << 20;

struct Part {
    char* at;
    size_t bytes;
    template <class T> operator T*() const { return (T*)at; }
};
static void begin() { taken = 0; cudaMemset(pool, 0, pool_bytes); cudaDeviceSynchronize(); }
static Part part(size_t bytes) {
    Part p = {pool + taken, bytes};
    taken += (bytes + 511) / 512 * 512;
    if (taken > pool_bytes) { printf("pool too small\n"); exit(1); }
    return p;
}
static Part floats(size_t n) { return part(4 * n); }
static Part halves(size_t n) { return part(2 * n); }
static Part indices(size_t n) { if (4 * n > (size_t)32 << 20) { printf("too many indices\n"); exit(1); } return {zeros, 4 * n}; }  // zeros that nothing writes

static std::string text(Part p) { return "u8[" + std::to_string(p.bytes) + "]=0"; }
static std::string text(int v) { return "i32=" + std::to_string(v); }
static std::string text(u32 v) { return "u32=" + std::to_string(v); }
static std::string text(long long v) { return "i64=" + std::to_string(v); }
static std::string text(float v) { char s[40]; snprintf(s, 40, "f32=%.9g", v); return s; }
template <class... P, class... A> static void go(const char* name, void (*kernel)(P...), dim3 grid, dim3 block, int shared, A... a) {
    std::string args, bare;
    ((args += (args.empty() ? "" : ";") + text(a)), ...);
    for (const char* c = name; *c; ++c) if (*c != '(' && *c != ')' && *c != ' ') bare += *c;
    printf("%d|%s|%u,%u,%u|%u,%u,%u|%d|%s\n", ++number, bare.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, args.c_str());
    if (!times) return;
    if (shared > 48 << 10) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    for (int i = 0; i < times; ++i) kernel<<<grid, block, shared>>>((P)a...);
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) { printf("FAILED %s\n", cudaGetErrorString(e)); fprintf(stderr, "FAILED %s %s\n", bare.c_str(), cudaGetErrorString(e)); }
}
#define GO(kernel, ...) go(#kernel, kernel, __VA_ARGS__)
static int up(int a, int b) { return (a + b - 1) / b; }
struct Size { int m, n, k; };

int main(int argc, char** argv) {  // tutorials [launches of each] [dry]
    if (argc > 1) times = atoi(argv[1]);
    if (argc > 2) times = 0;
    if (times) { cudaMalloc(&pool, pool_bytes); cudaMalloc(&zeros, 32 << 20); cudaMemset(zeros, 0, 32 << 20); }
#define BEGIN if (times) begin(); else taken = 0;
#define ABC(bytes) BEGIN Part a = part((size_t)bytes * s.m * s.k), b = part((size_t)bytes * s.k * s.n), c = part((size_t)bytes * s.m * s.n);
    const dim3 flat(32, 8);
    for (Size s : {Size{500, 500, 500}, Size{1000, 300, 777}, Size{250, 130, 1000}}) { ABC(4) GO((sgemm_rows_by_y), dim3(up(s.n, 32), up(s.m, 8)), flat, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 512}, Size{1000, 500, 256}}) { ABC(4) GO((sgemm_sliced_k<64>), dim3(up(s.n, 32), up(s.m, 32)), dim3(32, 32), 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{768, 768, 300}}) { ABC(4) GO((sgemm_sliced_k<32>), dim3(up(s.n, 32), up(s.m, 32)), dim3(32, 32), 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 512}, Size{1536, 1408, 384}}) { ABC(4) GO((sgemm_8x8<0>), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); GO((sgemm_8x8<4>), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 512}, Size{1536, 1408, 768}, Size{2048, 2048, 256}}) { ABC(4) GO((sgemm_two_buffers), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 512}, Size{1536, 1408, 768}}) { ABC(4) GO((sgemm_cp_async), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); GO((sgemm_warps<128, 128, 16, 64, 32>), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 512}, Size{768, 768, 768}}) { ABC(4) GO((sgemm_warps<64, 64, 16, 32, 32>), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 512}, Size{1024, 1024, 512}, Size{192, 3072, 768}}) { ABC(4) GO((sgemm_4x4), dim3(s.n / 64, s.m / 64), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{256, 256, 4096}}) { ABC(4) GO((sgemm_split_atomics<8>), dim3(s.n / 64, s.m / 64, 8), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 2048}}) { ABC(4) GO((sgemm_split_atomics<4>), dim3(s.n / 64, s.m / 64, 4), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 512}, Size{1000, 1000, 300}}) { ABC(4) GO((sgemm_four_columns), dim3(up(s.n, 128), up(s.m, 8)), flat, 0, a, b, c, s.m, s.n, s.k); }
    { BEGIN Part a = floats(1 << 22), b = floats(1 << 22), c = floats(1 << 22);
        struct { Size s; int batch; } all[] = {{{64, 64, 64}, 256}, {{128, 96, 64}, 100}, {{32, 64, 512}, 64}};
        for (auto& e : all) GO((sgemm_batched_strided), dim3(e.s.n / 32, e.s.m / 32, e.batch), 64, 0, a, b, c, e.s.m, e.s.n, e.s.k, (long long)e.s.m * e.s.k, (long long)e.s.k * e.s.n, (long long)e.s.m * e.s.n, 1.f, 0.5f); }
    for (Size s : {Size{768, 768, 768}, Size{1024, 512, 1024}}) { ABC(4) GO((sgemm_transposed<true, false>), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); GO((sgemm_transposed<false, true>), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 1024, 512}, Size{128, 4096, 1024}}) { ABC(4) Part bias = floats(s.n); GO((sgemm_bias_relu), dim3(s.n / 64, s.m / 32), 256, 0, a, b, bias, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 256}, Size{512, 512, 1024}}) { BEGIN Part a = floats(s.m * s.k), c = floats(s.m * s.n); GO((ssyrk), dim3(s.n / 64, s.n / 64), 256, 0, a, c, s.n, s.k); }
    for (Size s : {Size{500, 500, 500}, Size{1000, 1000, 500}, Size{130, 1000, 999}}) { ABC(4) GO((sgemm_guarded), dim3(up(s.n, 64), up(s.m, 64)), 256, 0, a, b, c, s.m, s.n, s.k, 1.f, 0.f); }
    for (Size s : {Size{512, 512, 512}, Size{256, 1024, 256}}) { ABC(8) GO((cgemm), dim3(s.n / 32, s.m / 32), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 512}, Size{1024, 1024, 256}}) { ABC(8) GO((dgemm_4x4), dim3(s.n / 64, s.m / 64), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{4096, 4096, 16}}) { ABC(4) GO((sgemm_small_k<16>), dim3(s.n / 64, s.m / 128), 256, 0, a, b, c, s.m, s.n); }
    for (Size s : {Size{2048, 1536, 32}}) { ABC(4) GO((sgemm_small_k<32>), dim3(s.n / 64, s.m / 128), 256, 0, a, b, c, s.m, s.n); }

    for (Size s : {Size{512, 512, 512}, Size{300, 1000, 640}}) { ABC(2) GO((hgemm_rows_by_y), dim3(up(s.n, 32), up(s.m, 8)), flat, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{512, 512, 512}, Size{1024, 1024, 512}}) { ABC(2) GO((hgemm_sliced_hfma2), dim3(s.n / 32, s.m / 32), dim3(16, 32), 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{1536, 1408, 512}}) { ABC(2) GO((hgemm_8x8_half8), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{512, 512, 2048}}) { ABC(2) GO((hgemm_wmma_64), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{1536, 1408, 2048}}) { BEGIN Part a = halves(s.m * s.k), b = halves(s.k * s.n), c = floats(s.m * s.n); GO((hgemm_wmma_async), dim3(s.n / 128, s.m / 128), 256, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1536, 1408, 1024}}) { ABC(2) GO((hgemm_mma<2, false>), dim3(s.n / 128, s.m / 128), 256, 32768, a, b, c, s.m, s.n, s.k); GO((hgemm_mma<2, true>), dim3(s.n / 128, s.m / 128), 256, 32768, a, b, c, s.m, s.n, s.k); GO((hgemm_mma<3, false>), dim3(s.n / 128, s.m / 128), 256, 49152, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1536, 1408, 1024}, Size{1024, 1024, 1024}, Size{4096, 4096, 64}, Size{2048, 2048, 2048}}) { ABC(2) GO((hgemm_mma<3, true>), dim3(s.n / 128, s.m / 128), 256, 49152, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{2048, 2048, 2048}}) { ABC(2) GO((hgemm_mma<4, true>), dim3(s.n / 128, s.m / 128), 256, 65536, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{768, 3072, 768}}) { ABC(2) GO((bgemm_mma_nt), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{2048, 1024, 4096}}) { BEGIN Part a = part(s.m * s.k), b = part(s.k * s.n), c = floats(s.m * s.n); GO((igemm_mma_nt), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 1024}, Size{4096, 256, 1024}}) { ABC(2) GO((hgemm_mma_f16_nt), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{1024, 1024, 512}, Size{768, 768, 768}}) { ABC(4) GO((tf32_wmma), dim3(s.n / 64, s.m / 64), 128, 0, a, b, c, s.m, s.n, s.k); }
    for (Size s : {Size{16, 1024, 1024}, Size{16, 4096, 4096}}) { ABC(2) GO((hgemm_skinny<4>), s.n / 8, 128, 0, a, b, c, s.n, s.k); }
    for (Size s : {Size{16, 11008, 4096}}) { ABC(2) GO((hgemm_skinny<8>), s.n / 8, 256, 0, a, b, c, s.n, s.k); }

    struct Heads { int t, h, d; };
    for (Heads s : {Heads{512, 12, 64}, Heads{1008, 4, 128}}) { BEGIN Part q = floats(s.t * s.h * s.d), k = floats(s.t * s.h * s.d), p = floats((size_t)s.t * s.t * s.h); GO((qk_scores), dim3(s.t / 16, s.t / 16, s.h), dim3(16, 16), 0, q, k, p, s.t, s.d, 0.125f); }
    for (Heads s : {Heads{256, 8, 64}, Heads{1024, 16, 64}, Heads{2048, 8, 64}}) { BEGIN size_t n = (size_t)s.t * s.h * 64; Part q = halves(n), k = halves(n), v = halves(n), o = halves(n); GO((flash_mma<false>), dim3(s.t / 64, s.h), 128, 0, q, k, v, o, s.t, 0.18f); if (s.t == 2048) GO((flash_mma<true>), dim3(s.t / 64, s.h), 128, 0, q, k, v, o, s.t, 0.18f); }
    { BEGIN Part x = floats(1 << 24), y = floats(1 << 24);
        GO((softmax_registers<128>), 32768 / 8, flat, 0, x, y, 32768); GO((softmax_registers<512>), 8192 / 4, dim3(32, 4), 0, x, y, 8192); GO((softmax_registers<1024>), 10000 / 4, dim3(32, 4), 0, x, y, 10000);
        GO((softmax_block_float4<256, 1>), 4096, 256, 0, x, y, 1000); GO((softmax_block_float4<256, 4>), 4096, 256, 0, x, y, 4096);
        GO((softmax_half8<2>), 16384 / 4, dim3(32, 4), 0, x, y); GO((softmax_half8<8>), 4096 / 4, dim3(32, 4), 0, x, y); }
    { BEGIN Part q = halves(2048 * 32 * 128); GO((rope_halves), 2048, 256, 0, q, 32, 128, 13.287712f); GO((rope_halves), 1000, 256, 0, q, 8, 64, 13.287712f); }
    { BEGIN Part x = halves(1 << 23), w = halves(4096), y = halves(1 << 23); GO((rms_norm_warp), 4096 / 8, flat, 0, x, w, y, 4096, 1024, 1e-5f); GO((rms_norm_warp), 2000 / 4, dim3(32, 4), 0, x, w, y, 2000, 4096, 1e-5f); }
    { BEGIN Part x = floats(1 << 24), w = floats(2048), b = floats(2048), y = floats(1 << 24), z = floats(1 << 24), m = floats(8192), r = floats(8192);
        GO((layer_norm_welford), 4096 / 4, dim3(32, 4), 0, x, w, b, y, m, r, 768); GO((layer_norm_welford), 8192 / 8, flat, 0, x, w, b, y, m, r, 2048);
        GO((add_layer_norm<256>), 4096, 256, 0, x, y, w, b, z, 768); GO((add_layer_norm<512>), 8192, 512, 0, x, y, w, b, z, 2048); }
    { BEGIN Part x = floats(512 * 32000), g = floats(512 * 32000), l = floats(1024); GO((cross_entropy), 512, 512, 0, x, indices(512), l, g, 32000); GO((cross_entropy), 1024, 512, 0, x, indices(1024), l, g, 5003); }
    { BEGIN Part x = floats(2000000), y = floats(2000000); GO((log_softmax_thread), 256, 256, 0, x, y, 65536, 10); GO((log_softmax_thread), up(20000, 128), 128, 0, x, y, 20000, 100); }
    { BEGIN Part g = floats(8192 * 768), t = floats(64 * 1024); GO((embedding_backward), 2048, 256, 0, indices(2048), g, t, 768); GO((embedding_backward), 8192, 128, 0, indices(8192), g, t, 512); }
    for (int n : {1 << 20, 12000000}) { BEGIN Part a = floats(n), b = floats(n), c = floats(n), d = floats(n);
        GO((gelu_backward), up(n / 4, 256), 256, 0, a, b, c, n / 4); GO((dropout_hash), up(n / 4, 256), 256, 0, a, b, n / 4, 1234u, 0.9f);
        GO((adamw_float4), n > 2000000 ? 1056 : 512, 256, 0, a, b, c, d, n, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 10.f, 1000.f); }
    for (int n : {1024, 5504}) { BEGIN Part g = halves(2048 * 2 * n), y = halves(2048 * n); GO((swiglu_half8), 2048, 256, 0, g, y, n); }

    { BEGIN Part a = floats(1 << 24), b = floats(1 << 24), o = floats(16384);
        GO((dot_one_atomic), 264, 512, 0, a, b, o, 1 << 18); GO((dot_one_atomic), 528, 512, 0, a, b, o, 1 << 22);
        GO((reduce_tree<256>), 512, 256, 0, a, o, 1 << 24); GO((reduce_tree<256>), 2048, 256, 0, a, o, 1 << 20); GO((reduce_tree<1024>), 1, 1024, 0, a, o, 2048);
        GO((argmax_rows), 1024, 256, 0, a, b, 4096); GO((argmax_rows), 64, 256, 0, a, b, 50257);
        GO((sum_packed<OfBf16>), 4096, 256, 0, a, o, 1 << 20); GO((sum_packed<OfHalf>), 4096, 256, 0, a, o, 1 << 20); GO((sum_packed<OfInt8>), 4096, 256, 0, a, o, 1 << 20); GO((sum_packed<OfFp8>), 4096, 256, 0, a, o, 1 << 20); GO((sum_packed<OfFp8>), 256, 256, 0, a, o, 65536);
        for (int n : {1 << 18, 3000000}) { GO((scan_parts), up(n, 256), 256, 0, a, b, o, n); GO((scan_add), up(n, 256), 256, 0, o, b, n); } }
    { BEGIN Part x = floats(16 * 64 * 56 * 56), m = floats(256), v = floats(256); GO((bn_statistics<256>), 64, 256, 0, x, m, v, 16, 64, 56 * 56); GO((bn_statistics<256>), 256, 256, 0, x, m, v, 32, 256, 14 * 14); }
    { BEGIN Part x = floats(2048 * 4096), y = part(2048 * 4096), s = floats(8192); GO((quantize_rows), 8192 / 8, flat, 0, x, y, s, 1000); GO((quantize_rows), 2048 / 4, dim3(32, 4), 0, x, y, s, 4096); }

    { BEGIN Part a = floats(1 << 22), x = floats(4096), y = floats(1 << 18); GO((gemv_k16), 65536 / 16, 256, 0, a, x, y, 65536); GO((gemv_k16), 1024 / 8, 128, 0, a, x, y, 1024); GO((gemv_k32), 100000 / 4, dim3(32, 4), 0, a, x, y, 100000); GO((gemv_k128), 32768 / 4, dim3(32, 4), 0, a, x, y, 32768); GO((gemv_k128), 16384 / 8, flat, 0, a, x, y, 16384); }
    { BEGIN Part a = halves((size_t)11008 * 4096), x = halves(4096), y = halves(11008); GO((gemv_half8), 1000, 128, 0, a, x, y, 1024); GO((gemv_half8), 4096, 128, 0, a, x, y, 4096); GO((gemv_half8), 11008, 128, 0, a, x, y, 4096); }
    { BEGIN Part w = part((size_t)11008 * 2048), s = halves(11008 * 32), x = halves(4096), y = halves(11008); GO((gemv_int4), 4096 / 4, dim3(32, 4), 0, w, s, x, y, 4096); GO((gemv_int4), 11008 / 8, flat, 0, w, s, x, y, 4096); }
    { BEGIN int n = 1 << 18; Part v = floats(16 * n), x = floats(4096), y = floats(n); GO((spmv_fixed16), n / 256, 256, 0, indices(16 * n), v, x, y, n); GO((spmv_lanes), n / 32, 256, 0, indices(16 * n), v, x, y, n); }

    for (Size s : {Size{2048, 1024, 0}, Size{4096, 3072, 0}}) { BEGIN Part a = floats(s.m * s.n), b = floats(s.m * s.n); GO((transpose_swizzled), dim3(s.n / 32, s.m / 32), 256, 0, a, b, s.m, s.n); }
    for (Size s : {Size{1080, 1920, 0}, Size{4000, 4000, 0}}) { BEGIN Part a = floats(s.m * s.n), b = floats(s.m * s.n); GO((conv3x3_shared), dim3(up(s.n, 32), up(s.m, 8)), flat, 0, a, b, s.m, s.n); }
    for (int n : {1000000, 12000000}) { BEGIN Part x = floats(n), w = floats(64), y = floats(n); GO((conv1d<8>), up(n, 256), 256, 0, x, w, y, n); }
    { BEGIN Part x = floats(64 * 112 * 112), w = floats(64 * 9), y = floats(64 * 9 * 56 * 56); GO((depthwise3x3), dim3(up(112 * 112, 256), 64), 256, 0, x, w, y, 64, 112, 112); GO((im2col3x3), 64 * 56 * 56 / 256, 256, 0, x, y, 64, 56, 56); GO((max_pool3_stride2), 64 * 56 * 56 / 256, 256, 0, x, y, 64, 112, 112); }
    for (int n : {128, 250}) { BEGIN Part a = floats(n * n * n), b = floats(n * n * n); GO((stencil7), dim3(up(n, 32), up(n, 8)), flat, 0, a, b, n, 0.4f, 0.1f); }
    { BEGIN Part o = floats(1024 * 768), p = floats(3 << 16), d = floats(1 << 16), w = floats(1 << 16); GO((pi_xorshift), 264, 256, 0, o, 1000); GO((mandelbrot), dim3(1024 / 16, 768 / 16), dim3(16, 16), 0, o, 1024, 768, 200); GO((nearest), 8192 / 128, 128, 0, p, p, d, w, 8192); GO((nearest), 20480 / 128, 128, 0, p, p, d, w, 4096); }
    { int n = 1 << 22; BEGIN Part a = floats(n), b = floats(n), c = floats(n), d = floats(3 * n); GO((interleave3), 4096, 256, 0, a, b, c, d, 1 << 20); GO((deinterleave2), n / 512, 256, 0, d, a, b, n / 2); }
    cudaError_t e = times ? cudaDeviceSynchronize() : cudaSuccess;
    printf("# %s\n", cudaGetErrorString(e));
    return e != cudaSuccess;
}
#endif
