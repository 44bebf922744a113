"""A program in numba.cuda, as a user would write it: no word of gemmsim is in it."""

import math
import sys
import warnings

import numpy as np
from numba import config, cuda, float32, vectorize

warnings.simplefilter("ignore")
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
TILE = 16


@cuda.jit("void(float32[:,:], float32[:,:], float32[:,:])")
def tiled(A, B, C):
    tile_a, tile_b = cuda.shared.array((TILE, TILE), float32), cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for i in range(A.shape[1] // TILE):
        tile_a[ty, tx], tile_b[ty, tx] = A[y, tx + i * TILE], B[ty + i * TILE, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    C[y, x] = total


@cuda.jit
def reversed_in_block(out, values):
    room = cuda.shared.array(0, float32)
    room[cuda.threadIdx.x] = values[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = room[cuda.blockDim.x - 1 - cuda.threadIdx.x]


@cuda.jit
def increment(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


@cuda.jit
def grid_sums(values, sums):
    """Each block adds up its part; after all have, the first thread adds up the parts."""
    cuda.atomic.add(sums, 1 + cuda.blockIdx.x, values[cuda.grid(1)])
    cuda.cg.this_grid().sync()
    if cuda.grid(1) == 0:
        for block in range(cuda.gridDim.x):
            sums[0] += sums[1 + block]


@vectorize(["float32(float32, float32)"], target="cuda")
def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


def main() -> None:
    random = np.random.default_rng(0)
    A, B = random.random((64, 64), np.float32), random.random((64, 64), np.float32)
    C = np.zeros((64, 64), np.float32)
    tiled[(4, 4), (TILE, TILE)](A, B, C)
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)

    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    device_a, device_b = cuda.to_device(A, stream), cuda.to_device(B, stream)
    device_c = cuda.device_array((64, 64), np.float32)
    for _ in range(3):
        begin.record(stream)
        tiled[(4, 4), (TILE, TILE), stream](device_a, device_b, device_c)
        end.record(stream)
    end.synchronize()
    stream.synchronize()
    np.testing.assert_allclose(device_c.copy_to_host(), A @ B, rtol=1e-5)
    sys.stdout.write(f"elapsed {cuda.event_elapsed_time(begin, end) * 1e3:.4f} us\n")

    values, out = random.random(256, np.float32), np.zeros(256, np.float32)
    reversed_in_block[2, 128, 0, 128 * 4](out, values)
    np.testing.assert_array_equal(out.reshape(2, 128), values.reshape(2, 128)[:, ::-1])

    pinned = cuda.pinned_array(100, np.int32)
    pinned[:] = np.arange(100)
    held = cuda.to_device(pinned)
    increment.forall(100)(held)
    increment[1, 50](held[25:75])
    expected = np.arange(1, 101)
    expected[25:75] += 1
    np.testing.assert_array_equal(held.copy_to_host(), expected)
    managed = cuda.managed_array(10, np.int32)
    managed[:] = 5
    increment[1, 32](managed)
    cuda.synchronize()
    assert (managed == 6).all()
    mapped = cuda.mapped_array(10, np.int32)
    mapped[:] = 7
    increment[1, 32](mapped)
    assert (mapped == 8).all()

    sums = np.zeros(5, np.float32)
    grid_sums[4, 64](values, sums)
    np.testing.assert_allclose(sums[0], values.sum(), rtol=1e-5)
    np.testing.assert_allclose(hypotenuse(values, values), np.sqrt(2 * values * values), rtol=1e-6)

    total = cuda.reduce(lambda a, b: a + b)  # its __syncwarp() names threads that do not come
    assert total(np.arange(300)) == 300 * 299 // 2

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    sys.stdout.write(f"{name}: {device.MULTIPROCESSOR_COUNT} SMs, {tuple(device.compute_capability)}, {sys.argv[1:]}\n")


if __name__ == "__main__":
    main()
