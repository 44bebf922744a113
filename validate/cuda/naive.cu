// One thread, one element of C = alpha A B + beta C, straight from global memory.

__device__ float dot(const float *a, const float *b, int step_a, int step_b, int length)
{
    float sum = 0.0f;
    for (int i = 0; i < length; ++i)
        sum += a[i * step_a] * b[i * step_b];
    return sum;
}

// Neighbouring threads of a warp take neighbouring rows: every load of A and store of C touches 32 lines.
extern "C" __global__ void rows_along_x(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                        float *C)
{
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && column < N)
        C[row * N + column] = alpha * dot(A + row * K, B + column, 1, N, K) + beta * C[row * N + column];
}

// Neighbouring threads take neighbouring columns.
extern "C" __global__ void columns_along_x(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                           float *C)
{
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N)
        C[row * N + column] = alpha * dot(A + row * K, B + column, 1, N, K) + beta * C[row * N + column];
}

// The same with B given as its transpose [N, K]: a warp's loads of B are K elements apart.
extern "C" __global__ void columns_along_x_bt(int M, int N, int K, float alpha, const float *A, const float *B,
                                              float beta, float *C)
{
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N)
        C[row * N + column] = alpha * dot(A + row * K, B + column * K, 1, 1, K) + beta * C[row * N + column];
}
