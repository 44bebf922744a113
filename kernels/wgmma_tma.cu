// wgmma with a ring of stages that TMA fills: one thread asks for the tiles of a later stage while the warpgroup
// multiplies. Where rows do not start at multiples of 16 bytes, which TMA cannot read, all threads copy them instead.
#include "wgmma_ring.cuh"


extern "C" __global__ void __launch_bounds__(WARPGROUP) wgmma_tma(
    const Element* a, const Element* b, float* c, float alpha, float beta, int m, int n, int k,
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b)
{
    extern __shared__ __align__(REPEAT) char tiles[];
    Words* full = reinterpret_cast<Words*>(tiles + STAGES * Stages::BYTES_OF_STAGE);
    const Source from{{a, m, k}, {b, k, n}, &map_a, &map_b};
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N, rounds = divide_up(k, TILE_K);
    const bool by_tma = from.fits_tma();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) make_barrier(full + stage, by_tma ? 1 : WARPGROUP);
        show_barriers();
    }
    __syncthreads();
    auto fetch = [&](int round) {
        Words* barrier = full + round % STAGES;
        char* stage = tiles + round % STAGES * Stages::BYTES_OF_STAGE;
        if (!by_tma)
            Stages::copy(stage, from, row, column, round * TILE_K, barrier, threadIdx.x, WARPGROUP);
        else if (threadIdx.x == 0)
            Stages::load(stage, from, row, column, round * TILE_K, barrier);
    };
    for (int round = 0; round < min(STAGES - 1, rounds); round++) fetch(round);
    float upper[TILE_N / 2], lower[TILE_N / 2];
    for (int round = 0; round < rounds; round++) {
        wait(full + round % STAGES, round / STAGES % 2);
        const char* stage = tiles + round % STAGES * Stages::BYTES_OF_STAGE;
        begin_products();
        multiply(upper, stage, stage + Stages::A_BYTES, round > 0);
        multiply(lower, stage + 64 * LINE, stage + Stages::A_BYTES, round > 0);
        commit_products();
        wait_for_products<1>();  // those of the round before, whose stage is the next to be filled
        __syncthreads();
        if (round + STAGES - 1 < rounds) fetch(round + STAGES - 1);
    }
    wait_for_products<0>();
    const Result to{c, m, n, alpha, beta};
    finish_sums(to, upper, row, column);
    finish_sums(to, lower, row + 64, column);
    store_sums(to, upper, row, column);
    store_sums(to, lower, row + 64, column);
}
