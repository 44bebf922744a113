"""GEMM kernels in numba.cuda, as people write them: C = A @ B. The C++ ones are in `gemm.cu`."""

from numba import cuda, float32, float64, int32


@cuda.jit(fastmath=True)
def blocktile_1d(A, B, C):
    """64 x 64 results a block, 8 rows of one column a thread; 512 threads."""
    tile_a = cuda.shared.array((64, 8), float32)
    tile_b = cuda.shared.array((8, 64), float32)
    m, n = C.shape
    depth = A.shape[1]
    tid = cuda.threadIdx.x
    row, col = tid // 64 * 8, tid % 64
    m0, n0 = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    acc = cuda.local.array(8, float32)
    for i in range(8):
        acc[i] = 0
    for k0 in range(0, depth, 8):
        r, c = m0 + tid // 8, k0 + tid % 8
        tile_a[tid // 8, tid % 8] = A[r, c] if r < m and c < depth else float32(0)
        r, c = k0 + tid // 64, n0 + tid % 64
        tile_b[tid // 64, tid % 64] = B[r, c] if r < depth and c < n else float32(0)
        cuda.syncthreads()
        for k in range(8):
            b = tile_b[k, col]
            for i in range(8):
                acc[i] += tile_a[row + i, k] * b
        cuda.syncthreads()
    for i in range(8):
        if m0 + row + i < m and n0 + col < n:
            C[m0 + row + i, n0 + col] = acc[i]


@cuda.jit
def blocktile_2d(A, B, C):
    """64 x 64 results a block, 4 x 4 a thread; 256 threads. Without fastmath."""
    tile_a = cuda.shared.array((64, 16), float32)
    tile_b = cuda.shared.array((16, 64), float32)
    m, n = C.shape
    depth = A.shape[1]
    tid = cuda.threadIdx.x
    row, col = tid // 16 * 4, tid % 16 * 4
    m0, n0 = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    acc = cuda.local.array((4, 4), float32)
    for i in range(4):
        for j in range(4):
            acc[i, j] = 0
    for k0 in range(0, depth, 16):
        for i in range(tid, 64 * 16, 256):
            r, c = m0 + i // 16, k0 + i % 16
            tile_a[i // 16, i % 16] = A[r, c] if r < m and c < depth else float32(0)
        for i in range(tid, 16 * 64, 256):
            r, c = k0 + i // 64, n0 + i % 64
            tile_b[i // 64, i % 64] = B[r, c] if r < depth and c < n else float32(0)
        cuda.syncthreads()
        for k in range(16):
            for i in range(4):
                for j in range(4):
                    acc[i, j] += tile_a[row + i, k] * tile_b[k, col + j]
        cuda.syncthreads()
    for i in range(4):
        for j in range(4):
            if m0 + row + i < m and n0 + col + j < n:
                C[m0 + row + i, n0 + col + j] = acc[i, j]


@cuda.jit(fastmath=True)
def shuffled(A, B, C):
    """Lanes hold 32 elements of A's row and pass them round; block (32, rows)."""
    m, n = C.shape
    depth = A.shape[1]
    lane = cuda.threadIdx.x
    row, col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y, cuda.blockIdx.x * 32 + lane
    acc = float32(0)
    for k0 in range(0, depth, 32):
        mine = A[row, k0 + lane] if row < m and k0 + lane < depth else float32(0)
        for k in range(32):
            a = cuda.shfl_sync(0xFFFFFFFF, mine, k)
            if k0 + k < depth and col < n:
                acc += a * B[k0 + k, col]
    if row < m and col < n:
        C[row, col] = acc


@cuda.jit(fastmath=True)
def split_k(A, B, C):
    """K in turns over the grid's z; results added up by atomics."""
    col, row, _ = cuda.grid(3)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(cuda.blockIdx.z, A.shape[1], cuda.gridDim.z):
            acc += A[row, k] * B[k, col]
        cuda.atomic.add(C, (row, col), acc)


@cuda.jit
def persistent(A, B, C, group):
    """Blocks walk over 16 x 16 tiles; a tile's place comes from divisions by numbers known at run time only."""
    m, n = C.shape
    depth = A.shape[1]
    tiles_m, tiles_n = int32((m + 15) // 16), int32((n + 15) // 16)
    for tile in range(cuda.blockIdx.x, tiles_m * tiles_n, cuda.gridDim.x):
        in_group = group * tiles_n
        first = tile // in_group * group
        size = min(tiles_m - first, group)
        row = (first + tile % in_group % size) * 16 + cuda.threadIdx.y
        col = tile % in_group // size * 16 + cuda.threadIdx.x
        if row < m and col < n:
            acc = float32(0)
            for k in range(depth):
                acc += A[row, k] * B[k, col]
            C[row, col] = acc


@cuda.jit
def double(A, B, C):
    """float64 throughout."""
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float64(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


@cuda.jit
def half_in(A, B, C):
    """float16 in, float32 sums."""
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += float32(A[row, k]) * float32(B[k, col])
        C[row, col] = acc


@cuda.jit
def early_exit(A, B, C):
    """Threads return at different places; what is left meets no barrier."""
    col, row = cuda.grid(2)
    if row >= C.shape[0]:
        return
    if col >= C.shape[1]:
        return
    acc = float32(0)
    k = 0
    while True:
        if k >= A.shape[1]:
            C[row, col] = acc
            return
        if (row + col + k) % 3 == 0:
            acc += A[row, k] * B[k, col]
            k += 1
            continue
        acc = acc - (-A[row, k]) * B[k, col]
        k += 1
