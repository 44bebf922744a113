"""A matmul in Triton, of gemmsim's own, with tensor descriptors: C = A @ B, one tile of C for each program.

`matmul` makes the descriptors itself; `matmul_with_maps` gets them from the host. B is [N, K], which Hopper's tensor
cores need for types other than of 16 bits.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of_c(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in tl.range(0, K, BK, warp_specialize=SPECIALISED):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total, input_precision="tf32")
    c.store([row, column], total.to(c.dtype))


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr
):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tile_of_c(a, b, c, K, BM, BN, BK, SPECIALISED)


@triton.jit
def matmul_with_maps(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr):
    tile_of_c(a, b, c, K, BM, BN, BK, SPECIALISED)
