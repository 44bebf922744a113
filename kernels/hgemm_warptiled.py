"""warptiled for f16 and bf16 without tensor cores: half the bytes from global memory, sums and products in float32.

Elements become float32 on their way to shared memory. Global memory is accessed 16 bytes, eight elements, at a time,
element by element where rows do not start at multiples of 16 bytes. Products and epilogue are those of `warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, float32, int32, uint32, uint64

    from .intrinsics import floats_of, global_address, load_global_b16_if, load_global_b32x4

    _, _, _, _, products, store = parts(bk)
    chunks_a, chunks_b = bk // 8, BN // 8  # of eight elements, in a row of the tiles
    rows_a, rows_b = THREADS // chunks_a, THREADS // chunks_b  # of A, and of B, that a pass of all threads stages
    passes_a, passes_b = BM // rows_a, ceil_div(bk, rows_b)

    @cuda.jit(device=True, forceinline=True)
    def load(X, at, count, fast):
        """Eight elements of the flat X, packed in pairs; zeros from the count-th on."""
        address = global_address(X) + uint64(at) * uint64(2)
        w, x, y, z = uint32(0), uint32(0), uint32(0), uint32(0)
        if fast:  # rows are whole eights
            if count > 0:
                w, x, y, z = load_global_b32x4(address)
        else:
            w = load_pair(address, count)
            x = load_pair(address + uint64(4), int32(count - 2))
            y = load_pair(address + uint64(8), int32(count - 4))
            z = load_pair(address + uint64(12), int32(count - 6))
        return w, x, y, z

    @cuda.jit(device=True, forceinline=True)
    def load_pair(address, count):
        first = load_global_b16_if(address, uint32(count > 0))
        return uint32(first | load_global_b16_if(address + uint64(2), uint32(count > 1)) << uint32(16))

    @cuda.jit(fastmath=True)
    def hgemm_warptiled(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((bk, BM), float32, 16)  # tile_a[k, row]
        tile_b = cuda.shared.array((bk, BN), float32, 16)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        words_a, words_b = cuda.local.array((passes_a, 4), uint32), cuda.local.array((passes_b, 4), uint32)
        at_a, at_b = cuda.local.array(passes_a, uint32), cuda.local.array(passes_b, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        starts = (global_address(A) | global_address(B) | global_address(C)) & uint64(15)  # in bytes
        fast = uint64((depth | n) & uint32(7)) | starts == uint64(0)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        # The elements that this thread stages; rows of A beyond the last repeat it.
        row_a, k_a = uint32(thread // chunks_a), uint32(thread % chunks_a * 8)
        k_b, col_b = uint32(thread // chunks_b), uint32(thread % chunks_b * 8)
        columns = int32(n - uint32(col_0 + col_b))
        for i in range(passes_a):
            at_a[i] = min(uint32(row_0 + row_a + i * rows_a), m - 1) * depth + k_a
        for i in range(passes_b):
            at_b[i] = (k_b + i * rows_b) * n + (col_0 + col_b)
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] = float32(0)
        for k0 in range(0, A.shape[1], bk):
            left = int32(depth - k0)
            for i in range(passes_a):
                at, count = at_a[i], int32(left - k_a)
                words_a[i, 0], words_a[i, 1], words_a[i, 2], words_a[i, 3] = load(A, at, count, fast)
                at_a[i] += uint32(bk)
            for i in range(passes_b):
                at, count = at_b[i], columns if int32(k_b + i * rows_b) < left else int32(0)
                words_b[i, 0], words_b[i, 1], words_b[i, 2], words_b[i, 3] = load(B, at, count, fast)
                at_b[i] += uint32(bk * n)
            for i in range(passes_a):
                for e in range(4):
                    low, high = floats_of(A, words_a[i, e])
                    tile_a[k_a + 2 * e, row_a + i * rows_a] = low
                    tile_a[k_a + 2 * e + 1, row_a + i * rows_a] = high
            for i in range(passes_b):
                for e in range(4):
                    low, high = floats_of(B, words_b[i, e])
                    tile_b[k_b + i * rows_b, col_b + 2 * e] = low
                    tile_b[k_b + i * rows_b, col_b + 2 * e + 1] = high
            cuda.syncthreads()
            products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        store(C, acc, uint32(row_0 + y), uint32(col_0 + x), fast, alpha, beta)

    return hgemm_warptiled


INFO = KernelInfo(
    name="hgemm_warptiled",
    title="warptiled for f16 and bf16, float32 sums, no tensor cores",
    teaches=(
        "Narrow elements halve what travels from DRAM and through L2, and the registers that hold it on its way; but "
        "where arithmetic is the limit that wins nothing. Each product is still an FFMA, at the rate of float32: it "
        "takes tensor cores to make narrow elements fast. One conversion as an element is staged serves all the "
        "products that it takes part in: 64 of a thread for each that it converts."
    ),
    look_for="sectors of LDG: half of `warptiled`; conversions (HADD2.F32, shifts for bf16); the time: the same",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 16, "depth of the shared tiles"),),
    dtypes=("f16", "bf16"),
)
