"""A matmul in Triton, of gemmsim's own: C = A @ B, one tile of C for each program, rows of tiles in groups."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_a,
    stride_b,
    stride_c,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
):
    program = tl.program_id(0)
    across = tl.cdiv(N, BN)
    first = program // (GROUP * across) * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    inside = program % (GROUP * across)
    tile_row, tile_column = first + inside % height, inside // height
    rows = tile_row * BM + tl.arange(0, BM)
    columns = tile_column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * stride_a + k[None, :]
    b_at = b_ptr + k[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), dtype=ACCUMULATOR)
    for start in range(0, K, BK):
        left = K - start
        a = tl.load(a_at, mask=(rows[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_at, mask=(k[:, None] < left) & (columns[None, :] < N), other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_at += BK
        b_at += BK * stride_b
    c_at = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c_at, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))
