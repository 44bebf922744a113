// wgmma_specialised with one block an SM, each of which computes one tile of C after another. The next tile's stages
// are filled while a tile is stored. TMA stores it, by way of shared memory. In clusters (CLUSTER > 1) blocks have
// tiles one below the other and load each a part of B's tile for all of them.
//
// Rows of C that do not start at multiples of 16 bytes are stored from registers instead.
#include "wgmma_ring.cuh"

constexpr int SLOT_ROWS = 16, SLOT_COLUMNS = LINE / 4;  // what a warp stores at a time, in `SLOTS` places of its own
constexpr int SLOT_BYTES = SLOT_ROWS * LINE;

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

// Writes 16 rows of sums to the warp's slots, 32 columns at a time, swizzled, and has TMA store them.
__device__ __forceinline__ void store_by_tma(
    const TensorMap* map, const float (&sums)[TILE_N / 2], char* slots, int row, int column)
{
    static_assert(TILE_N / SLOT_COLUMNS % SLOTS == 0, "the slots come in turn, from tile to tile");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < TILE_N / SLOT_COLUMNS; part++) {
        char* slot = slots + part % SLOTS * SLOT_BYTES;
        const int x0 = column + part * SLOT_COLUMNS;
        if (lane == 0) wait_for_stores<SLOTS - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < SLOT_COLUMNS / 2; i += 2) {
            const int y = lane / 4 + i / 2 % 2 * 8, x = column_of_sums() + i / 4 * 8;
            const float* two = sums + part * (SLOT_COLUMNS / 2) + i;
            char* to = slot + y * LINE + (x / 4 ^ y % 8) * UNIT + x % 4 * 4;
            *reinterpret_cast<float2*>(to) = make_float2(two[0], two[1]);
        }
        show_shared();
        __syncwarp();
        if (lane == 0) store_box(map, slot, x0, row);
    }
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, 1) wgmma_persistent(
    const Element* a, const Element* b, float* c, float alpha, float beta, int m, int n, int k,
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
    const __grid_constant__ TensorMap map_c)
{
    extern __shared__ __align__(REPEAT) char stages[];
    char* slots = stages + STAGES * Stages::BYTES_OF_STAGE;
    Barriers barriers(slots + CONSUMERS * 4 * SLOTS * SLOT_BYTES);
    const Source from{{a, m, k}, {b, B_TRANSPOSED ? n : k, B_TRANSPOSED ? k : n}, &map_a, &map_b};
    const Result to{c, m, n, alpha, beta};
    const int warpgroup = threadIdx.x / 128, rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    const int down = divide_up(m, TILE_M * CLUSTER), across = divide_up(n, TILE_N);
    if (threadIdx.x == 0) barriers.make(from.fits_tma(), CONSUMERS * 4);
    __syncthreads();
    if (CLUSTER > 1) meet_cluster();
    Turn at;
    if (warpgroup == 0) {
        give_up_registers<PRODUCER_REGISTERS>();
        for (int tile = blockIdx.x / CLUSTER; tile < down * across; tile += gridDim.x / CLUSTER) {
            const Place place = place_of(tile, down, across, GROUP);
            const int row = (place.row * CLUSTER + rank) * TILE_M;
            Stages::produce(stages, barriers, at, from, row, place.column * TILE_N, rank);
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int first = (warpgroup - 1) * 64, warp = threadIdx.x / 32 - 4;
        const bool by_tma = (reinterpret_cast<Words>(c) | Words(n) * 4) % UNIT == 0;
        float sums[TILE_N / 2];
        for (int tile = blockIdx.x / CLUSTER; tile < down * across; tile += gridDim.x / CLUSTER) {
            const Place place = place_of(tile, down, across, GROUP);
            const int row = (place.row * CLUSTER + rank) * TILE_M + first, column = place.column * TILE_N;
            Stages::consume(sums, stages, barriers, at, first, k);
            finish_sums(to, sums, row, column);
            if (by_tma)
                store_by_tma(&map_c, sums, slots + warp * SLOTS * SLOT_BYTES, row + warp % 4 * 16, column);
            else
                store_sums(to, sums, row, column);
        }
        if (threadIdx.x % 32 == 0) wait_for_stores<0>();
    }
    if (CLUSTER > 1) meet_cluster();  // no block ends while another may still arrive at its barriers
}
