"""numba kernels that call each device intrinsic; compiled by test_intrinsics.py."""

from numba import cuda, float32, int32
from numba.cuda import types

from gemmsim.launch.ladder import kernel_infos

kernel_infos()  # makes the checkout's kernels importable under their installed name

from gemmsim_kernels.intrinsics import (  # noqa: E402
    cp_async_ca_4,
    cp_async_ca_8,
    cp_async_ca_16,
    cp_async_cg_16,
    cp_async_commit_group,
    cp_async_wait_group,
    dp4a_s8,
    global_address,
    ldmatrix_x1,
    ldmatrix_x2,
    load_global_b16_if,
    load_global_f32_if,
    load_global_f32x4,
    load_shared_f32x4,
    mma_m8n8k4_f64,
    mma_m16n8k8_tf32,
    mma_m16n8k32_s8,
    shared_address,
    store_global_f32_if,
    store_global_f32x4,
    store_shared_b16,
    store_shared_f32x4,
    tf32_of,
)


@cuda.jit
def wide(x, y):
    """y = x by four words at a time, the rows of a warp reversed in shared memory."""
    tile = cuda.shared.array((32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    store_shared_f32x4(shared_address(tile) + 16 * t, load_global_f32x4(global_address(x) + 16 * t))
    cuda.syncthreads()
    store_global_f32x4(global_address(y) + 16 * t, load_shared_f32x4(shared_address(tile) + 16 * (31 - t)))


@cuda.jit
def copies(x, y):
    """Four words a thread by cp.async of each width; of the last four bytes only half are read, for t >= 16 none."""
    tile = cuda.shared.array((32, 16), float32, alignment=16)
    t = cuda.threadIdx.x
    to, source = shared_address(tile) + 64 * t, global_address(x) + 64 * t
    cp_async_cg_16(to, source, 16 if t < 16 else 0)
    cp_async_ca_16(to + 16, source + 16, 16)
    cp_async_commit_group()
    cp_async_ca_8(to + 32, source + 32, 8)
    cp_async_ca_8(to + 40, source + 40, 4)
    cp_async_ca_4(to + 48, source + 48, 4)
    cp_async_ca_4(to + 52, source + 52, 4 if t < 16 else 0)
    cp_async_commit_group()
    cp_async_wait_group(1)
    cp_async_wait_group(0)
    for i in range(14):
        y[t, i] = tile[t, i]
    y[t, 14] = 0
    y[t, 15] = 0


@cuda.jit
def conditional(x, y, n):
    """The first n of y are the first n of x, by float32 and by halves; nothing else is touched."""
    tile = cuda.shared.array(64, types.uint16)
    t = cuda.threadIdx.x
    value = load_global_f32_if(global_address(x) + 4 * t, t < n)
    store_global_f32_if(global_address(y) + 4 * t, value, t < n)
    for i in range(2):
        half = load_global_b16_if(global_address(x) + 4 * t + 2 * i, t < n)
        store_shared_b16(shared_address(tile) + 4 * t + 2 * i, half)
    cuda.syncthreads()
    y[32 + t] = (int32(tile[2 * t + 1]) << 16 | tile[2 * t]) == 0


@cuda.jit
def products(x, f, d, s):
    """The matrix instructions that the tensor-core rungs do not use, and dp4a; all operands are ones."""
    tile = cuda.shared.array((32, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    for i in range(4):
        tile[t, i] = x[t]
    cuda.syncthreads()
    one = tf32_of(x[t])
    zero = float32(0)
    store_global_f32x4(
        global_address(f) + 16 * t, mma_m16n8k8_tf32((one, one, one, one), (one, one), (zero, zero, zero, zero))
    )
    d[t], d[t + 32] = mma_m8n8k4_f64((d[t],), (d[t],), (d[t], d[t]))
    bytes_, none = int32(0x01010101), int32(0)
    sums = mma_m16n8k32_s8((bytes_, bytes_, bytes_, bytes_), (bytes_, bytes_), (none, none, none, none))
    first = ldmatrix_x1(shared_address(tile) + 16 * (t % 8))
    second = ldmatrix_x2(shared_address(tile) + 16 * (t % 16))
    s[t] = dp4a_s8(bytes_, bytes_, sums[0]) + sums[3] + int32(first == second[0] and first == second[1])
