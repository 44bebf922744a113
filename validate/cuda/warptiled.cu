// Tiles of blocks (BM x BN), of warps (WM x WN) and of threads (TM x TN, several a warp tile). WN is covered in STEPS_N steps,
// WM in as many as then remain; 128-bit accesses, A transposed on its way into shared memory.

__device__ float4 &four(float *p) { return *reinterpret_cast<float4 *>(p); }

// SQUARES: the grid has one dimension and walks C in squares of 4 x 4 blocks, which share more of A and B in L2.
// Index, of positions inside a tile: with int the compiler sees that fragments of A are 16-byte aligned and reads them by
// LDS.128, with unsigned (whose sums may wrap) it does not and reads them by LDS.
template <int BM, int BN, int BK, int WM, int WN, int STEPS_N, int TM, int TN, int THREADS, bool SQUARES, typename Index>
__global__ void __launch_bounds__(THREADS)
    warptiled(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    constexpr int STEPS_M = WM * WN / (32 * TM * TN * STEPS_N), SUB_M = WM / STEPS_M, SUB_N = WN / STEPS_N;
    constexpr int ROWS_A = THREADS / (BK / 4), ROWS_B = THREADS / (BN / 4), SIDE = 4;
    static_assert(BM / WM * (BN / WN) * 32 == THREADS, "a warp for each of its tiles");
    __shared__ float part_a[BK * BM], part_b[BK * BN];

    unsigned block_row = blockIdx.y, block_column = blockIdx.x;
    if constexpr (SQUARES) {
        const unsigned square = blockIdx.x / (SIDE * SIDE), inside = blockIdx.x % (SIDE * SIDE), across = N / BN / SIDE;
        block_row = square / across * SIDE + inside / SIDE;
        block_column = square % across * SIDE + inside % SIDE;
    }
    const Index thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const Index warp_row = warp / (BN / WN) * WM, warp_column = warp % (BN / WN) * WN;
    const Index lane_row = lane / (SUB_N / TN) * TM, lane_column = lane % (SUB_N / TN) * TN;
    const Index row_a = thread / (BK / 4), column_a = thread % (BK / 4) * 4;
    const Index row_b = thread / (BN / 4), column_b = thread % (BN / 4) * 4;

    A += block_row * BM * K;
    B += block_column * BN;
    C += (block_row * BM + warp_row) * N + block_column * BN + warp_column;

    float sum[STEPS_M * TM * STEPS_N * TN] = {}, a[STEPS_M * TM], b[STEPS_N * TN];
    for (Index k0 = 0; k0 < K; k0 += BK, A += BK, B += BK * N) {
        for (Index i = 0; i + ROWS_A <= BM; i += ROWS_A) {
            const float4 v = four(&A[(row_a + i) * K + column_a]);
            part_a[(column_a + 0) * BM + row_a + i] = v.x;
            part_a[(column_a + 1) * BM + row_a + i] = v.y;
            part_a[(column_a + 2) * BM + row_a + i] = v.z;
            part_a[(column_a + 3) * BM + row_a + i] = v.w;
        }
        for (Index i = 0; i + ROWS_B <= BK; i += ROWS_B)
            four(&part_b[(row_b + i) * BN + column_b]) = four(&B[(row_b + i) * N + column_b]);
        __syncthreads();
        for (Index k = 0; k < BK; ++k) {
            for (Index s = 0; s < STEPS_M; ++s)
                for (Index i = 0; i < TM; ++i)
                    a[s * TM + i] = part_a[k * BM + warp_row + s * SUB_M + lane_row + i];
            for (Index s = 0; s < STEPS_N; ++s)
                for (Index j = 0; j < TN; ++j)
                    b[s * TN + j] = part_b[k * BN + warp_column + s * SUB_N + lane_column + j];
            for (Index i = 0; i < STEPS_M * TM; ++i)
                for (Index j = 0; j < STEPS_N * TN; ++j)
                    sum[i * STEPS_N * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (Index sm = 0; sm < STEPS_M; ++sm)
        for (Index sn = 0; sn < STEPS_N; ++sn)
            for (Index i = 0; i < TM; ++i)
                for (Index j = 0; j < TN; j += 4) {
                    float *c = &C[(sm * SUB_M + lane_row + i) * N + sn * SUB_N + lane_column + j];
                    const float *s = sum + (sm * TM + i) * STEPS_N * TN + sn * TN + j;
                    float4 v = four(c);
                    v.x = alpha * s[0] + beta * v.x;
                    v.y = alpha * s[1] + beta * v.y;
                    v.z = alpha * s[2] + beta * v.z;
                    v.w = alpha * s[3] + beta * v.w;
                    four(c) = v;
                }
}
