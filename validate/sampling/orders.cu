// GEMM kernels whose blocks find their work in many ways: C = A * B in fp32, row-major. gemmsim-validate sampling
// executes them in full and from a sample, and compares.
//
// A kernel is a scheme (one block a tile, split-K, stream-K, persistent, ...) with a tile (Tile32, Tile128) and an
// order, which says to which tile of C a number belongs. All take (A, B, C, numbers, M, N, K, lda, ldb, ldc), any sizes
// and any leading dimensions. `numbers` are integers in global memory: a table of tiles, or a counter.

struct Problem {
    const float *A, *B;
    float* C;
    int M, N, K, lda, ldb, ldc;
};

// ---- Tiles: what a block computes of C, from shared memory, with 256 threads.

// 32 x 32 elements of C, four a thread; K in steps of 32.
struct Tile32 {
    static const int SIZE = 32, STEP = 32;
    float acc[4];

    __device__ void clear() {
        for (int i = 0; i < 4; i++) acc[i] = 0.f;
    }

    // Adds the products of one step of K, those with k < k_end.
    __device__ void step(const Problem& p, int row_0, int col_0, int k_0, int k_end) {
        __shared__ float a[SIZE][STEP], b[STEP][SIZE];
        const int x = threadIdx.x % 32, y = threadIdx.x / 32;
        for (int i = 0; i < 4; i++) {
            const int row = row_0 + y + 8 * i, k = k_0 + y + 8 * i;
            a[y + 8 * i][x] = row < p.M && k_0 + x < k_end ? p.A[row * p.lda + k_0 + x] : 0.f;
            b[y + 8 * i][x] = k < k_end && col_0 + x < p.N ? p.B[k * p.ldb + col_0 + x] : 0.f;
        }
        __syncthreads();
        for (int k = 0; k < STEP; k++)
            for (int i = 0; i < 4; i++) acc[i] += a[y + 8 * i][k] * b[k][x];
        __syncthreads();
    }

    template <bool ADD>
    __device__ void store(const Problem& p, int row_0, int col_0) {
        const int x = threadIdx.x % 32, y = threadIdx.x / 32, col = col_0 + x;
        for (int i = 0; i < 4; i++) {
            const int row = row_0 + y + 8 * i;
            if (row < p.M && col < p.N) {
                if (ADD)
                    atomicAdd(&p.C[row * p.ldc + col], acc[i]);
                else
                    p.C[row * p.ldc + col] = acc[i];
            }
        }
    }
};

// 128 x 128 elements of C, 8 x 8 a thread in registers; K in steps of 8.
struct Tile128 {
    static const int SIZE = 128, STEP = 8;
    float acc[8][8];

    __device__ void clear() {
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) acc[i][j] = 0.f;
    }

    __device__ void step(const Problem& p, int row_0, int col_0, int k_0, int k_end) {
        __shared__ __align__(16) float a[STEP][SIZE + 4], b[STEP][SIZE];
        const int thread = threadIdx.x, x = thread % 16, y = thread / 16;
        for (int i = 0; i < 4; i++) {
            const int row = row_0 + thread / 8 + 32 * i, k = k_0 + thread % 8;
            a[thread % 8][thread / 8 + 32 * i] = row < p.M && k < k_end ? p.A[row * p.lda + k] : 0.f;
        }
        for (int i = 0; i < 4; i++) {
            const int k = k_0 + thread / 128 + 2 * i, col = col_0 + thread % 128;
            b[thread / 128 + 2 * i][thread % 128] = k < k_end && col < p.N ? p.B[k * p.ldb + col] : 0.f;
        }
        __syncthreads();
        for (int k = 0; k < STEP; k++)
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) acc[i][j] += a[k][8 * y + i] * b[k][x + 16 * j];
        __syncthreads();
    }

    template <bool ADD>
    __device__ void store(const Problem& p, int row_0, int col_0) {
        const int x = threadIdx.x % 16, y = threadIdx.x / 16;
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) {
                const int row = row_0 + 8 * y + i, col = col_0 + x + 16 * j;
                if (row < p.M && col < p.N) {
                    if (ADD)
                        atomicAdd(&p.C[row * p.ldc + col], acc[i][j]);
                    else
                        p.C[row * p.ldc + col] = acc[i][j];
                }
            }
    }
};

// ---- Orders: which tile belongs to `number`. They return false where none does.

struct Place {
    int row, col;  // of a tile, in tiles
};

struct RowMajor2D {  // the grid itself has two dimensions
    __device__ static bool at(int, int, int, const int*, Place& to) {
        to = {(int)blockIdx.y, (int)blockIdx.x};
        return true;
    }
};

struct RowMajor {
    __device__ static bool at(int number, int, int across, const int*, Place& to) {
        to = {number / across, number % across};
        return true;
    }
};

struct ColumnMajor {
    __device__ static bool at(int number, int down, int, const int*, Place& to) {
        to = {number % down, number / down};
        return true;
    }
};

// Down the rows of a group of eight, then to the next column, as Triton's tutorial goes.
struct Grouped {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        const int first = number / (8 * across) * 8, rows = min(down - first, 8), within = number % (8 * across);
        to = {first + within % rows, within / rows};
        return true;
    }
};

struct Snake {
    __device__ static bool at(int number, int, int across, const int*, Place& to) {
        const int row = number / across, col = number % across;
        to = {row, row % 2 ? across - 1 - col : col};
        return true;
    }
};

__device__ int even_bits(unsigned x) {
    x &= 0x55555555u;
    x = (x | x >> 1) & 0x33333333u;
    x = (x | x >> 2) & 0x0f0f0f0fu;
    x = (x | x >> 4) & 0x00ff00ffu;
    return (x | x >> 8) & 0xffffu;
}

// Z order in a square whose side is a power of two; numbers outside the matrix have no tile.
struct Morton {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        to = {even_bits(number >> 1), even_bits(number)};
        return to.row < down && to.col < across;
    }
};

struct Hilbert {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        int x = 0, y = 0;
        for (int side = 1, rest = number; side < max(down, across); side *= 2, rest /= 4) {
            const int right = 1 & rest / 2, up = 1 & (rest ^ right);
            if (up == 0) {
                if (right) {
                    x = side - 1 - x;
                    y = side - 1 - y;
                }
                const int swapped = x;
                x = y;
                y = swapped;
            }
            x += side * right;
            y += side * up;
        }
        to = {y, x};
        return y < down && x < across;
    }
};

// The number times a prime, modulo the number of tiles; every tile comes once as long as the prime does not divide it.
struct Hashed {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        const unsigned tile = (number * 7919u + 12345u) % unsigned(down * across);
        to = {int(tile / across), int(tile % across)};
        return true;
    }
};

struct Diagonal {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        const int row = number % down;
        to = {row, (row + number / down) % across};
        return true;
    }
};

// Within groups of eight columns each row takes the columns in an order of its own, by an exclusive or.
struct Swizzled {
    __device__ static bool at(int number, int, int across, const int*, Place& to) {
        const int wide = (across + 7) / 8 * 8, row = number / wide;
        to = {row, number % wide ^ row % 8};
        return to.col < across;
    }
};

struct Table {
    __device__ static bool at(int number, int, int across, const int* numbers, Place& to) {
        const int tile = numbers[number];
        to = {tile / across, tile % across};
        return true;
    }
};

// Every third block has nothing to do.
struct EveryThirdIdle {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        const int tile = number / 3 * 2 + number % 3;
        to = {tile / across, tile % across};
        return number % 3 < 2 && tile < down * across;
    }
};

// The grid is larger than the number of tiles.
struct Oversized {
    __device__ static bool at(int number, int down, int across, const int*, Place& to) {
        to = {number / across, number % across};
        return number < down * across;
    }
};

// Only the tiles on and below the diagonal, of a grid that has them all.
struct Lower {
    __device__ static bool at(int, int, int, const int*, Place& to) {
        to = {(int)blockIdx.y, (int)blockIdx.x};
        return to.col <= to.row;
    }
};

// Only the tiles on and below the diagonal, row by row in a grid of just so many blocks.
struct LowerPacked {
    __device__ static bool at(int number, int, int, const int*, Place& to) {
        int row = 0;
        while ((row + 1) * (row + 2) / 2 <= number) row++;
        to = {row, number - row * (row + 1) / 2};
        return true;
    }
};

// ---- Schemes.

#define ARGUMENTS \
    const float *A, const float *B, float *C, int *numbers, int M, int N, int K, int lda, int ldb, int ldc
#define PROBLEM {A, B, C, M, N, K, lda, ldb, ldc}

template <class Tile>
__device__ int tiles_in(int length) {
    return (length + Tile::SIZE - 1) / Tile::SIZE;
}

template <class Tile>
__device__ int steps_in(int length) {
    return (length + Tile::STEP - 1) / Tile::STEP;
}

// Computes the steps [from, to) of one tile, and stores it or adds it to C.
template <class Tile, bool ADD>
__device__ void part_of_tile(const Problem& p, Place place, int from, int to, int k_end) {
    Tile tile;
    tile.clear();
    const int row_0 = place.row * Tile::SIZE, col_0 = place.col * Tile::SIZE;
    for (int step = from; step < to; step++) tile.step(p, row_0, col_0, step * Tile::STEP, k_end);
    tile.template store<ADD>(p, row_0, col_0);
}

template <class Tile, class Order>
__global__ void __launch_bounds__(256) by_tile(ARGUMENTS) {
    const Problem p = PROBLEM;
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place))
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(K), K);
}

// gridDim.z matrices, one behind the other.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) batched(ARGUMENTS) {
    const int z = blockIdx.z;
    const Problem p = {A + z * M * lda, B + z * K * ldb, C + z * M * ldc, M, N, K, lda, ldb, ldc};
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place))
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(K), K);
}

// A is taken as lower triangular: K ends with the last row of the block.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) triangular(ARGUMENTS) {
    const Problem p = PROBLEM;
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place)) {
        const int k_end = min(K, (place.row + 1) * Tile::SIZE);
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(k_end), k_end);
    }
}

// Each row of tiles has a K of its own, which is read from memory.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) ragged_k(ARGUMENTS) {
    const Problem p = PROBLEM;
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place)) {
        const int k_end = min(K, numbers[place.row]);
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(k_end), k_end);
    }
}

// One block of the grid has half of K.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) one_short(ARGUMENTS) {
    const Problem p = PROBLEM;
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place)) {
        const int k_end = blockIdx.x == gridDim.x / 7 * 5 ? K / 64 * 32 : K;
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(k_end), k_end);
    }
}

// gridDim.z shares of K. Each goes into a matrix of its own, C being [gridDim.z, M, ldc], or is added to C.
template <class Tile, class Order, bool ADD>
__global__ void __launch_bounds__(256) split_k(ARGUMENTS) {
    Problem p = PROBLEM;
    if (!ADD) p.C += blockIdx.z * M * ldc;
    const int steps = steps_in<Tile>(K), from = steps * blockIdx.z / gridDim.z, to = steps * (blockIdx.z + 1) / gridDim.z;
    Place place;
    if (Order::at(blockIdx.x, tiles_in<Tile>(M), tiles_in<Tile>(N), numbers, place))
        part_of_tile<Tile, ADD>(p, place, from, to, K);
}

// Each block gets an equal share of all steps of all tiles, and adds what it has of a tile to C.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) stream_k(ARGUMENTS) {
    const Problem p = PROBLEM;
    const int down = tiles_in<Tile>(M), across = tiles_in<Tile>(N), steps = steps_in<Tile>(K);
    const long long all = (long long)down * across * steps;
    long long at = all * blockIdx.x / gridDim.x;
    const long long end = all * (blockIdx.x + 1) / gridDim.x;
    while (at < end) {
        const int tile = int(at / steps), from = int(at % steps), to = int(min((long long)steps, from + end - at));
        Place place;
        Order::at(tile, down, across, numbers, place);
        part_of_tile<Tile, true>(p, place, from, to, K);
        at += to - from;
    }
}

// Each block takes every gridDim.x-th tile.
template <class Tile, class Order>
__global__ void __launch_bounds__(256) persistent(ARGUMENTS) {
    const Problem p = PROBLEM;
    const int down = tiles_in<Tile>(M), across = tiles_in<Tile>(N);
    for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
        Place place;
        Order::at(tile, down, across, numbers, place);
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(K), K);
    }
}

// Each block takes the next tile from a counter, which is numbers[0].
template <class Tile, class Order>
__global__ void __launch_bounds__(256) work_counter(ARGUMENTS) {
    const Problem p = PROBLEM;
    const int down = tiles_in<Tile>(M), across = tiles_in<Tile>(N);
    __shared__ int next;
    while (true) {
        if (threadIdx.x == 0) next = atomicAdd(numbers, 1);
        __syncthreads();
        const int tile = next;
        __syncthreads();
        if (tile >= down * across) return;
        Place place;
        Order::at(tile, down, across, numbers, place);
        part_of_tile<Tile, false>(p, place, 0, steps_in<Tile>(K), K);
    }
}

// One thread an element, threads numbered along the rows of C through all blocks.
__global__ void __launch_bounds__(256) per_thread(ARGUMENTS) {
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= M * N) return;
    const int row = element / N, col = element % N;
    float sum = 0.f;
    for (int k = 0; k < K; k++) sum += A[row * lda + k] * B[k * ldb + col];
    C[row * ldc + col] = sum;
}
