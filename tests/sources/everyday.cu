// Kernels as they are found around matrix products in networks, each launched 12 times in a row, for two or three sizes:
// what tests/records/h200_everyday.json was measured with.
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <mma.h>
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x
__device__ __forceinline__ float warp_sum(float x) { for (int d = 16; d; d /= 2) x += __shfl_xor_sync(~0u, x, d); return x; }
__device__ __forceinline__ float warp_max(float x) { for (int d = 16; d; d /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, d)); return x; }
template <int THREADS> __device__ float block_sum(float x) {
    __shared__ float s[THREADS / 32]; int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x); if (lane == 0) s[warp] = x; __syncthreads();
    x = lane < THREADS / 32 ? s[lane] : 0; x = warp_sum(x); __syncthreads(); return x;
}
template <int THREADS> __device__ float block_max(float x) {
    __shared__ float s[THREADS / 32]; int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_max(x); if (lane == 0) s[warp] = x; __syncthreads();
    x = lane < THREADS / 32 ? s[lane] : -INFINITY; x = warp_max(x); __syncthreads(); return x;
}
// elements
__global__ void gelu(const float* a, float* b, int n) { AT; if (i < n) { float x = a[i]; b[i] = 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); } }
__global__ void sigmoid4(const float4* a, float4* b, int n) {
    AT; if (i < n) { float4 x = a[i]; b[i] = make_float4(1 / (1 + expf(-x.x)), 1 / (1 + expf(-x.y)), 1 / (1 + expf(-x.z)), 1 / (1 + expf(-x.w))); } }
__global__ void add_half(const half* a, const half* b, half* c, int n) { AT; if (i < n) c[i] = __hadd(a[i], b[i]); }
__global__ void add_half8(const half* a, const half* b, half* c, int n) {
    AT; if (8 * i < n) { half2 x[4], y[4], z[4]; *(float4*)x = ((const float4*)a)[i]; *(float4*)y = ((const float4*)b)[i];
#pragma unroll
        for (int k = 0; k < 4; k++) z[k] = __hadd2(x[k], y[k]);
        ((float4*)c)[i] = *(float4*)z; } }
__global__ void swish_half2(const half2* a, half2* b, int n) { AT; if (i < n) { float2 x = __half22float2(a[i]); b[i] = __floats2half2_rn(x.x / (1 + __expf(-x.x)), x.y / (1 + __expf(-x.y))); } }
__global__ void adamw(float* p, const float* g, float* m, float* v, int n, float lr, float b1, float b2, float c1, float c2) {
    AT; if (i >= n) return; float x = g[i], mi = b1 * m[i] + (1 - b1) * x, vi = b2 * v[i] + (1 - b2) * x * x; m[i] = mi; v[i] = vi;
    p[i] -= lr * (mi / c1 / (sqrtf(vi / c2) + 1e-8f) + 0.01f * p[i]); }
__global__ void rotate_pairs(const float2* x, float2* y, int pairs, int n) {  // rotary embedding: angles by position and pair
    AT; if (i >= n) return; int position = i / pairs, pair = i % pairs; float s, c; sincosf(position / powf(10000.f, 2.f * pair / (2 * pairs)), &s, &c);
    float2 v = x[i]; y[i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c); }
__global__ void gather_rows(const int* id, const float4* table, float4* y, int columns) {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) y[(size_t)blockIdx.x * columns + c] = table[(size_t)id[blockIdx.x] * columns + c]; }
__global__ void permute(const float* x, float* y, int T, int H, int D, int n) {  // [B, T, H, D] to [B, H, T, D]
    AT; if (i >= n) return; int d = i % D, t = i / D % T, h = i / D / T % H, b = i / D / T / H; y[i] = x[((b * T + t) * H + h) * D + d]; }
// sums
__global__ void sum1(const float* a, float* out, int n) { AT; float x = block_sum<256>(i < n ? a[i] : 0); if (threadIdx.x == 0) atomicAdd(out, x); }
__global__ void sum4(const float4* a, float* out, int n) { AT; float4 v = i < n ? a[i] : make_float4(0, 0, 0, 0); float x = block_sum<256>(v.x + v.y + v.z + v.w); if (threadIdx.x == 0) atomicAdd(out, x); }
__global__ void sum_strided(const float* a, float* out, int n) {
    float x = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x += a[i];
    x = block_sum<256>(x); if (threadIdx.x == 0) out[blockIdx.x] = x; }
__global__ void dot_half8(const half* a, const half* b, float* out, int n) {
    AT; float x = 0; if (8 * i < n) { half2 u[4], v[4]; *(float4*)u = ((const float4*)a)[i]; *(float4*)v = ((const float4*)b)[i];
#pragma unroll
        for (int k = 0; k < 4; k++) { float2 p = __half22float2(__hmul2(u[k], v[k])); x += p.x + p.y; } }
    x = block_sum<256>(x); if (threadIdx.x == 0) atomicAdd(out, x); }
__global__ void columns_sum(const float* a, float* out, int rows, int columns) {  // a thread a column
    AT; if (i >= columns) return; float s = 0; for (int r = 0; r < rows; r++) s += a[(size_t)r * columns + i]; out[i] = s; }
__global__ void columns_sum_shared(const float* a, float* out, int rows, int columns) {  // 32 columns a block of 32 x 32
    __shared__ float s[32][33]; int c = blockIdx.x * 32 + threadIdx.x; float x = 0;
    for (int r = threadIdx.y; r < rows; r += 32) x += a[(size_t)r * columns + c];
    s[threadIdx.y][threadIdx.x] = x; __syncthreads(); x = warp_sum(s[threadIdx.x][threadIdx.y]); if (threadIdx.x == 0) out[blockIdx.x * 32 + threadIdx.y] = x; }
__global__ void histogram_global(const int* a, int* h, int n) { AT; if (i < n) atomicAdd(&h[a[i]], 1); }
__global__ void histogram_shared(const int4* a, int* h, int n) {
    __shared__ int s[256]; s[threadIdx.x] = 0; __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { int4 v = a[i]; atomicAdd(&s[v.x], 1); atomicAdd(&s[v.y], 1); atomicAdd(&s[v.z], 1); atomicAdd(&s[v.w], 1); }
    __syncthreads(); atomicAdd(&h[threadIdx.x], s[threadIdx.x]); }
// rows
__global__ void softmax_block(const float* a, float* b, int n) {  // three passes over global memory, a block a row
    const float* x = a + (size_t)blockIdx.x * n; float* y = b + (size_t)blockIdx.x * n; float m = -INFINITY, s = 0;
    for (int i = threadIdx.x; i < n; i += 256) m = fmaxf(m, x[i]);
    m = block_max<256>(m);
    for (int i = threadIdx.x; i < n; i += 256) { float e = expf(x[i] - m); s += e; y[i] = e; }
    s = block_sum<256>(s);
    for (int i = threadIdx.x; i < n; i += 256) y[i] /= s; }
__global__ void softmax_online(const float* a, float* b, int n) {  // a warp a row, maximum and sum in one pass
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32; const float* x = a + (size_t)row * n; float m = -1e30f, s = 0;
    for (int i = lane; i < n; i += 32) { float v = x[i], w = fmaxf(m, v); s = s * __expf(m - w) + __expf(v - w); m = w; }
    float all = warp_max(m); s = warp_sum(s * __expf(m - all));
    for (int i = lane; i < n; i += 32) b[(size_t)row * n + i] = __expf(x[i] - all) / s; }
__global__ void softmax_thread(const float* a, float* b, int n) {  // a thread a row
    AT; const float* x = a + (size_t)i * n; float* y = b + (size_t)i * n; float m = -1e30f, s = 0;
    for (int k = 0; k < n; k++) m = fmaxf(m, x[k]);
    for (int k = 0; k < n; k++) { y[k] = expf(x[k] - m); s += y[k]; }
    for (int k = 0; k < n; k++) y[k] /= s; }
__global__ void layer_norm(const float* a, const float* w, const float* c, float* b, int n) {  // a block a row, two passes
    const float* x = a + (size_t)blockIdx.x * n; float s = 0, q = 0;
    for (int i = threadIdx.x; i < n; i += 256) s += x[i];
    float mean = block_sum<256>(s) / n;
    for (int i = threadIdx.x; i < n; i += 256) q += (x[i] - mean) * (x[i] - mean);
    float r = rsqrtf(block_sum<256>(q) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 256) b[(size_t)blockIdx.x * n + i] = (x[i] - mean) * r * w[i] + c[i]; }
__global__ void rms_norm_half8(const half* a, const half* w, half* b, int n) {  // a block a row of up to 2048, kept in registers
    half2 v[4], g[4]; int i = threadIdx.x; size_t at = (size_t)blockIdx.x * n / 8 + i; float s = 0; *(float4*)v = 8 * i < n ? ((const float4*)a)[at] : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < 4; k++) { float2 f = __half22float2(v[k]); s += f.x * f.x + f.y * f.y; }
    float r = rsqrtf(block_sum<256>(s) / n + 1e-5f); half2 r2 = __float2half2_rn(r);
    if (8 * i < n) { *(float4*)g = ((const float4*)w)[i];
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = __hmul2(__hmul2(v[k], r2), g[k]);
        ((float4*)b)[at] = *(float4*)v; } }
__global__ void norm_backward(const float* dy, const float* x, const float* w, float* dx, float* dw, int n) {  // a warp a row, sums for dw by atomics
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32; const float *d = dy + (size_t)row * n, *v = x + (size_t)row * n; float a = 0, c = 0;
    for (int i = lane; i < n; i += 32) { float g = d[i] * w[i]; a += g; c += g * v[i]; }
    a = warp_sum(a) / n; c = warp_sum(c) / n;
    for (int i = lane; i < n; i += 32) { dx[(size_t)row * n + i] = d[i] * w[i] - a - v[i] * c; atomicAdd(&dw[i], d[i] * v[i]); } }
// transposes
__global__ void transpose_reads(const float* a, float* b, int n) { int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; b[(size_t)x * n + y] = a[(size_t)y * n + x]; }
__global__ void transpose_writes(const float* a, float* b, int n) { int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; b[(size_t)y * n + x] = a[(size_t)x * n + y]; }
template <int PAD> __global__ void transpose_shared(const float* a, float* b, int n) {
    __shared__ float s[32][32 + PAD]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8) s[threadIdx.y + k][threadIdx.x] = a[(size_t)(y + k) * n + x];
    __syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8) b[(size_t)(y + k) * n + x] = s[threadIdx.x][threadIdx.y + k]; }
__global__ void transpose4(const float4* a, float* b, int n) {  // 16 bytes read, four rows written
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; float4 v = a[(size_t)y * n / 4 + x];
    b[(size_t)(4 * x) * n + y] = v.x; b[(size_t)(4 * x + 1) * n + y] = v.y; b[(size_t)(4 * x + 2) * n + y] = v.z; b[(size_t)(4 * x + 3) * n + y] = v.w; }
// matrix times vector
__global__ void gemv4(const float4* A, const float4* x, float* y, int n4) {  // a warp a row
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32; float s = 0;
    for (int i = lane; i < n4; i += 32) { float4 a = A[(size_t)row * n4 + i], b = x[i]; s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
    s = warp_sum(s); if (lane == 0) y[row] = s; }
__global__ void gemv_half(const half* A, const half* x, half* y, int n) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32; float s = 0;
    for (int i = lane; i < n; i += 32) s += __half2float(A[(size_t)row * n + i]) * __half2float(x[i]);
    s = warp_sum(s); if (lane == 0) y[row] = __float2half(s); }
__global__ void gemv_thread(const float* A, const float* x, float* y, int n) { AT; float s = 0; for (int k = 0; k < n; k++) s += A[(size_t)i * n + k] * x[k]; y[i] = s; }
// attention
__global__ void scores(const float* q, const float* k, float* p, int T, int D, int n) {  // a thread a score, causal
    AT; if (i >= n) return; int s = i % T, t = i / T % T, h = i / T / T; if (s > t) { p[i] = -INFINITY; return; }
    const float *a = q + ((size_t)h * T + t) * D, *b = k + ((size_t)h * T + s) * D; float x = 0; for (int d = 0; d < D; d++) x += a[d] * b[d]; p[i] = x * rsqrtf((float)D); }
__global__ void values(const float* p, const float* v, float* o, int T, int D, int n) {  // a thread an output
    AT; if (i >= n) return; int d = i % D, t = i / D % T, h = i / D / T; float x = 0; for (int s = 0; s <= t; s++) x += p[((size_t)h * T + t) * T + s] * v[((size_t)h * T + s) * D + d]; o[i] = x; }
template <int D, int R> __global__ void flash(const float* Q, const float* K, const float* V, float* O, int T) {  // R rows a block, a thread a row of queries
    __shared__ float k[R][D], v[R][D]; int t = blockIdx.x * R + threadIdx.x; const size_t head = (size_t)blockIdx.y * T * D; float q[D], o[D], m = -1e30f, l = 0;
#pragma unroll
    for (int d = 0; d < D; d++) { q[d] = Q[head + (size_t)t * D + d]; o[d] = 0; }
    for (int begin = 0; begin < T; begin += R) {
        for (int e = threadIdx.x; e < R * D; e += R) { k[e / D][e % D] = K[head + (size_t)begin * D + e]; v[e / D][e % D] = V[head + (size_t)begin * D + e]; }
        __syncthreads();
        for (int s = 0; s < R; s++) { float x = 0;
#pragma unroll
            for (int d = 0; d < D; d++) x += q[d] * k[s][d];
            x *= rsqrtf((float)D); float w = fmaxf(m, x), c = __expf(m - w), e = __expf(x - w); l = l * c + e; m = w;
#pragma unroll
            for (int d = 0; d < D; d++) o[d] = o[d] * c + e * v[s][d]; }
        __syncthreads(); }
#pragma unroll
    for (int d = 0; d < D; d++) O[head + (size_t)t * D + d] = o[d] / l; }
// neighbours
__global__ void stencil5(const float* a, float* b, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; if (x > 0 && y > 0 && x < n - 1 && y < n - 1) { size_t i = (size_t)y * n + x; b[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - n] + a[i + n]); } }
__global__ void convolution3(const float* x, const float* w, float* y, int H, int C, int K) {  // direct 3 x 3, a thread an output, a block a row of a channel
    int c = threadIdx.x, r = blockIdx.x, k = blockIdx.y; if (c >= H) return; float s = 0;
    for (int i = 0; i < C; i++) for (int u = -1; u <= 1; u++) for (int v = -1; v <= 1; v++) { int rr = r + u, cc = c + v; if (rr >= 0 && rr < H && cc >= 0 && cc < H) s += x[((size_t)i * H + rr) * H + cc] * w[((k * C + i) * 3 + u + 1) * 3 + v + 1]; }
    y[((size_t)k * H + r) * H + c] = s; }
__global__ void pool2(const float* a, float* b, int n) { int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; const float2 u = ((const float2*)(a + (size_t)2 * y * 2 * n))[x], v = ((const float2*)(a + (size_t)(2 * y + 1) * 2 * n))[x]; b[(size_t)y * n + x] = fmaxf(fmaxf(u.x, u.y), fmaxf(v.x, v.y)); }
__global__ void bodies(const float4* p, float4* f, int n) {
    __shared__ float4 s[256]; AT; float4 me = p[i]; float x = 0, y = 0, z = 0;
    for (int t = 0; t < n; t += 256) { s[threadIdx.x] = p[t + threadIdx.x]; __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 256; k++) { float4 o = s[k]; float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z, r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f); r = o.w * r * r * r; x += dx * r; y += dy * r; z += dz * r; }
        __syncthreads(); }
    f[i] = make_float4(x, y, z, 0); }
__global__ void scan_block(const float* a, float* b, int n) {  // inclusive, within blocks of 1024
    __shared__ float s[32]; AT; int lane = threadIdx.x % 32, warp = threadIdx.x / 32; float x = a[i];
    for (int d = 1; d < 32; d *= 2) { float o = __shfl_up_sync(~0u, x, d); if (lane >= d) x += o; }
    if (lane == 31) s[warp] = x; __syncthreads();
    if (warp == 0) { float t = s[lane]; for (int d = 1; d < 32; d *= 2) { float o = __shfl_up_sync(~0u, t, d); if (lane >= d) t += o; } s[lane] = t; }
    __syncthreads(); b[i] = x + (warp ? s[warp - 1] : 0); }
__global__ void sort_block(float* a) {  // bitonic, 1024 in shared memory
    __shared__ float s[1024]; int t = threadIdx.x; s[t] = a[blockIdx.x * 1024 + t];
    for (int k = 2; k <= 1024; k *= 2) for (int j = k / 2; j; j /= 2) { __syncthreads(); int o = t ^ j; if (o > t) { bool up = !(t & k); float x = s[t], y = s[o]; if ((x > y) == up) { s[t] = y; s[o] = x; } } }
    __syncthreads(); a[blockIdx.x * 1024 + t] = s[t]; }
// products
__global__ void wmma_naive(const half* A, const half* B, float* C, int n) {  // a warp a tile of 16 x 16, from global memory
    using namespace nvcuda; wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a; wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b; wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::fill_fragment(c, 0.f);
    int r = blockIdx.y * 4 + threadIdx.y, q = blockIdx.x;
    for (int k = 0; k < n; k += 16) { wmma::load_matrix_sync(a, A + (size_t)r * 16 * n + k, n); wmma::load_matrix_sync(b, B + (size_t)k * n + q * 16, n); wmma::mma_sync(c, a, b, c); }
    wmma::store_matrix_sync(C + (size_t)r * 16 * n + q * 16, c, n, wmma::mem_row_major); }
__global__ void dp4a_tile(const int* A, const int* B, int* C, int n) {  // 8-bit, four at a time, tiles of 32 x 32; B transposed
    __shared__ int a[32][33], b[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y, s = 0, w = n / 4;
    for (int k = 0; k < w; k += 32) { a[threadIdx.y][threadIdx.x] = A[(size_t)y * w + k + threadIdx.x]; b[threadIdx.y][threadIdx.x] = B[(size_t)(blockIdx.x * 32 + threadIdx.y) * w + k + threadIdx.x]; __syncthreads();
        for (int t = 0; t < 32; t++) s = __dp4a(a[threadIdx.y][t], b[threadIdx.x][t], s);
        __syncthreads(); }
    C[(size_t)y * n + x] = s; }
__global__ void half2_tile(const half* A, const half* B, half* C, int n) {  // 64 x 64 a block of 256, 4 x 4 a thread, HFMA2
    __shared__ half a[64][16 + 2]; __shared__ half2 b[16][32]; int tx = threadIdx.x % 16, ty = threadIdx.x / 16; half2 acc[4][2]; for (int i = 0; i < 4; i++) for (int j = 0; j < 2; j++) acc[i][j] = __float2half2_rn(0);
    for (int k = 0; k < n; k += 16) {
        for (int e = threadIdx.x; e < 64 * 16; e += 256) a[e / 16][e % 16] = A[(size_t)(blockIdx.y * 64 + e / 16) * n + k + e % 16];
        for (int e = threadIdx.x; e < 16 * 32; e += 256) b[e / 32][e % 32] = ((const half2*)(B + (size_t)(k + e / 32) * n + blockIdx.x * 64))[e % 32];
        __syncthreads();
#pragma unroll
        for (int t = 0; t < 16; t++) { half2 v[2] = {b[t][tx * 2], b[t][tx * 2 + 1]};
#pragma unroll
            for (int i = 0; i < 4; i++) { half2 u = __half2half2(a[ty * 4 + i][t]); acc[i][0] = __hfma2(u, v[0], acc[i][0]); acc[i][1] = __hfma2(u, v[1], acc[i][1]); } }
        __syncthreads(); }
    for (int i = 0; i < 4; i++) for (int j = 0; j < 2; j++) ((half2*)(C + (size_t)(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64))[tx * 2 + j] = acc[i][j]; }
__global__ void batched(const float* A, const float* B, float* C, int n) {  // a block of 16 x 16 a tile, a small product each z
    __shared__ float a[16][16], b[16][16]; size_t z = (size_t)blockIdx.z * n * n; int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; float s = 0;
    for (int k = 0; k < n; k += 16) { a[threadIdx.y][threadIdx.x] = A[z + (size_t)y * n + k + threadIdx.x]; b[threadIdx.y][threadIdx.x] = B[z + (size_t)(k + threadIdx.y) * n + x]; __syncthreads();
#pragma unroll
        for (int t = 0; t < 16; t++) s += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads(); }
    C[z + (size_t)y * n + x] = s; }
__global__ void skinny8(const float* A, const float4* B, float4* C, int M, int N4, int K) {  // eight rows: a thread four columns, A broadcast
    AT; float4 s[8]; for (int m = 0; m < 8; m++) s[m] = make_float4(0, 0, 0, 0);
    for (int k = 0; k < K; k++) { float4 b = B[(size_t)k * N4 + i];
#pragma unroll
        for (int m = 0; m < 8; m++) { float a = A[m * K + k]; s[m].x += a * b.x; s[m].y += a * b.y; s[m].z += a * b.z; s[m].w += a * b.w; } }
    for (int m = 0; m < 8; m++) C[(size_t)m * N4 + i] = s[m]; }

static int times = 12; static char* pool; static size_t taken;
template <class T> T* make(size_t n) { T* p = (T*)(pool + taken); taken += (n * sizeof(T) + 511) / 512 * 512; return p; }
#define TIMES(...) for (int time = 0; time < times; time++) { __VA_ARGS__; }
int main(int argc, char** argv) {
    if (argc > 1) times = atoi(argv[1]); const size_t bytes = (size_t)1 << 30; cudaMalloc(&pool, bytes); cudaMemset(pool, 0, bytes);
    int* ids; cudaMalloc(&ids, 4 << 20); { int* h = (int*)malloc(4 << 20); unsigned s = 1; for (int i = 0; i < 1 << 20; i++) { s = s * 1664525u + 1013904223u; h[i] = s >> 24; } cudaMemcpy(ids, h, 4 << 20, cudaMemcpyHostToDevice); }
    float* sums; cudaMalloc(&sums, 1 << 20);
    for (int n : {1 << 20, 1 << 24}) { taken = 0; float *a = make<float>(n), *b = make<float>(n), *c = make<float>(n), *d = make<float>(n); half *u = (half*)a, *v = (half*)b, *w = (half*)c;
        TIMES((gelu<<<n / 256, 256>>>(a, b, n))) TIMES((sigmoid4<<<n / 1024, 256>>>((float4*)a, (float4*)b, n / 4))) TIMES((add_half<<<n / 256, 256>>>(u, v, w, n))) TIMES((add_half8<<<n / 2048, 256>>>(u, v, w, n)))
        TIMES((swish_half2<<<n / 512, 256>>>((half2*)u, (half2*)v, n / 2))) TIMES((adamw<<<n / 512, 512>>>(a, b, c, d, n, 1e-3f, 0.9f, 0.999f, 0.1f, 0.01f))) TIMES((rotate_pairs<<<n / 512, 256>>>((float2*)a, (float2*)b, 64, n / 2)))
        TIMES((sum1<<<n / 256, 256>>>(a, sums, n))) TIMES((sum4<<<n / 1024, 256>>>((float4*)a, sums, n / 4))) TIMES((sum_strided<<<1024, 256>>>(a, sums, n))) TIMES((dot_half8<<<n / 2048, 256>>>(u, v, sums, n)))
        TIMES((permute<<<n / 256, 256>>>(a, b, 256, 16, 64, n))) TIMES((scan_block<<<n / 1024, 1024>>>(a, b, n))) }
    { taken = 0; int n = 1 << 20; float4* table = make<float4>(256 * 1024); float4* y = make<float4>(4096 * 256);
        TIMES((gather_rows<<<4096, 128>>>(ids, table, y, 256))) TIMES((histogram_global<<<n / 256, 256>>>(ids, (int*)sums, n))) TIMES((histogram_shared<<<528, 256>>>((int4*)ids, (int*)sums, n / 4))) }
    for (int n : {1024, 4096}) { int rows = 4096; taken = 0; float *a = make<float>((size_t)rows * n), *b = make<float>((size_t)rows * n), *c = make<float>((size_t)rows * n);
        TIMES((columns_sum<<<n / 128, 128>>>(a, sums, rows, n))) TIMES((columns_sum_shared<<<n / 32, dim3(32, 32)>>>(a, sums, rows, n)))
        TIMES((softmax_block<<<rows, 256>>>(a, b, n))) TIMES((softmax_online<<<rows / 8, 256>>>(a, b, n))) TIMES((layer_norm<<<rows, 256>>>(a, sums, sums + 8192, b, n)))
        TIMES((norm_backward<<<rows / 8, 256>>>(a, b, sums, c, sums + 8192, n))) TIMES((gemv4<<<rows / 4, 128>>>((float4*)a, (float4*)sums, sums + 8192, n / 4))) TIMES((gemv_half<<<rows / 8, 256>>>((half*)a, (half*)sums, (half*)(sums + 8192), n)))
        TIMES((gemv_thread<<<rows / 64, 64>>>(a, sums, sums + 8192, n)))
        TIMES((transpose_reads<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, n))) TIMES((transpose_writes<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, n))) TIMES((transpose_shared<0><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, n)))
        TIMES((transpose_shared<1><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, n))) TIMES((transpose4<<<dim3(n / 64, n / 16), dim3(16, 16)>>>((float4*)a, b, n)))
        TIMES((stencil5<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, n))) TIMES((pool2<<<dim3(n / 64, n / 16), dim3(32, 8)>>>(a, b, n / 2))) }
    { taken = 0; float *a = make<float>(1 << 24), *b = make<float>(1 << 24); TIMES((softmax_thread<<<4096 / 64, 64>>>(a, b, 1024))) TIMES((sort_block<<<1024, 1024>>>(a))) TIMES((rms_norm_half8<<<8192, 256>>>((half*)a, (half*)sums, (half*)b, 2048))) TIMES((rms_norm_half8<<<8192, 256>>>((half*)a, (half*)sums, (half*)b, 1024))) }
    for (int T : {256, 1024}) { taken = 0; int H = 16; float *q = make<float>(H * T * 64), *k = make<float>(H * T * 64), *v = make<float>(H * T * 64), *o = make<float>(H * T * 64), *p = make<float>(H * T * T);
        TIMES((scores<<<H * T * T / 256, 256>>>(q, k, p, T, 64, H * T * T))) TIMES((values<<<H * T * 64 / 256, 256>>>(p, v, o, T, 64, H * T * 64))) TIMES((flash<64, 64><<<dim3(T / 64, H), 64>>>(q, k, v, o, T))) TIMES((flash<32, 128><<<dim3(T / 128, 2 * H), 128>>>(q, k, v, o, T))) }
    { taken = 0; float *a = make<float>(1 << 22), *b = make<float>(1 << 22), *c = make<float>(1 << 22); TIMES((convolution3<<<dim3(56, 64), 64>>>(a, b, c, 56, 64, 64))) TIMES((bodies<<<8192 / 256, 256>>>((float4*)a, (float4*)b, 8192))) TIMES((bodies<<<32768 / 256, 256>>>((float4*)a, (float4*)b, 32768)))
        TIMES((batched<<<dim3(4, 4, 256), dim3(16, 16)>>>(a, b, c, 64))) TIMES((skinny8<<<4096 / 4 / 128, 128>>>(a, (float4*)b, (float4*)c, 8, 1024, 1024))) TIMES((skinny8<<<2048 / 4 / 32, 32>>>(a, (float4*)b, (float4*)c, 8, 512, 2048))) }
    for (int n : {512, 2048}) { taken = 0; float *a = make<float>(n * n), *b = make<float>(n * n), *c = make<float>(n * n); TIMES((wmma_naive<<<dim3(n / 16, n / 64), dim3(32, 4)>>>((half*)a, (half*)b, c, n))) TIMES((dp4a_tile<<<dim3(n / 32, n / 32), dim3(32, 32)>>>((int*)a, (int*)b, (int*)c, n))) TIMES((half2_tile<<<dim3(n / 64, n / 64), 256>>>((half*)a, (half*)b, (half*)c, n))) }
    cudaError_t e = cudaDeviceSynchronize(); printf("%s\n", cudaGetErrorString(e)); return e != cudaSuccess;
}
