"""The first tensor-core kernel: a warp computes a 16 x 16 tile of C with mma.sync, its operands straight from global
memory."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

TILE = 16  # of C, a warp
WARPS = 4  # a block, side by side along a row of C


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, TILE * WARPS), ceil_div(m, TILE), 1), block=(32, WARPS, 1))


def build() -> Any:
    from numba import cuda, float32, uint32

    from .intrinsics import global_address, load_global_b16_if, mma_m16n8k16

    @cuda.jit(device=True)
    def element(base, row, col, rows, cols):  # as 16 bits; zero outside the matrix
        return load_global_b16_if(base + (row * cols + col) * 2, row < rows and col < cols)

    @cuda.jit(device=True)
    def along_row(base, row, col, rows, cols):
        return element(base, row, col, rows, cols) | element(base, row, col + 1, rows, cols) << uint32(16)

    @cuda.jit(device=True)
    def down_column(base, row, col, rows, cols):
        return element(base, row, col, rows, cols) | element(base, row + 1, col, rows, cols) << uint32(16)

    @cuda.jit(device=True)
    def store(C, row, col, value, alpha, beta):
        if row < C.shape[0] and col < C.shape[1]:
            value *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                value += beta * C[row, col]
            C[row, col] = value

    @cuda.jit(fastmath=True)
    def tensorcore_naive(A, B, C, alpha, beta):
        m, n = C.shape
        depth = A.shape[1]
        a, b = global_address(A), global_address(B)
        g, t = cuda.threadIdx.x // 4, cuda.threadIdx.x % 4
        row = cuda.blockIdx.y * TILE + g
        col = (cuda.blockIdx.x * WARPS + cuda.threadIdx.y) * TILE
        zero = float32(0)
        left = (zero, zero, zero, zero)
        right = (zero, zero, zero, zero)
        for k0 in range(0, depth, 16):
            k = k0 + 2 * t
            fragment = (
                along_row(a, row, k, m, depth),
                along_row(a, row + 8, k, m, depth),
                along_row(a, row, k + 8, m, depth),
                along_row(a, row + 8, k + 8, m, depth),
            )
            first = down_column(b, k, col + g, depth, n), down_column(b, k + 8, col + g, depth, n)
            second = down_column(b, k, col + 8 + g, depth, n), down_column(b, k + 8, col + 8 + g, depth, n)
            left = mma_m16n8k16(A, fragment, first, left)
            right = mma_m16n8k16(A, fragment, second, right)
        for half in range(2):
            values = left if half == 0 else right
            to = col + 8 * half + 2 * t
            store(C, row, to, values[0], alpha, beta)
            store(C, row, to + 1, values[1], alpha, beta)
            store(C, row + 8, to, values[2], alpha, beta)
            store(C, row + 8, to + 1, values[3], alpha, beta)

    return tensorcore_naive


INFO = KernelInfo(
    name="tensorcore_naive",
    title="tensor cores, a 16 x 16 tile a warp, straight from global memory",
    teaches=(
        "One mma.sync does the work of 64 FFMA of a warp, 16 x 8 x 16 products, from fragments that are spread over "
        "its lanes. Here each lane fetches its elements one by one from global memory, so the tensor cores starve."
    ),
    look_for="16-bit loads against HMMA in the instruction mix, sectors per request, and the tensor pipe's utilisation",
    launch=launch,
    build=build,
    dtypes=("f16", "bf16"),
)
