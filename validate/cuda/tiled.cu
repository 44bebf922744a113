// One thread, one element; square tiles of A and B pass through shared memory.

// M, N and K are multiples of TILE. ROWS_FIRST: blockIdx.x counts tiles down C, as some ladders have it, else along a row.
// The block has TILE * TILE threads in one dimension, or TILE x TILE in two.
template <unsigned TILE, bool ROWS_FIRST>
__global__ void plain(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    __shared__ float part_a[TILE][TILE], part_b[TILE][TILE];
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const unsigned y = thread / TILE, x = thread % TILE;
    const unsigned row = (ROWS_FIRST ? blockIdx.x : blockIdx.y) * TILE + y;
    const unsigned column = (ROWS_FIRST ? blockIdx.y : blockIdx.x) * TILE + x;
    float sum = 0.0f;
    for (unsigned k0 = 0; k0 < K; k0 += TILE) {
        part_a[y][x] = A[row * K + k0 + x];
        part_b[y][x] = B[(k0 + y) * N + column];
        __syncthreads();
        for (unsigned k = 0; k < TILE; ++k)
            sum += part_a[y][k] * part_b[k][x];
        __syncthreads();
    }
    C[row * N + column] = alpha * sum + beta * C[row * N + column];
}

// Any size: elements outside count as zero.
template <unsigned TILE>
__global__ void guarded(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    __shared__ float part_a[TILE][TILE], part_b[TILE][TILE];
    const int y = threadIdx.y, x = threadIdx.x;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        part_a[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        part_b[y][x] = column < N && k0 + y < K ? B[(k0 + y) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += part_a[y][k] * part_b[k][x];
        __syncthreads();
    }
    if (row < M && column < N)
        C[row * N + column] = alpha * sum + beta * C[row * N + column];
}
