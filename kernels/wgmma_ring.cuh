// A ring of stages in shared memory, each with a tile of A and one of B, and how a stage is filled.
#pragma once

#include "wgmma_tiles.cuh"

struct Source {
    Matrix a, b;
    const TensorMap *map_a, *map_b;

    __device__ __forceinline__ bool fits_tma() const
    {
        return a.in_units() && b.in_units();
    }
};

// Whose turn it is: a stage, and the parity of its barriers' phase.
struct Turn {
    int stage = 0, parity = 0;

    __device__ __forceinline__ void advance()
    {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// Two barriers a stage: `full` when the tiles have come, `empty` when every warp that multiplies is done with them.
struct Barriers {
    Words *full, *empty;

    __device__ __forceinline__ Barriers(void* at) : full(static_cast<Words*>(at)), empty(full + STAGES) {}

    __device__ __forceinline__ void make(bool by_tma, int consumer_warps)
    {
        for (int stage = 0; stage < STAGES; stage++) {
            make_barrier(full + stage, by_tma ? 1 : WARPGROUP);
            make_barrier(empty + stage, consumer_warps * CLUSTER);
        }
        show_barriers();
    }

    // A warp is done with a stage, and says so in all blocks of the cluster, as each of them fills a part of it.
    __device__ __forceinline__ void release(int stage) const
    {
        const int lane = threadIdx.x % 32;
        if (CLUSTER > 1 && lane < CLUSTER) arrive_in(empty + stage, lane);
        if (CLUSTER == 1 && lane == 0) arrive(empty + stage);
    }
};

template <int TILE_M>
struct Ring {
    static constexpr int A_BYTES = TILE_M * LINE, BYTES_OF_STAGE = A_BYTES + B_BYTES;

    // One thread has TMA fill the stage. In a cluster all blocks have the same columns of B: each loads a part for
    // all.
    static __device__ __forceinline__ void load(
        char* stage, const Source& from, int row, int column, int k0, Words* full, int rank = 0)
    {
        static_assert(BOXES_B % CLUSTER == 0, "each block of a cluster loads as many boxes");
        arrive_and_expect(full, BYTES_OF_STAGE);
        load_box(stage, from.map_a, k0, row, full);
#pragma unroll
        for (int i = 0; i < BOXES_B / CLUSTER; i++) {
            const int box = rank * (BOXES_B / CLUSTER) + i, first = column + box * BOX_B_COLUMNS;
            char* to = stage + A_BYTES + box * BOX_B_ROWS * LINE;
            const int x = B_TRANSPOSED ? k0 : first, y = B_TRANSPOSED ? first : k0;
            if (CLUSTER == 1)
                load_box(to, from.map_b, x, y, full);
            else
                load_box_for(to, from.map_b, x, y, full, (1 << CLUSTER) - 1);
        }
    }

    // The same by ordinary loads and stores of `threads` threads, all of which arrive. Blocks of a cluster share
    // nothing.
    static __device__ __forceinline__ void copy(
        char* stage, const Source& from, int row, int column, int k0, Words* full, int thread, int threads)
    {
        copy_box<1>(stage, from.a, k0, row, TILE_M, thread, threads);
        for (int box = 0; box < BOXES_B; box++) {
            const int first = column + box * BOX_B_COLUMNS;
            char* to = stage + A_BYTES + box * BOX_B_ROWS * LINE;
            const int x = B_TRANSPOSED ? k0 : first, y = B_TRANSPOSED ? first : k0;
            copy_box<1>(to, from.b, x, y, BOX_B_ROWS, thread, threads);
        }
        show_shared();
        arrive(full);
    }

    // One warpgroup fills the stages for a tile; `at` goes on from tile to tile.
    static __device__ __forceinline__ void produce(
        char* stages, const Barriers& barriers, Turn& at, const Source& from, int row, int column, int rank = 0)
    {
        const bool by_tma = from.fits_tma();
        const int thread = threadIdx.x % WARPGROUP;
        if (by_tma && thread > 0) return;
        for (int k0 = 0; k0 < from.a.columns; k0 += TILE_K, at.advance()) {
            char* stage = stages + at.stage * BYTES_OF_STAGE;
            wait(barriers.empty + at.stage, at.parity ^ 1);
            if (by_tma)
                load(stage, from, row, column, k0, barriers.full + at.stage, rank);
            else
                copy(stage, from, row, column, k0, barriers.full + at.stage, thread, WARPGROUP);
        }
    }

    // A warpgroup multiplies its 64 rows of A, the first of which is `first`, with B, over all of K.
    static __device__ __forceinline__ void consume(
        float (&sums)[TILE_N / 2], const char* stages, const Barriers& barriers, Turn& at, int first, int k)
    {
        int before = 0;
        for (int k0 = 0; k0 < k; k0 += TILE_K, at.advance()) {
            const char* stage = stages + at.stage * BYTES_OF_STAGE;
            wait(barriers.full + at.stage, at.parity);
            begin_products();
            multiply(sums, stage + first * LINE, stage + A_BYTES, k0 > 0);
            commit_products();
            wait_for_products<1>();  // so that the tensor cores find the next ones when they are done with these
            if (k0 > 0) barriers.release(before);
            before = at.stage;
        }
        wait_for_products<0>();
        barriers.release(before);
    }
};

// The roles of a block's warpgroups: one fills stages, the others multiply 64 rows each.
constexpr int CONSUMERS = 2, TILE_M = CONSUMERS * 64, THREADS = WARPGROUP * (1 + CONSUMERS);
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;  // of a thread, which has 168 before they change hands
using Stages = Ring<TILE_M>;
