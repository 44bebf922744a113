// Kernels whose blocks wait for each other or share out work.

// A work counter: each block takes the next tile when it has done the one before. Tile t takes length[t] steps.
extern "C" __global__ void tiles(const int* length, int* owner, float* result, int* next, int count) {
    __shared__ int tile;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) tile = atomicAdd(next, 1);
        __syncthreads();
        if (tile >= count) return;
        float value = threadIdx.x;
        for (int i = 0; i < length[tile]; ++i) value = value * 0.5f + i;
        result[tile * blockDim.x + threadIdx.x] = value;
        if (threadIdx.x == 0) owner[tile] = blockIdx.x;
    }
}

// Block 0 waits for what the last block stores.
extern "C" __global__ void consume(volatile int* flag, volatile float* data, float* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            while (*flag == 0) {  // [consume:wait]
            }
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x] + 1.0f;
    } else if (blockIdx.x == gridDim.x - 1) {
        data[threadIdx.x] = threadIdx.x;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    }
}

// A barrier of the whole grid by hand, twice: every block adds what its right neighbour stored before.
extern "C" __global__ void rotate(const int* in, int* first, int* second, unsigned* arrived) {
    int block = blockIdx.x, right = (block + 1) % gridDim.x;
    const int* from = in;
    for (int round = 1; round <= 2; ++round) {
        int* to = round == 1 ? first : second;
        int at = block * blockDim.x + threadIdx.x, other = right * blockDim.x + threadIdx.x;
        to[at] = __ldcg(from + at) + __ldcg(from + other);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned*)arrived < round * gridDim.x) {
            }
        }
        __syncthreads();
        from = to;
    }
}

// A lock that a block takes with compare-and-swap, around a sum that is not atomic.
extern "C" __global__ void locked(int* lock, volatile int* sum, int rounds) {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < rounds; ++i) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *sum = *sum + blockIdx.x + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// Each of two blocks takes the lock that the other one wants next.
extern "C" __global__ void crossed(int* locks, volatile int* have) {
    int mine = blockIdx.x, other = 1 - mine;
    if (threadIdx.x != 0) return;
    while (atomicCAS(locks + mine, 0, 1) != 0) {
    }
    have[mine] = 1;
    while (have[other] == 0) {
    }
    while (atomicCAS(locks + other, 0, 1) != 0) {  // [crossed:wait]
    }
    have[mine] = 2;
}

// Stream-K: blocks share out all steps of all tiles evenly. A block that ends in the middle of a tile leaves its part,
// and the block that begins the tile waits for the parts behind its own and adds them (the fix-up).
extern "C" __global__ void stream_k(const float* A, const float* B, float* C, float* parts, volatile int* ready,
                                    int n, int tiles_n, int steps, int total) {
    const int T = 16;
    __shared__ float a[T][T], b[T][T];
    int share = (total + gridDim.x - 1) / gridDim.x;
    int step = blockIdx.x * share, last = min(total, step + share), x = threadIdx.x, y = threadIdx.y;
    while (step < last) {
        int tile = step / steps, k0 = step % steps, end = min(steps, k0 + last - step);
        int row = tile / tiles_n * T + y, column = tile % tiles_n * T + x;
        float sum = 0.0f;
        for (int k = k0; k < end; ++k) {
            a[y][x] = A[row * n + k * T + x];
            b[y][x] = B[(k * T + y) * n + column];
            __syncthreads();
            for (int i = 0; i < T; ++i) sum += a[y][i] * b[i][x];
            __syncthreads();
        }
        if (k0 > 0) {
            parts[blockIdx.x * T * T + y * T + x] = sum;
            __threadfence();
            __syncthreads();
            if (x == 0 && y == 0) ready[blockIdx.x] = 1;
        } else {
            for (int other = blockIdx.x + 1, done = end; done < steps; ++other, done += share) {
                if (x == 0 && y == 0) {
                    while (ready[other] == 0) {
                    }
                }
                __syncthreads();
                sum += __ldcg(parts + other * T * T + y * T + x);
            }
            C[row * n + column] = sum;
        }
        step += end - k0;
    }
}

// The last block to arrive adds what all have stored. No block waits, so the blocks need not run interleaved.
extern "C" __global__ void last_adds(const float* in, float* parts, int* arrived, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
        *out = sum;
    }
}

// Thread 0 reads what its neighbour stores to shared memory, with no barrier between; then the blocks wait for each other.
extern "C" __global__ void racing(unsigned* arrived, int* out) {
    __shared__ int values[64];
    values[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) {
        out[blockIdx.x] = values[63];  // [racing:read]
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < gridDim.x) {
        }
    }
}

// Each warp counts in memory until another thread stores a 7, or until it has counted to `most`. Nobody stores it.
extern "C" __global__ void counts_meanwhile(int* a, int most) {
    volatile int* counted = a + 1 + threadIdx.x;
    while (*(volatile int*)a != 7) {  // [counted]
        *counted += 1;
        if (*counted == most) break;
    }
}

// Counts in a register meanwhile, up to `period` and again from 0.
extern "C" __global__ void counts_round(int* a, int period) {
    int n = 0;
    while (*(volatile int*)a != 7) n = n + 1 == period ? 0 : n + 1;
    a[1] = n;
}
