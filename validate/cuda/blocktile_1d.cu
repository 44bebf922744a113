// One thread, a column of TM elements. A block of BM * BN / TM = BM * BK = BK * BN threads loads one element of each tile.

template <int BM, int BN, int BK, int TM>
__global__ void blocktile_1d(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    static_assert(BM * BN / TM == BM * BK && BM * BK == BK * BN, "one element of A and of B a thread");
    __shared__ float part_a[BM * BK], part_b[BK * BN];
    const unsigned thread = threadIdx.x;
    const int column = thread % BN, first_row = thread / BN * TM;
    const unsigned row_a = thread / BK, column_a = thread % BK, row_b = thread / BN, column_b = thread % BN;

    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;

    float sum[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK, A += BK, B += BK * N) {
        part_a[row_a * BK + column_a] = A[row_a * K + column_a];
        part_b[row_b * BN + column_b] = B[row_b * N + column_b];
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            const float b = part_b[k * BN + column];
            for (int i = 0; i < TM; ++i)
                sum[i] += part_a[(first_row + i) * BK + k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        float &c = C[(first_row + i) * N + column];
        c = alpha * sum[i] + beta * c;
    }
}
