// wgmma_tma with a warpgroup that does nothing but fill the stages, and two that multiply, each half of the tile's
// rows. They meet only at the barriers of the stages. The first needs few registers and leaves the others its own.
#include "wgmma_ring.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) wgmma_specialised(
    const Element* a, const Element* b, float* c, float alpha, float beta, int m, int n, int k,
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b)
{
    extern __shared__ __align__(REPEAT) char stages[];
    Barriers barriers(stages + STAGES * Stages::BYTES_OF_STAGE);
    const Source from{{a, m, k}, {b, k, n}, &map_a, &map_b};
    const int row = blockIdx.y * TILE_M, column = blockIdx.x * TILE_N, warpgroup = threadIdx.x / 128;
    if (threadIdx.x == 0) barriers.make(from.fits_tma(), CONSUMERS * 4);
    __syncthreads();
    Turn at;
    if (warpgroup == 0) {
        give_up_registers<PRODUCER_REGISTERS>();
        Stages::produce(stages, barriers, at, from, row, column);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int first = (warpgroup - 1) * 64;
        float sums[TILE_N / 2];
        Stages::consume(sums, stages, barriers, at, first, k);
        const Result to{c, m, n, alpha, beta};
        finish_sums(to, sums, row + first, column);
        store_sums(to, sums, row + first, column);
    }
}
