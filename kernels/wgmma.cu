// C = alpha A B + beta C by one warpgroup a block with wgmma. Ordinary loads and stores stage the tiles of A and B.
#include "wgmma_tiles.cuh"

constexpr int TILE_M = 128;

extern "C" __global__ void __launch_bounds__(WARPGROUP)
wgmma(const Element* a, const Element* b, float* c, float alpha, float beta, int m, int n, int k)
{
    extern __shared__ __align__(REPEAT) char tiles[];
    char *tile_a = tiles, *tile_b = tiles + TILE_M * LINE;
    const Matrix from_a{a, m, k}, from_b{b, k, n};
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N;
    float upper[TILE_N / 2], lower[TILE_N / 2];
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        copy_box<8>(tile_a, from_a, k0, row, TILE_M, threadIdx.x, WARPGROUP);
#pragma unroll
        for (int box = 0; box < BOXES_B; box++) {
            char* to = tile_b + box * BOX_B_ROWS * LINE;
            copy_box<8>(to, from_b, column + box * BOX_B_COLUMNS, k0, BOX_B_ROWS, threadIdx.x, WARPGROUP);
        }
        show_shared();
        __syncthreads();
        begin_products();
        multiply(upper, tile_a, tile_b, k0 > 0);
        multiply(lower, tile_a + 64 * LINE, tile_b, k0 > 0);
        commit_products();
        wait_for_products<0>();
        __syncthreads();
    }
    const Result to{c, m, n, alpha, beta};
    finish_sums(to, upper, row, column);
    finish_sums(to, lower, row + 64, column);
    store_sums(to, upper, row, column);
    store_sums(to, lower, row + 64, column);
}
