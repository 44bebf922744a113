// Tiles of blocks (BM x BN), of warps (WM x WN) and of threads (TM x TN, several a warp tile). WN is covered in STEPS_N steps,
// WM in as many as then remain; 128-bit accesses, A transposed on its way into shared memory.

__device__ float4 &four(float *p) { return *reinterpret_cast<float4 *>(p); }

template <int BM, int BN, int BK, int WM, int WN, int STEPS_N, int TM, int TN, int THREADS>
__global__ void __launch_bounds__(THREADS)
    warptiled(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    constexpr int STEPS_M = WM * WN / (32 * TM * TN * STEPS_N), SUB_M = WM / STEPS_M, SUB_N = WN / STEPS_N;
    constexpr int ROWS_A = THREADS / (BK / 4), ROWS_B = THREADS / (BN / 4);
    static_assert(BM / WM * (BN / WN) * 32 == THREADS, "a warp for each of its tiles");
    __shared__ float part_a[BK * BM], part_b[BK * BN];

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int warp_row = warp / (BN / WN) * WM, warp_column = warp % (BN / WN) * WN;
    const int lane_row = lane / (SUB_N / TN) * TM, lane_column = lane % (SUB_N / TN) * TN;
    const int row_a = thread / (BK / 4), column_a = thread % (BK / 4) * 4;
    const int row_b = thread / (BN / 4), column_b = thread % (BN / 4) * 4;

    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += (blockIdx.y * BM + warp_row) * N + blockIdx.x * BN + warp_column;

    float sum[STEPS_M * TM * STEPS_N * TN] = {}, a[STEPS_M * TM], b[STEPS_N * TN];
    for (int k0 = 0; k0 < K; k0 += BK, A += BK, B += BK * N) {
        for (int i = 0; i + ROWS_A <= BM; i += ROWS_A) {
            const float4 v = four(&A[(row_a + i) * K + column_a]);
            part_a[(column_a + 0) * BM + row_a + i] = v.x;
            part_a[(column_a + 1) * BM + row_a + i] = v.y;
            part_a[(column_a + 2) * BM + row_a + i] = v.z;
            part_a[(column_a + 3) * BM + row_a + i] = v.w;
        }
        for (int i = 0; i + ROWS_B <= BK; i += ROWS_B)
            four(&part_b[(row_b + i) * BN + column_b]) = four(&B[(row_b + i) * N + column_b]);
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            for (int s = 0; s < STEPS_M; ++s)
                for (int i = 0; i < TM; ++i)
                    a[s * TM + i] = part_a[k * BM + warp_row + s * SUB_M + lane_row + i];
            for (int s = 0; s < STEPS_N; ++s)
                for (int j = 0; j < TN; ++j)
                    b[s * TN + j] = part_b[k * BN + warp_column + s * SUB_N + lane_column + j];
            for (int i = 0; i < STEPS_M * TM; ++i)
                for (int j = 0; j < STEPS_N * TN; ++j)
                    sum[i * STEPS_N * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int sm = 0; sm < STEPS_M; ++sm)
        for (int sn = 0; sn < STEPS_N; ++sn)
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; j += 4) {
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
