// One thread, TM x TN elements; a block of BM * BN / (TM * TN) threads loads its tiles element by element.

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / (TM * TN), 1)
    blocktile_2d(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int THREADS = BM * BN / (TM * TN), ROWS_A = THREADS / BK, ROWS_B = THREADS / BN;
    __shared__ float part_a[BM * BK], part_b[BK * BN];
    const unsigned thread = threadIdx.x;
    const int first_row = thread / (BN / TN) * TM, first_column = thread % (BN / TN) * TN;
    const unsigned row_a = thread / BK, column_a = thread % BK, row_b = thread / BN, column_b = thread % BN;

    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;

    float sum[TM * TN] = {}, a[TM], b[TN];
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = 0; i < BM; i += ROWS_A)
            part_a[(row_a + i) * BK + column_a] = A[(row_a + i) * K + column_a];
        for (int i = 0; i < BK; i += ROWS_B)
            part_b[(row_b + i) * BN + column_b] = B[(row_b + i) * N + column_b];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (int k = 0; k < BK; ++k) {
            for (int i = 0; i < TM; ++i)
                a[i] = part_a[(first_row + i) * BK + k];
            for (int j = 0; j < TN; ++j)
                b[j] = part_b[k * BN + first_column + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sum[i * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            float &c = C[(first_row + i) * N + first_column + j];
            c = alpha * sum[i * TN + j] + beta * c;
        }
}

// The same products with the tiles filled by a flat index, the grid counting tiles down C first, and no promise of the
// block's size: another published form, which the compiler gives other widths of shared loads.
template <unsigned BM, unsigned BN, unsigned BK, unsigned TM, unsigned TN>
__global__ void blocktile_2d_flat(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                  float *C)
{
    constexpr unsigned THREADS = BM * BN / (TM * TN);
    __shared__ float part_a[BM * BK], part_b[BK * BN];
    const unsigned thread_row = threadIdx.x / (BN / TN), thread_column = threadIdx.x % (BN / TN);

    A += blockIdx.x * BM * K;
    B += blockIdx.y * BN;
    C += blockIdx.x * BM * N + blockIdx.y * BN;

    float sum[TM * TN] = {}, a[TM] = {}, b[TN] = {};
    for (unsigned k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (unsigned first = 0; first < BM * BK; first += THREADS) {
            const unsigned i = first + threadIdx.x;
            part_a[i] = A[i / BK * K + i % BK];
        }
#pragma unroll
        for (unsigned first = 0; first < BK * BN; first += THREADS) {
            const unsigned i = first + threadIdx.x;
            part_b[i] = B[i / BN * N + i % BN];
        }
        __syncthreads();
        A += BK;
        B += BK * N;
        for (unsigned k = 0; k < BK; ++k) {
            for (unsigned i = 0; i < TM; ++i)
                a[i] = part_a[(thread_row * TM + i) * BK + k];
            for (unsigned j = 0; j < TN; ++j)
                b[j] = part_b[k * BN + thread_column * TN + j];
            for (unsigned i = 0; i < TM; ++i)
                for (unsigned j = 0; j < TN; ++j)
                    sum[i * TN + j] += a[i] * b[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < TM; ++i)
#pragma unroll
        for (unsigned j = 0; j < TN; ++j) {
            const unsigned c = (thread_row * TM + i) * N + thread_column * TN + j;
            C[c] = alpha * sum[i * TN + j] + beta * C[c];
        }
}
