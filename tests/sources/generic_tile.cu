// A tiled product whose inner loop reads its tiles through pointers. With GENERIC the compiler cannot know that they are
// in shared memory, so that it makes LD instead of LDS; nothing else differs.
extern "C" __global__ void product(const float* a, const float* b, float* c, int n, int never) {
    __shared__ float tile_a[16][16], tile_b[16][17];
    int x = threadIdx.x, y = threadIdx.y, row = 16 * blockIdx.y + y, column = 16 * blockIdx.x + x;
    float sum = 0;
    const float* left = &tile_a[y][0];
    const float* right = &tile_b[0][x];
#ifdef GENERIC
    if (never) left = a, right = b;
#endif
    for (int k = 0; k < n; k += 16) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[i] * right[17 * i];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
