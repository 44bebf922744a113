// One thread, TM x TN elements; global memory is read and written 4 floats at a time.

__device__ float4 &four(float *p) { return *reinterpret_cast<float4 *>(p); }

// alpha * sum + beta * C for a thread's TM rows of TN elements, C pointing at the first.
template <int TM, int TN>
__device__ void store(float *C, int N, const float *sum, float alpha, float beta)
{
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; j += 4) {
            float4 c = four(&C[i * N + j]);
            const float *s = sum + i * TN + j;
            c.x = alpha * s[0] + beta * c.x;
            c.y = alpha * s[1] + beta * c.y;
            c.z = alpha * s[2] + beta * c.z;
            c.w = alpha * s[3] + beta * c.w;
            four(&C[i * N + j]) = c;
        }
}

// A's tile is transposed on its way into shared memory, so that a thread's TM elements of a column of A are neighbours.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / (TM * TN))
    transposed(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    constexpr int THREADS = BM * BN / (TM * TN), ROWS_A = THREADS / (BK / 4), ROWS_B = THREADS / (BN / 4);
    __shared__ float part_a[BK * BM], part_b[BK * BN];
    const unsigned thread = threadIdx.x;
    const int first_row = thread / (BN / TN) * TM, first_column = thread % (BN / TN) * TN;
    const unsigned row_a = thread / (BK / 4), column_a = thread % (BK / 4) * 4;
    const unsigned row_b = thread / (BN / 4), column_b = thread % (BN / 4) * 4;

    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;

    float sum[TM * TN] = {}, a[TM], b[TN];
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
            for (int i = 0; i < TM; ++i)
                a[i] = part_a[k * BM + first_row + i];
            for (int j = 0; j < TN; ++j)
                b[j] = part_b[k * BN + first_column + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sum[i * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
    store<TM, TN>(&C[first_row * N + first_column], N, sum, alpha, beta);
}

// A's tile keeps its rows: 128-bit stores into shared memory, and a column of A is read BK elements apart.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void rows(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    __shared__ float part_a[BM][BK], part_b[BK][BN];
    const int first_row = threadIdx.x / (BN / TN) * TM, first_column = threadIdx.x % (BN / TN) * TN;
    const int top = blockIdx.y * BM, left = blockIdx.x * BN;

    float sum[TM * TN] = {}, a[TM], b[TN];
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = threadIdx.x; i < BM * BK / 4; i += blockDim.x) {
            const int row = i / (BK / 4), column = i % (BK / 4) * 4;
            four(&part_a[row][column]) = four(&A[(top + row) * K + k0 + column]);
        }
        for (int i = threadIdx.x; i < BK * BN / 4; i += blockDim.x) {
            const int row = i / (BN / 4), column = i % (BN / 4) * 4;
            four(&part_b[row][column]) = four(&B[(k0 + row) * N + left + column]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a[i] = part_a[first_row + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b[j] = part_b[k][first_column + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
    store<TM, TN>(&C[(top + first_row) * N + left + first_column], N, sum, alpha, beta);
}
