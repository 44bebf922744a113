// One thread, EACH x EACH elements; the block is (TILE / EACH) x (TILE / EACH) and loads tiles of TILE x TILE.

template <int TILE, int EACH>
__global__ void register_tiled(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int SIDE = TILE / EACH;
    __shared__ float part_a[TILE][TILE], part_b[TILE][TILE];
    const int y = threadIdx.y, x = threadIdx.x;
    const int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    float sum[EACH][EACH] = {};
    for (int k0 = 0; k0 < K; k0 += TILE) {
        for (int di = 0; di < TILE; di += SIDE)
            for (int dj = 0; dj < TILE; dj += SIDE) {
                const int i = di + y, j = dj + x;
                part_a[i][j] = top + i < M && k0 + j < K ? A[(top + i) * K + k0 + j] : 0.0f;
                part_b[i][j] = k0 + i < K && left + j < N ? B[(k0 + i) * N + left + j] : 0.0f;
            }
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            float a[EACH], b[EACH];
            for (int e = 0; e < EACH; ++e) {
                a[e] = part_a[y * EACH + e][k];
                b[e] = part_b[k][x * EACH + e];
            }
            for (int i = 0; i < EACH; ++i)
                for (int j = 0; j < EACH; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) {
            const int row = top + y * EACH + i, column = left + x * EACH + j;
            if (row < M && column < N)
                C[row * N + column] = alpha * sum[i][j] + beta * C[row * N + column];
        }
}
