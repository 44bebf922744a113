// GEMM kernels in the shapes that people write them in: C = A * B, row-major, any number type that `T` says.
// The tests compile them for every architecture, execute them without a GPU and compare C with NumPy.
// Kernels whose comment does not say otherwise take any M, N and K.
#include <cuda_fp16.h>

// ---- Block tiles: each thread computes TM (x TN) results from shared tiles.

template <int BM, int BN, int BK, int TM>
__global__ void blocktile_1d(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BM][BK], Bs[BK][BN];
    const int threads = BM * BN / TM, tid = threadIdx.x;
    const int row = tid / BN * TM, col = tid % BN, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    float acc[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = tid; i < BM * BK; i += threads) {
            int m = m0 + i / BK, k = k0 + i % BK;
            As[i / BK][i % BK] = m < M && k < K ? A[m * K + k] : 0.f;
        }
        for (int i = tid; i < BK * BN; i += threads) {
            int k = k0 + i / BN, n = n0 + i % BN;
            Bs[i / BN][i % BN] = k < K && n < N ? B[k * N + n] : 0.f;
        }
        __syncthreads();
        for (int k = 0; k < BK; k++) {
            float b = Bs[k][col];
            for (int i = 0; i < TM; i++) acc[i] += As[row + i][k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; i++)
        if (m0 + row + i < M && n0 + col < N) C[(m0 + row + i) * N + n0 + col] = acc[i];
}

template <typename T, int BM, int BN, int BK, int TM, int TN>
__global__ void blocktile_2d(const T* A, const T* B, T* C, int M, int N, int K) {
    __shared__ T As[BM * BK], Bs[BK * BN];
    const int threads = BM * BN / (TM * TN), tid = threadIdx.x;
    const int row = tid / (BN / TN) * TM, col = tid % (BN / TN) * TN, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    T acc[TM][TN] = {}, a[TM], b[TN];
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = tid; i < BM * BK; i += threads) {
            int m = m0 + i / BK, k = k0 + i % BK;
            As[i] = m < M && k < K ? A[m * K + k] : T(0.f);
        }
        for (int i = tid; i < BK * BN; i += threads) {
            int k = k0 + i / BN, n = n0 + i % BN;
            Bs[i] = k < K && n < N ? B[k * N + n] : T(0.f);
        }
        __syncthreads();
        for (int k = 0; k < BK; k++) {
            for (int i = 0; i < TM; i++) a[i] = As[(row + i) * BK + k];
            for (int j = 0; j < TN; j++) b[j] = Bs[k * BN + col + j];
            for (int i = 0; i < TM; i++)
                for (int j = 0; j < TN; j++) acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++)
            if (m0 + row + i < M && n0 + col + j < N) C[(m0 + row + i) * N + n0 + col + j] = acc[i][j];
}

// 16-byte accesses everywhere, A transposed on its way into shared memory. M, N multiples of the tile, K of BK.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void vectorized(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[BK][BM], Bs[BK][BN];
    const int threads = BM * BN / (TM * TN), tid = threadIdx.x;
    const int row = tid / (BN / TN) * TM, col = tid % (BN / TN) * TN;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    float acc[TM][TN] = {}, a[TM], b[TN];
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = tid; i < BM * BK / 4; i += threads) {
            int m = i / (BK / 4), k = i % (BK / 4) * 4;
            float4 v = *(const float4*)(A + m * K + k);
            As[k][m] = v.x, As[k + 1][m] = v.y, As[k + 2][m] = v.z, As[k + 3][m] = v.w;
        }
        for (int i = tid; i < BK * BN / 4; i += threads) {
            int k = i / (BN / 4), n = i % (BN / 4) * 4;
            *(float4*)&Bs[k][n] = *(const float4*)(B + k * N + n);
        }
        __syncthreads();
        A += BK;
        B += BK * N;
        for (int k = 0; k < BK; k++) {
            for (int i = 0; i < TM; i += 4) *(float4*)&a[i] = *(float4*)&As[k][row + i];
            for (int j = 0; j < TN; j += 4) *(float4*)&b[j] = *(float4*)&Bs[k][col + j];
            for (int i = 0; i < TM; i++)
                for (int j = 0; j < TN; j++) acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j += 4) *(float4*)(C + (row + i) * N + col + j) = *(float4*)&acc[i][j];
}

// Warps own WM x WN parts of the block's tile, threads 4 x 4 pieces of 2 x 2 subtiles. Sizes as in `vectorized`.
template <int BM, int BN, int BK, int WM, int WN>
__global__ void __launch_bounds__(BM * BN / (WM * WN) * 32) warptiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[2][BK][BM], Bs[2][BK][BN];
    const int threads = BM * BN / (WM * WN) * 32, tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int wm = warp / (BN / WN) * WM, wn = warp % (BN / WN) * WN, tm = lane / 8 * 4, tn = lane % 8 * 4;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += (blockIdx.y * BM + wm) * N + blockIdx.x * BN + wn;
    const int SM = 16, SN = 32;
    float acc[WM / SM * 4][WN / SN * 4] = {}, a[WM / SM * 4], b[WN / SN * 4];
    auto fetch = [&](int stage) {
        for (int i = tid; i < BM * BK / 4; i += threads) {
            int m = i / (BK / 4), k = i % (BK / 4) * 4;
            float4 v = __ldg((const float4*)(A + m * K + k));
            As[stage][k][m] = v.x, As[stage][k + 1][m] = v.y, As[stage][k + 2][m] = v.z, As[stage][k + 3][m] = v.w;
        }
        for (int i = tid; i < BK * BN / 4; i += threads) {
            int k = i / (BN / 4), n = i % (BN / 4) * 4;
            *(float4*)&Bs[stage][k][n] = __ldg((const float4*)(B + k * N + n));
        }
        A += BK;
        B += BK * N;
    };
    fetch(0);
    __syncthreads();
    for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
        if (k0 + BK < K) fetch(stage ^ 1);
        for (int k = 0; k < BK; k++) {
            for (int i = 0; i < WM / SM; i++) *(float4*)&a[4 * i] = *(float4*)&As[stage][k][wm + i * SM + tm];
            for (int j = 0; j < WN / SN; j++) *(float4*)&b[4 * j] = *(float4*)&Bs[stage][k][wn + j * SN + tn];
            for (int i = 0; i < WM / SM * 4; i++)
                for (int j = 0; j < WN / SN * 4; j++) acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < WM / SM * 4; i++)
        for (int j = 0; j < WN / SN; j++)
            *(float4*)(C + (i / 4 * SM + tm + i % 4) * N + j * SN + tn) = *(float4*)&acc[i][4 * j];
}

// ---- Without shared memory.

// Lanes hold 32 elements of a row of A and pass them round. One warp a row, 32 columns.
__global__ void shuffled(const float* A, const float* B, float* C, int M, int N, int K) {
    int lane = threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * 32 + lane;
    float acc = 0;
    for (int k0 = 0; k0 < K; k0 += 32) {
        float mine = row < M && k0 + lane < K ? A[row * K + k0 + lane] : 0.f;
        for (int k = 0; k < 32; k++) {
            float a = __shfl_sync(0xffffffff, mine, k);
            acc += a * (k0 + k < K && col < N ? B[(k0 + k) * N + col] : 0.f);
        }
    }
    if (row < M && col < N) C[row * N + col] = acc;
}

// A warp a result: lanes take K in turns and add up by butterflies and downward shifts.
__global__ void reduced(const float* A, const float* B, float* C, int M, int N, int K) {
    int lane = threadIdx.x, row = blockIdx.y, col = blockIdx.x * blockDim.y + threadIdx.y;
    float acc = 0;
    for (int k = lane; k < K; k += 32) acc += col < N ? A[row * K + k] * B[k * N + col] : 0.f;
    for (int step = 16; step > 2; step /= 2) acc += __shfl_xor_sync(0xffffffff, acc, step);
    acc += __shfl_down_sync(0xffffffff, acc, 2, 4);
    acc += __shfl_down_sync(0xffffffff, acc, 1, 2);
    if (lane == 0 && col < N) C[row * N + col] = acc;
}

// Each thread a 4 x 4 tile, straight from global memory.
__global__ void register_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 4, col = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    float acc[4][4] = {}, a[4], b[4];
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < 4; i++) a[i] = row + i < M ? A[(row + i) * K + k] : 0.f;
        for (int j = 0; j < 4; j++) b[j] = col + j < N ? B[k * N + col + j] : 0.f;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) acc[i][j] += a[i] * b[j];
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (row + i < M && col + j < N) C[(row + i) * N + col + j] = acc[i][j];
}

// ---- K split over blocks.

__global__ void split_k_atomic(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    int part = (K + gridDim.z - 1) / gridDim.z, first = blockIdx.z * part, last = min(K, first + part);
    if (row >= M || col >= N) return;
    float acc = 0;
    for (int k = first; k < last; k++) acc += A[row * K + k] * B[k * N + col];
    atomicAdd(C + row * N + col, acc);
}

// Partial results to `parts`; the last block to arrive at a tile (a ticket in `tickets`) adds them up.
__global__ void split_k_ticket(const float* A, const float* B, float* C, int M, int N, int K, float* parts, int* tickets) {
    __shared__ bool is_last;
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float acc = 0;
    bool inside = row < M && col < N;
    for (int k = blockIdx.z; k < K; k += gridDim.z) acc += inside ? A[row * K + k] * B[k * N + col] : 0.f;
    if (inside) parts[(blockIdx.z * M + row) * N + col] = acc;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        is_last = atomicAdd(tickets + blockIdx.y * gridDim.x + blockIdx.x, 1) == gridDim.z - 1;
    __syncthreads();
    if (!is_last || !inside) return;
    float total = 0;
    for (int z = 0; z < gridDim.z; z++) total += ((volatile float*)parts)[(z * M + row) * N + col];
    C[row * N + col] = total;
}

// The two passes as two launches: `split_k_partial` into parts[z], then `add_parts` (A = parts, M * N results, K parts).
__global__ void split_k_partial(const float* A, const float* B, float* parts, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float acc = 0;
    for (int k = blockIdx.z; k < K; k += gridDim.z) acc += A[row * K + k] * B[k * N + col];
    parts[(size_t)blockIdx.z * M * N + row * N + col] = acc;
}

__global__ void add_parts(const float* parts, float* C, int results, int n_parts) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < results; i += gridDim.x * blockDim.x) {
        float total = 0;
        for (int z = 0; z < n_parts; z++) total += parts[(size_t)z * results + i];
        C[i] = total;
    }
}

// ---- Asynchronous copies (sm_80 and later), STAGES tiles in flight; cp.async fills with zeros past the edges.
#if __CUDA_ARCH__ >= 800

__device__ __forceinline__ void copy16(void* to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes));
}

__device__ __forceinline__ void copy4(void* to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes));
}

template <int STAGES, bool WIDE>
__global__ void pipelined(const float* A, const float* B, float* C, int M, int N, int K) {
    const int BM = 32, BN = 32, BK = 16, threads = 256;
    __shared__ __align__(16) float As[STAGES][BM][BK], Bs[STAGES][BK][BN];
    const int tid = threadIdx.x, row = tid / 16 * 2, col = tid % 16 * 2, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    const int tiles = (K + BK - 1) / BK;
    auto fetch = [&](int tile) {
        int stage = tile % STAGES, k0 = tile * BK;
        if (tile < tiles) {
            if (WIDE) {  // 16 bytes: K and N multiples of 4
                for (int i = tid; i < BM * BK / 4; i += threads) {
                    int m = i / (BK / 4), k = i % (BK / 4) * 4;
                    bool in = m0 + m < M && k0 + k < K;
                    copy16(&As[stage][m][k], A + (in ? (m0 + m) * K + k0 + k : 0), in ? 16 : 0);
                }
                for (int i = tid; i < BK * BN / 4; i += threads) {
                    int k = i / (BN / 4), n = i % (BN / 4) * 4;
                    bool in = k0 + k < K && n0 + n < N;
                    copy16(&Bs[stage][k][n], B + (in ? (k0 + k) * N + n0 + n : 0), in ? 16 : 0);
                }
            } else {
                for (int i = tid; i < BM * BK; i += threads) {
                    int m = i / BK, k = i % BK;
                    bool in = m0 + m < M && k0 + k < K;
                    copy4(&As[stage][m][k], A + (in ? (m0 + m) * K + k0 + k : 0), in ? 4 : 0);
                }
                for (int i = tid; i < BK * BN; i += threads) {
                    int k = i / BN, n = i % BN;
                    bool in = k0 + k < K && n0 + n < N;
                    copy4(&Bs[stage][k][n], B + (in ? (k0 + k) * N + n0 + n : 0), in ? 4 : 0);
                }
            }
        }
        asm volatile("cp.async.commit_group;");
    };
    float acc[2][2] = {};
    for (int tile = 0; tile < STAGES - 1; tile++) fetch(tile);
    for (int tile = 0; tile < tiles; tile++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        fetch(tile + STAGES - 1);
        for (int k = 0; k < BK; k++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) acc[i][j] += As[tile % STAGES][row + i][k] * Bs[tile % STAGES][k][col + j];
    }
    asm volatile("cp.async.wait_all;");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (m0 + row + i < M && n0 + col + j < N) C[(m0 + row + i) * N + n0 + col + j] = acc[i][j];
}

// The plain form, without a source size, two stages, dynamic shared memory. Sizes multiples of 32.
__global__ void double_buffered_async(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float tiles[];
    const int BM = 32, BN = 32, BK = 32;
    float *As[2] = {tiles, tiles + BM * BK}, *Bs[2] = {tiles + 2 * BM * BK, tiles + 2 * BM * BK + BK * BN};
    const int tid = threadIdx.x, row = tid / 8, col = tid % 8 * 4;
    const float *a = A + (blockIdx.y * BM + row) * K + col, *b = B + row * N + blockIdx.x * BN + col;
    auto fetch = [&](int stage) {
        unsigned to_a = (unsigned)__cvta_generic_to_shared(As[stage] + row * BK + col);
        unsigned to_b = (unsigned)__cvta_generic_to_shared(Bs[stage] + row * BN + col);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_a), "l"(a));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to_b), "l"(b));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to_b + 8), "l"(b + 2));
        asm volatile("cp.async.commit_group;");
        a += BK, b += BK * N;
    };
    float acc[4] = {};
    fetch(0);
    for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
        if (k0 + BK < K) {
            fetch(stage ^ 1);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        for (int k = 0; k < BK; k++)
            for (int j = 0; j < 4; j++) acc[j] += As[stage][row * BK + k] * Bs[stage][k * BN + col + j];
        __syncthreads();
    }
    *(float4*)(C + (blockIdx.y * BM + row) * N + blockIdx.x * BN + col) = make_float4(acc[0], acc[1], acc[2], acc[3]);
}
#endif

// ---- Scheduling by hand.

// A grid of any size: blocks walk over the tiles, whose place comes from integer division by numbers known at run time only.
__global__ void persistent(const float* A, const float* B, float* C, int M, int N, int K, int group) {
    __shared__ float As[16][16], Bs[16][16];
    int tiles_m = (M + 15) / 16, tiles_n = (N + 15) / 16, tx = threadIdx.x, ty = threadIdx.y;
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        // Rows of tiles in groups, for the L2: column by column inside a group.
        int in_group = group * tiles_n, first = tile / in_group * group, size = min(tiles_m - first, group);
        int bm = first + tile % in_group % size, bn = tile % in_group / size;
        int row = bm * 16 + ty, col = bn * 16 + tx;
        float acc = 0;
        for (int k0 = 0; k0 < K; k0 += 16) {
            As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.f;
            Bs[ty][tx] = k0 + ty < K && col < N ? B[(k0 + ty) * N + col] : 0.f;
            __syncthreads();
            for (int k = 0; k < 16; k++) acc += As[ty][k] * Bs[k][tx];
            __syncthreads();
        }
        if (row < M && col < N) C[row * N + col] = acc;
    }
}

// As above, with 64-bit and unsigned division, work handed out by an atomic counter.
__global__ void work_queue(const float* A, const float* B, float* C, int M, int N, int K, unsigned long long* next) {
    __shared__ unsigned long long mine;
    for (;;) {
        if (threadIdx.x == 0) mine = atomicAdd(next, 1ull);
        __syncthreads();
        unsigned long long item = mine;
        __syncthreads();
        long long per_row = (N + blockDim.x - 1) / blockDim.x;
        if (item >= per_row * M) return;
        int row = (long long)item / per_row, col = (unsigned)(item % per_row) * blockDim.x + threadIdx.x;
        if (col >= N) continue;
        float acc = 0;
        for (int k = 0; k < K; k++) acc += A[row * K + k] * B[k * N + col];
        C[row * N + col] = acc;
    }
}

// ---- Divergence.

// Threads leave their loops at different times, meet, and diverge again; some leave early for good.
__global__ void divergent(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= N) return;
    if (row >= M) return;
    float acc = 0;
    int k = 0, mine = (threadIdx.x * 7 + threadIdx.y) % 5;
    while (k < K) {
        if (k % 5 == mine) {
            acc = __fmaf_rn(A[row * K + k], B[k * N + col], acc);
            k++;
            continue;
        }
        if (mine & 1) {
            for (int stop = min(K, k + mine); k < stop; k++) acc += A[row * K + k] * B[k * N + col];
        } else if (mine == 2) {
            do {
                acc += A[row * K + k] * B[k * N + col];
                if (++k >= K) break;
            } while (k % 3);
        } else {
            switch (k & 3) {
                case 0: acc += A[row * K + k] * B[k * N + col]; break;
                case 1: acc -= -A[row * K + k] * B[k * N + col]; break;
                case 2: acc += (A[row * K + k] + 1) * B[k * N + col]; acc -= B[k * N + col]; break;
                default: acc += 2 * A[row * K + k] * B[k * N + col] * 0.5f;
            }
            k++;
        }
    }
    C[row * N + col] = acc;
}

// Blocks of any number of threads (also not a multiple of 32), barriers inside loops, votes that all threads take part in.
__global__ void odd_block(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ float row_of_a[];
    __shared__ int used;
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        if (threadIdx.x == 0) used = 0;
        __syncthreads();
        for (int k = threadIdx.x; k < K; k += blockDim.x) {
            row_of_a[k] = A[row * K + k];
            atomicAdd(&used, 1);
        }
        __syncthreads();
        for (int n0 = 0; __syncthreads_or(n0 + threadIdx.x < N); n0 += blockDim.x) {
            int col = n0 + threadIdx.x;
            float acc = 0;
            if (col < N)
                for (int k = 0; k < used; k++) acc += row_of_a[k] * B[k * N + col];
            if (col < N) C[row * N + col] = acc;
            __syncthreads();
        }
    }
}

// A call that is not inlined, with the thread's own array on its stack.
__device__ __noinline__ float dot(const float* a, const float* b, int stride, int K) {
    float part[8];
    for (int i = 0; i < 8; i++) part[i] = 0;
    for (int k = 0; k < K; k++) part[k % 8] += a[k] * b[(size_t)k * stride];
    float total = 0;
    for (int i = 0; i < 8; i++) total += part[(i * 3) % 8];
    return total;
}

__global__ void calling(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) C[row * N + col] = dot(A + (size_t)row * K, B + col, N, K);
}

// ---- Half precision, added up in float32.
__global__ void half_in(const __half* A, const __half* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float acc = 0;
    for (int k = 0; k < K; k++) acc += __half2float(A[row * K + k]) * __half2float(B[k * N + col]);
    C[row * N + col] = acc;
}

// Pairs of columns as half2. N even.
__global__ void half2_math(const __half* A, const __half* B, __half* C, int M, int N, int K) {
    int col = (blockIdx.x * blockDim.x + threadIdx.x) * 2, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    __half2 acc = __float2half2_rn(0.f);
    for (int k = 0; k < K; k++) acc = __hfma2(__half2half2(A[row * K + k]), *(const __half2*)(B + k * N + col), acc);
    *(__half2*)(C + row * N + col) = acc;
}

template __global__ void blocktile_1d<64, 64, 8, 8>(const float*, const float*, float*, int, int, int);
template __global__ void blocktile_2d<float, 64, 64, 8, 8, 8>(const float*, const float*, float*, int, int, int);
template __global__ void blocktile_2d<float, 128, 128, 8, 8, 8>(const float*, const float*, float*, int, int, int);
template __global__ void blocktile_2d<float, 64, 64, 8, 16, 16>(const float*, const float*, float*, int, int, int);
template __global__ void blocktile_2d<double, 32, 32, 8, 4, 4>(const double*, const double*, double*, int, int, int);
template __global__ void vectorized<64, 64, 8, 8, 8>(const float*, const float*, float*, int, int, int);
template __global__ void warptiled<64, 128, 16, 32, 64>(const float*, const float*, float*, int, int, int);
#if __CUDA_ARCH__ >= 800
template __global__ void pipelined<2, true>(const float*, const float*, float*, int, int, int);
template __global__ void pipelined<3, false>(const float*, const float*, float*, int, int, int);
template __global__ void pipelined<4, true>(const float*, const float*, float*, int, int, int);
#endif
