"""Kernels of numba with one defect each, and right ones beside them. HERE marks lines that a finding may name."""

from numba import cuda, float32


@cuda.jit
def missing_barrier(a, c, n):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]  # HERE
    c[t] = tile[63 - t]  # HERE


@cuda.jit
def stale_tile(a, c, n):
    tile = cuda.shared.array((8, 8), float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for k in range(n // 64):
        tile[t // 8, t % 8] = a[k * 64 + t]  # HERE
        cuda.syncthreads()
        for i in range(8):
            total += tile[i, t % 8] * tile[t // 8, i]  # HERE
    c[t] = total


@cuda.jit
def one_beyond(a, c, n):
    i = cuda.grid(1)
    if i <= n:
        c[i] = a[0]  # HERE


@cuda.jit
def barrier_in_a_branch(a, c, n):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    if t < 32:
        cuda.syncthreads()  # HERE
    c[t] = tile[t]


@cuda.jit
def split_without_atomics(a, c, n):
    i = cuda.grid(1)
    c[cuda.threadIdx.x] += a[i]  # HERE


@cuda.jit
def halo_not_loaded(a, c, n):
    tile = cuda.shared.array(66, float32)
    t = cuda.threadIdx.x
    tile[t + 1] = a[t]
    cuda.syncthreads()
    c[t] = tile[t] + tile[t + 1] + tile[t + 2]  # HERE


@cuda.jit
def into_the_next_array(a, c, n):
    x = cuda.shared.array(64, float32)
    y = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    x[t + n // 1024] = a[t]  # HERE
    if t == 0:
        x[0] = 1
    cuda.syncthreads()
    y[t ^ 1] = a[t + 64]
    cuda.syncthreads()
    c[t] = x[63 - t] + y[63 - t]


@cuda.jit
def right_tiles(a, c, n):
    tile = cuda.shared.array((8, 8), float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for k in range(n // 64):
        tile[t // 8, t % 8] = a[k * 64 + t]
        cuda.syncthreads()
        for i in range(8):
            total += tile[i, t % 8] * tile[t // 8, i]
        cuda.syncthreads()
    c[t] = total


@cuda.jit
def right_warps(a, c, n):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    cuda.syncwarp()
    mine = tile[t ^ 31] + cuda.shfl_xor_sync(0xFFFFFFFF, a[t], 1)
    cuda.atomic.add(c, 0, mine)
