// Blocks that write down where and when they run, what tests/records/h200_generations.json was measured with.
struct Log { unsigned sm, pad; long long begin, end; };
__device__ __forceinline__ long long now() { long long t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory"); return t; }
__device__ __forceinline__ void finish(Log* log, long long begin) {
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) { unsigned sm; asm volatile("mov.u32 %0, %%smid;" : "=r"(sm)); Log* l = log + blockIdx.y * gridDim.x + blockIdx.x; l->sm = sm; l->begin = begin; l->end = now(); } }
__global__ void naive16(const float* A, const float* B, float* C, int n, Log* log) {
    long long t = now(); int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; float s = 0;
    for (int k = 0; k < n; k++) s += A[(size_t)y * n + k] * B[(size_t)k * n + x];
    C[(size_t)y * n + x] = s; finish(log, t); }
template <int T> __global__ void tiled(const float* A, const float* B, float* C, int n, Log* log) {
    __shared__ float a[T][T], b[T][T]; long long t = now(); int i = threadIdx.x, j = threadIdx.y, x = blockIdx.x * T + i, y = blockIdx.y * T + j; float s = 0;
    for (int k = 0; k < n; k += T) { a[j][i] = A[(size_t)y * n + k + i]; b[j][i] = B[(size_t)(k + j) * n + x]; __syncthreads();
#pragma unroll
        for (int l = 0; l < T; l++) s += a[j][l] * b[l][i];
        __syncthreads(); }
    C[(size_t)y * n + x] = s; finish(log, t); }
template <int M, int R> __global__ void __launch_bounds__((M / R) * (M / R)) thread_tile(const float* A, const float* B, float* C, int n, Log* log) {
    constexpr int W = M / R, K = 8; __shared__ float a[K][M], b[K][M]; long long t = now(); int i = threadIdx.x % W, j = threadIdx.x / W; float s[R][R] = {};
    const float* pa = A + (size_t)blockIdx.y * M * n; const float* pb = B + blockIdx.x * M;
    for (int k = 0; k < n; k += K) {
        for (int l = threadIdx.x; l < M * K; l += W * W) a[l % K][l / K] = pa[(size_t)(l / K) * n + k + l % K];
        for (int l = threadIdx.x; l < M * K; l += W * W) b[l / M][l % M] = pb[(size_t)(k + l / M) * n + l % M];
        __syncthreads();
#pragma unroll
        for (int l = 0; l < K; l++) { float u[R], v[R];
#pragma unroll
            for (int r = 0; r < R; r++) { u[r] = a[l][j * R + r]; v[r] = b[l][i * R + r]; }
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int q = 0; q < R; q++) s[r][q] += u[r] * v[q]; }
        __syncthreads(); }
    for (int r = 0; r < R; r++) for (int q = 0; q < R; q++) C[(size_t)(blockIdx.y * M + j * R + r) * n + blockIdx.x * M + i * R + q] = s[r][q];
    finish(log, t); }
// A block a row of n, which it reads P times with barriers between, and then reads and writes once more with W: weights for all.
template <int P, int W> __global__ void __launch_bounds__(256) passes(const float* x, const float* w, float* y, int n, Log* log) {
    __shared__ float part[8]; long long t = now(); const float* r = x + (size_t)blockIdx.x * n; float s = 0;
    for (int p = 0; p < P; p++) {
        for (int i = threadIdx.x; i < n; i += 256) s += r[i] * (p + s);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s; __syncthreads(); s = part[threadIdx.x % 8]; __syncthreads(); }
    if (W == 1) for (int i = threadIdx.x; i < n; i += 256) y[(size_t)blockIdx.x * n + i] = r[i] * s;
    if (W == 2) for (int i = threadIdx.x; i < n; i += 256) y[(size_t)blockIdx.x * n + i] = r[i] * s * w[i];
    if (W == 0 && s == 12345.f) y[blockIdx.x] = s;
    finish(log, t); }
// An SM's own traffic: blocks of one warp that go through their elements in place.
__global__ void in_place(float* p, const float* g, float* m, float* v, int n, Log* log) {
    long long t = now(); int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = m[i] * .9f + g[i] * .1f, b = v[i] * .99f + g[i] * g[i] * .01f; m[i] = a; v[i] = b; p[i] = p[i] * .99f - a / (sqrtf(b) + 1e-8f); finish(log, t); }
