"""Works out exact counters of the kernels of `orders.cu` from their text: lane by lane in NumPy, without gemmsim.

Each element that a warp touches is worked out as in the kernel's source. What a step of K asks for depends only on the
row (A) or column (B) of the tile, so it is worked out once for each, and the steps of all segments are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .corpus import THREADS, Case
from .mapping import TILE_STEPS, Problem, Segment, segments

_FLOATS_A_SECTOR = 8
_WARPS = THREADS // 32
_LOAD = "pipe_lsu_mem_global_op_ld"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
STORE_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
_STORE_WAVEFRONTS_A_STEP = _WARPS * 8  # both tiles store 8 words a thread and step, without bank conflicts

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]  # requests and sectors


def closed_forms(case: Case, sms: int, wavefronts_a_step: float) -> dict[str, float]:
    """Return counters, by Nsight Compute's names, that follow from the kernel's text.

    wavefronts_a_step  wavefronts of shared loads of a block in a step of K. They depend on how wide the compiler made
                       the loads, so they are taken from a launch of one block
    """
    p, kernel = case.problem(sms), case.kernel
    if kernel.scheme == "per_thread":
        return _per_thread(p)
    work = segments(kernel.scheme, kernel.order, p)
    steps = sum(one.last - one.first for one in work)
    loads, stores = _loads(case, p, work), _stores(case, p, work)
    requests, sectors = loads
    if kernel.order == "Table" or kernel.scheme == "ragged_k":  # each warp reads one number
        requests, sectors = requests + p.tiles * _WARPS, sectors + p.tiles * _WARPS
    op = "red" if kernel.adds or kernel.scheme == "stream_k" else "st"
    found = {
        FFMA: steps * p.tile**2 * TILE_STEPS[p.tile],
        f"l1tex__t_requests_{_LOAD}.sum": requests,
        f"l1tex__t_sectors_{_LOAD}.sum": sectors,
        f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum": stores[0],
        f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum": stores[1],
        STORE_WAVEFRONTS: steps * _STORE_WAVEFRONTS_A_STEP,
        LOAD_WAVEFRONTS: steps * wavefronts_a_step,
    }
    if kernel.scheme == "work_counter":  # one for each tile, and each block's last one finds nothing left
        taken = p.tiles + p.blocks
        found["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"] = taken
        found[STORE_WAVEFRONTS] += taken  # the number goes through shared memory
        found[LOAD_WAVEFRONTS] += taken * _WARPS
    return {name: float(value) for name, value in found.items()}


def compulsory_sectors(case: Case, sms: int) -> int:
    """Return how many sectors the launch reads at least once: of A, B and the numbers, and of C where it adds to it.

    Sizes must be multiples of the tile. DRAM is read in pairs of sectors.
    """
    p, kernel = case.problem(sms), case.kernel
    if kernel.scheme == "per_thread":
        return (p.m * p.k + p.k * p.n) // _FLOATS_A_SECTOR
    work = segments(kernel.scheme, kernel.order, p)
    a, b = set(), set()
    for one in work:
        z = one.z if kernel.scheme == "batched" else 0
        a.add((z, one.row, one.first, one.last))
        b.add((z, one.col, one.first, one.last))
    floats = (_covered(a) + _covered(b)) * p.tile * TILE_STEPS[p.tile]
    if kernel.adds or kernel.scheme == "stream_k":
        floats += p.m * p.n
    tables = {"Table": p.tiles, "ragged_k": p.down, "work_counter": 1}
    numbers = tables.get(kernel.order) or tables.get(kernel.scheme) or 0
    return floats // _FLOATS_A_SECTOR + -(-numbers // (2 * _FLOATS_A_SECTOR)) * 2


def expected_c(case: Case, sms: int, a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Return C as the segments compute it, float64, [layers * m, n]; `a` and `b` are the arrays with their padding."""
    p, kernel = case.problem(sms), case.kernel
    left, right = a[:, : p.k].astype(np.float64), b[:, : p.n].astype(np.float64)
    if kernel.scheme == "per_thread":
        return np.asarray(left @ right)
    work = segments(kernel.scheme, kernel.order, p)
    apart = kernel.scheme == "batched" or (kernel.scheme == "split_k" and not kernel.adds)
    c = np.zeros(((max(one.z for one in work) + 1 if apart else 1) * p.m, p.n))
    side, step = p.tile, TILE_STEPS[p.tile]
    for one in work:
        batch = one.z if kernel.scheme == "batched" else 0
        rows = slice(one.row * side, min(p.m, (one.row + 1) * side))
        columns = slice(one.col * side, min(p.n, (one.col + 1) * side))
        ks = slice(one.first * step, min(p.k, one.last * step))
        out = c[one.z * p.m : (one.z + 1) * p.m] if apart else c
        out[rows, columns] += left[batch * p.m :][rows, ks] @ right[batch * p.k :][ks, columns]
    return c


def _covered(pieces: set[tuple[int, int, int, int]]) -> int:
    """Count the steps that the pieces (matrix, row or column, first, last) cover, each once."""
    steps: dict[tuple[int, int], set[int]] = {}
    for z, line, first, last in pieces:
        steps.setdefault((z, line), set()).update(range(first, last))
    return sum(map(len, steps.values()))


def _count(elements: NDArray[np.int64], active: NDArray[np.bool_]) -> Counts:
    """Return requests and sectors of warps' accesses to floats; both arrays are [..., accesses, 32].

    An access is a request where any lane is active. The last axis but one is summed.
    """
    sectors = np.sort(np.where(active, elements // _FLOATS_A_SECTOR, -1), axis=-1)
    distinct = (np.diff(sectors, axis=-1) != 0).sum(-1) + 1 - (sectors[..., 0] == -1)
    return active.any(-1).sum(-1), distinct.sum(-1)


def _lanes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (thread, i): thread as [32 accesses, 32 lanes], 8 warps for each of i = 0 to 3."""
    thread = np.arange(THREADS, dtype=np.int64).reshape(_WARPS, 32)
    return np.tile(thread, (4, 1)), np.repeat(np.arange(4), _WARPS)[:, None]


def _loads_of_a(p: Problem, base: int, row_of_tiles: int) -> Counts:
    """Return [steps]: what a block at this row of tiles asks of A in each step of K. `base` is A's first element."""
    thread, i = _lanes()
    k_0 = (np.arange(p.steps, dtype=np.int64) * TILE_STEPS[p.tile])[:, None, None]
    if p.tile == 32:
        row, k = thread // 32 + 8 * i, k_0 + thread % 32
    else:
        row, k = thread // 8 + 32 * i, k_0 + thread % 8
    row = row + row_of_tiles * p.tile
    return _count(base + row * (p.k + p.pad) + k, (row < p.m) & (k < p.k))


def _loads_of_b(p: Problem, base: int, column_of_tiles: int) -> Counts:
    """Return [steps]: what a block at this column of tiles asks of B in each step of K."""
    thread, i = _lanes()
    k_0 = (np.arange(p.steps, dtype=np.int64) * TILE_STEPS[p.tile])[:, None, None]
    if p.tile == 32:
        k, col = k_0 + thread // 32 + 8 * i, thread % 32
    else:
        k, col = k_0 + thread // 128 + 2 * i, thread % 128
    col = col + column_of_tiles * p.tile
    return _count(base + k * (p.n + p.pad) + col, (k < p.k) & (col < p.n))


def _stores_of_tiles(p: Problem, base: int, row_of_tiles: int) -> Counts:
    """Return [across]: what a block asks of C to store its tile, for each tile of this row of tiles."""
    thread = np.arange(THREADS, dtype=np.int64).reshape(_WARPS, 32)
    rows, columns = [], []
    if p.tile == 32:
        for i in range(4):
            rows.append(thread // 32 + 8 * i)
            columns.append(thread % 32)
    else:
        for i in range(8):
            for j in range(8):
                rows.append(8 * (thread // 16) + i)
                columns.append(thread % 16 + 16 * j)
    row = np.concatenate(rows) + row_of_tiles * p.tile
    col = np.concatenate(columns) + (np.arange(p.across, dtype=np.int64) * p.tile)[:, None, None]
    return _count(base + row * (p.n + p.pad) + col, (row < p.m) & (col < p.n))


def _loads(case: Case, p: Problem, work: list[Segment]) -> tuple[int, int]:
    """Return requests and sectors of all loads of A and B."""
    requests = sectors = 0
    batched = case.kernel.scheme == "batched"
    for of_a, rows, columns in ((True, p.m, p.k), (False, p.k, p.n)):
        line = (lambda one: one.row) if of_a else (lambda one: one.col)
        for z, number, some in _by_line(work, line, batched):
            base = z * rows * (columns + p.pad)
            for_steps = (_loads_of_a if of_a else _loads_of_b)(p, base, number)
            sums = [np.concatenate(([0], np.cumsum(counts))) for counts in for_steps]
            first, last = np.array([(one.first, one.last) for one in some]).T
            requests += int((sums[0][last] - sums[0][first]).sum())
            sectors += int((sums[1][last] - sums[1][first]).sum())
    return requests, sectors


def _stores(case: Case, p: Problem, work: list[Segment]) -> tuple[int, int]:
    """Return requests and sectors of all stores to C, or of all additions to it."""
    requests = sectors = 0
    layered = case.kernel.scheme == "batched" or case.kernel.adds is False
    for z, row, some in _by_line(work, lambda one: one.row, layered):
        counts = _stores_of_tiles(p, z * p.m * (p.n + p.pad), row)
        columns = [one.col for one in some]
        requests += int(counts[0][columns].sum())
        sectors += int(counts[1][columns].sum())
    return requests, sectors


def _by_line(
    work: list[Segment], line: Callable[[Segment], int], layered: bool
) -> Iterator[tuple[int, int, list[Segment]]]:
    """Group the segments by (matrix, row or column of tiles); matrix is 0 where the z axis selects none."""
    groups: dict[tuple[int, int], list[Segment]] = {}
    for one in work:
        groups.setdefault((one.z if layered else 0, line(one)), []).append(one)
    for (z, number), some in groups.items():
        yield z, number, some


def _per_thread(p: Problem) -> dict[str, float]:
    """Return the counters of the kernel with a thread an element, whose warps may lie across two rows of C.

    Warps that begin at the same column, and as far behind the start of a sector, ask for equally many sectors: one of
    each kind is worked out.
    """
    element = np.arange(-(-p.m * p.n // 32) * 32, dtype=np.int64).reshape(-1, 32)
    row_0, col_0 = element[:, 0] // p.n, element[:, 0] % p.n
    lda, ldb = p.k + p.pad, p.n + p.pad  # the rows of C are as long as those of B
    behind = (row_0 * lda % _FLOATS_A_SECTOR, row_0 * ldb % _FLOATS_A_SECTOR)
    kinds = np.stack([*behind, col_0, (element < p.m * p.n).sum(1)], axis=1)
    distinct, warps = np.unique(kinds, axis=0, return_counts=True)
    a_0, c_0, col_0, lanes = distinct.T[..., None]
    lane = np.arange(32)
    active, row, col = lane < lanes, (col_0 + lane) // p.n, (col_0 + lane) % p.n
    loads = np.zeros((2, len(warps)), np.int64)
    for k in range(p.k):
        for elements in (a_0 + row * lda + k, k * ldb + col):
            loads += np.stack(_count(elements[:, None], active[:, None]))
    stores = np.stack(_count((c_0 + row * ldb + col)[:, None], active[:, None]))
    (requests, sectors), (store_requests, store_sectors) = loads @ warps, stores @ warps
    return {
        FFMA: float(p.m * p.n * p.k),
        f"l1tex__t_requests_{_LOAD}.sum": float(requests),
        f"l1tex__t_sectors_{_LOAD}.sum": float(sectors),
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": float(store_requests),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": float(store_sectors),
    }
