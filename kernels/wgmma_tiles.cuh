// What the rungs with wgmma share: how a stage of A and B lies in shared memory, how it gets there, how it is
// multiplied, which tile comes when, and how sums become C.
//
// The compiler is given BYTES of an element of A and B, their TYPE in PTX, TILE_N, and the blocks of a CLUSTER. A is
// [m, k] and C is [m, n]; B is [k, n], but [n, k] where elements are bytes. All are row-major.
#pragma once

#include "wgmma_multiply.cuh"

#if BYTES == 1
using Element = unsigned char;
#else
using Element = unsigned short;  // only moved, so that halves and bfloats are the same here
#endif

constexpr int WARPGROUP = 128;         // threads
constexpr int LINE = 128;              // bytes of a row of a box: the width of the 128-byte swizzle
constexpr int UNIT = 16;               // bytes that the swizzle keeps together
constexpr int REPEAT = 8 * LINE;       // bytes after which the swizzle repeats
constexpr int TILE_K = LINE / BYTES;   // depth of a stage
constexpr int STEPS = LINE / 32;       // multiplications in it, 32 bytes deep each
constexpr bool B_TRANSPOSED = BYTES == 1;
constexpr int BOX_B_ROWS = B_TRANSPOSED ? TILE_N / CLUSTER : TILE_K;    // of each of B's boxes
constexpr int BOXES_B = B_TRANSPOSED ? CLUSTER : TILE_N / TILE_K;       // of a stage, side by side along N
constexpr int BOX_B_COLUMNS = TILE_N / BOXES_B;                         // columns of the product that a box gives
constexpr int B_BYTES = TILE_N * LINE;

struct Matrix {
    const Element* data;
    int rows, columns;

    // Whether its rows begin at multiples of 16 bytes, as TMA wants.
    __device__ __forceinline__ bool in_units() const
    {
        return (reinterpret_cast<Words>(data) | Words(columns) * BYTES) % UNIT == 0;
    }
};

// Copies a box of `box_rows` lines by ordinary loads and stores, to where TMA would put it; `threads` of them take
// part, each of which loads AT_ONCE units before it stores them.
template <int AT_ONCE>
__device__ __forceinline__ void copy_box(
    char* box, const Matrix& from, int column, int row, int box_rows, int thread, int threads)
{
    const bool whole = from.in_units();
#pragma unroll AT_ONCE
    for (int i = thread; i < box_rows * (LINE / UNIT); i += threads) {
        const int y = i / (LINE / UNIT), unit = i % (LINE / UNIT), first = column + unit * (UNIT / BYTES);
        const long long at = static_cast<long long>(row + y) * from.columns + first;
        union {
            uint4 all;
            Element one[UNIT / BYTES];
        } loaded;
        loaded.all = make_uint4(0, 0, 0, 0);
        if (row + y < from.rows && first < from.columns) {
            if (whole)
                loaded.all = *reinterpret_cast<const uint4*>(from.data + at);
            else
#pragma unroll
                for (int e = 0; e < UNIT / BYTES; e++)
                    if (first + e < from.columns) loaded.one[e] = from.data[at + e];
        }
        *reinterpret_cast<uint4*>(box + y * LINE + (unit ^ y % 8) * UNIT) = loaded.all;
    }
}

// A matrix descriptor of the 128-byte swizzle. `leading` is the distance of B's boxes in bytes. In a cluster the bits
// above an address in shared memory say which block's it is, and do not belong here.
__device__ __forceinline__ Words descriptor(const char* start, int leading)
{
    return shared(start) % (1 << 18) / UNIT | Words(leading / UNIT) << 16 | Words(REPEAT / UNIT) << 32 | 1ull << 62;
}

// sums += A B of a stage, for 64 rows of A; without `add`, sums = A B.
__device__ __forceinline__ void multiply(float (&sums)[TILE_N / 2], const char* a, const char* b, bool add)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const int deeper = B_TRANSPOSED ? step * 32 : step * (32 / BYTES) * LINE;
        Warpgroup<TILE_N>::multiply(
            sums, descriptor(a + step * 32, UNIT), descriptor(b + deeper, BOX_B_ROWS * LINE), add || step > 0);
    }
}

// Where a tile of C begins, in tiles.
struct Place {
    int row, column;
};

// Down the rows of a group of `group` rows of tiles, then to the next column: blocks under way at one time share rows
// of A and columns of B in L2. The last group may be smaller.
__device__ __forceinline__ Place place_of(int tile, int down, int across, int group)
{
    const int first = tile / (group * across) * group, rows = min(group, down - first);
    const int within = tile - first * across;
    return {first + within % rows, within / rows};
}

__host__ __device__ constexpr int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

struct Result {
    float* data;
    int rows, columns;
    float alpha, beta;

    __device__ __forceinline__ bool holds(int row, int column) const
    {
        return row < rows && column < columns;
    }

    __device__ __forceinline__ float* at(int row, int column) const
    {
        return data + static_cast<long long>(row) * columns + column;
    }
};

// The thread's row among the 64 of its warpgroup, and its column in each 8: it holds sums[4 i + j] for two
// neighbouring columns from 8 i on (j = 0, 1) and for those eight rows below (j = 2, 3).
__device__ __forceinline__ int row_of_sums()
{
    return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
}

__device__ __forceinline__ int column_of_sums()
{
    return threadIdx.x % 4 * 2;
}

// Makes alpha A B + beta C of the sums of a warpgroup, whose 64 rows begin at `row`. BLAS: where beta is 0, C is not
// read and may hold anything.
__device__ __forceinline__ void finish_sums(const Result& c, float (&sums)[TILE_N / 2], int row, int column)
{
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i++) sums[i] *= c.alpha;
    if (c.beta == 0) return;
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i++) {
        const int y = row + row_of_sums() + i / 2 % 2 * 8, x = column + column_of_sums() + i / 4 * 8 + i % 2;
        if (c.holds(y, x)) sums[i] += c.beta * *c.at(y, x);
    }
}

// Stores what a warpgroup has, whose 64 rows begin at `row`. Four threads fill a sector of C.
__device__ __forceinline__ void store_sums(const Result& c, const float (&sums)[TILE_N / 2], int row, int column)
{
    const bool pairs = (reinterpret_cast<Words>(c.data) | Words(c.columns) * 4) % 8 == 0;
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i += 2) {
        const int y = row + row_of_sums() + i / 2 % 2 * 8, x = column + column_of_sums() + i / 4 * 8;
        if (!c.holds(y, x)) continue;
        if (pairs) {
            *reinterpret_cast<float2*>(c.at(y, x)) = make_float2(sums[i], sums[i + 1]);
        } else {
            *c.at(y, x) = sums[i];
            if (c.holds(y, x + 1)) *c.at(y, x + 1) = sums[i + 1];
        }
    }
}
