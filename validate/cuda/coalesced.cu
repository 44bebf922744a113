// One thread, one element, blocks of TILE * TILE threads in one dimension: a warp stays in one row for TILE = 32.

template <unsigned TILE>
__global__ void coalesced(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    const unsigned row = blockIdx.x * TILE + threadIdx.x / TILE;
    const unsigned column = blockIdx.y * TILE + threadIdx.x % TILE;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = alpha * sum + beta * C[row * N + column];
}
