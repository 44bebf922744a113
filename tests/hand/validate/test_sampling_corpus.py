"""The twin that judges samples of blocks: orders of tiles and counters, worked out by hand at a few tiles."""

from __future__ import annotations

from itertools import pairwise

import pytest
from gemmsim_validate.sampling.closed_forms import (
    FFMA,
    LOAD_WAVEFRONTS,
    STORE_WAVEFRONTS,
    closed_forms,
    compulsory_sectors,
)
from gemmsim_validate.sampling.corpus import KERNELS, Case, Kernel
from gemmsim_validate.sampling.mapping import (
    Problem,
    Segment,
    grid_of,
    lengths_of_k,
    numbers_of,
    place,
    segments,
    table_of_tiles,
)
from gemmsim_validate.sampling.others import mma_forms

LOADS = ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
STORES = ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")
ONE_SM = 1


def problem(down: int, across: int, blocks: int = 1) -> Problem:
    return Problem(32 * down, 32 * across, 64, 0, 32, blocks)


def taken(order: str, p: Problem) -> list[tuple[int, int] | None]:
    return [place(order, number, p, table_of_tiles(p.tiles)) for number in range(numbers_of(order, p))]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("RowMajor", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("ColumnMajor", [(0, 0), (1, 0), (0, 1), (1, 1)]),
        ("Grouped", [(0, 0), (1, 0), (0, 1), (1, 1)]),
        ("Snake", [(0, 0), (0, 1), (1, 1), (1, 0)]),
        ("Morton", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("Hilbert", [(0, 0), (1, 0), (1, 1), (0, 1)]),
        ("Hashed", [(0, 1), (0, 0), (1, 1), (1, 0)]),  # 12345 and three times 7919 more, modulo 4: 1, 0, 3, 2
        ("Diagonal", [(0, 0), (1, 1), (0, 1), (1, 0)]),
        ("Swizzled", [(0, 0), (0, 1), *[None] * 6, (1, 1), (1, 0), *[None] * 6]),
        ("EveryThirdIdle", [(0, 0), (0, 1), None, (1, 0), (1, 1), None]),
        ("Lower", [(0, 0), None, (1, 0), (1, 1)]),
        ("LowerPacked", [(0, 0), (1, 0), (1, 1)]),
    ],
)
def test_four_tiles_come_in_the_order_worked_out(order: str, expected: list[tuple[int, int] | None]) -> None:
    assert taken(order, problem(2, 2)) == expected


def test_a_group_at_the_end_has_fewer_rows() -> None:
    assert taken("Grouped", problem(9, 2))[14:] == [(6, 1), (7, 1), (8, 0), (8, 1)]


def test_hilbert_goes_from_neighbour_to_neighbour() -> None:
    """What makes it a Hilbert curve: each tile touches the one before, over the whole square."""
    path = [at for at in taken("Hilbert", problem(16, 16)) if at]
    assert all(abs(r - row) + abs(c - col) == 1 for (r, c), (row, col) in pairwise(path))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.scheme != "per_thread"], ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(16, 16), (13, 17)])
def test_every_step_of_every_tile_is_computed_once(kernel: Kernel, shape: tuple[int, int]) -> None:
    p = problem(*shape, blocks=37)
    steps = [(s.z, s.row, s.col, k) for s in segments(kernel.scheme, kernel.order, p) for k in range(s.first, s.last)]
    if kernel.scheme == "split_k":
        steps = [(0, *rest) for _, *rest in steps]
    matrices = grid_of(kernel.scheme, kernel.order, p)[2] if kernel.scheme == "batched" else 1
    lower, columns = kernel.order.startswith("Lower"), dict.fromkeys(range(p.down), p.steps)
    if kernel.scheme == "triangular":
        columns = {row: min(p.steps, row + 1) for row in columns}
    if kernel.scheme == "ragged_k":
        columns = {row: length // 32 for row, length in enumerate(lengths_of_k(p))}
    short = p.tiles // 7 * 5 if kernel.scheme == "one_short" else -1
    expected = [
        (z, row, col, k)
        for z in range(matrices)
        for row in range(p.down)
        for col in range(p.across)
        for k in range(columns[row] if row * p.across + col != short else 1)
        if col <= row or not lower
    ]
    assert sorted(steps) == expected


def test_stream_k_cuts_tiles_where_shares_end() -> None:
    """Three tiles of two steps for two blocks: three steps each, so that the tile in the middle is cut."""
    assert segments("stream_k", "RowMajor", problem(1, 3, blocks=2)) == [
        Segment(0, 0, 0, 0, 2),
        Segment(0, 0, 1, 0, 1),
        Segment(0, 0, 1, 1, 2),
        Segment(0, 0, 2, 0, 2),
    ]


def test_counters_of_one_tile_by_hand() -> None:
    """32 x 32 x 32: 32 rows of A and of B, 128 bytes each, are a request of 4 sectors each; so are those of C."""
    found = closed_forms(Case(KERNELS[0], 32, 32, 32, 32), ONE_SM, 7.0)
    assert found[FFMA] == 32**3
    assert [found[name] for name in (*LOADS, *STORES)] == [64, 256, 32, 128]
    assert (found[STORE_WAVEFRONTS], found[LOAD_WAVEFRONTS]) == (64, 7)


def test_counters_of_misaligned_rows_by_hand() -> None:
    """One float more in a row: row r starts r modulo 8 floats after a sector's start, and takes 5 sectors but for 0.

    Of 32 rows of each matrix, 4 start with a sector.
    """
    found = closed_forms(Case(KERNELS[0], 32, 32, 32, 32, pad=1), ONE_SM, 0.0)
    assert [found[name] for name in (*LOADS, *STORES)] == [64, 2 * (4 * 4 + 28 * 5), 32, 4 * 4 + 28 * 5]


def test_the_large_tile_reads_a_in_pieces_of_eight_floats() -> None:
    """128 x 128 x 8: a request takes four rows of A, a sector of each; B is 8 rows of 4 requests, 4 sectors each.

    A store request takes 16 columns, 2 sectors, of two rows.
    """
    found = closed_forms(Case(KERNELS[0], 128, 128, 128, 8), ONE_SM, 0.0)
    assert [found[name] for name in (*LOADS, *STORES)] == [32 + 32, 4 * 32 + 4 * 32, 512, 4 * 512]


def test_rows_outside_the_matrix_are_no_requests() -> None:
    """Of C's 5 rows each is a request of one sector; B's 32 rows too; A has 5 rows of 4 sectors."""
    found = closed_forms(Case(KERNELS[0], 32, 5, 8, 32), ONE_SM, 0.0)
    assert [found[name] for name in (*LOADS, *STORES)] == [5 + 32, 5 * 4 + 32, 5, 5]
    assert found[FFMA] == 32**3


def test_a_thread_an_element_reads_two_rows_where_a_warp_crosses_them() -> None:
    """M = 2, N = 16, K = 1: one warp has both rows. A's two floats lie in one sector, B's row in 2, C's rows in 4."""
    found = closed_forms(Case(KERNELS[-1], 32, 2, 16, 1), ONE_SM, 0.0)
    assert [found[name] for name in (*LOADS, *STORES)] == [2, 1 + 2, 1, 4]
    assert found[FFMA] == 2 * 16


def test_the_counter_is_asked_once_a_tile_and_once_more_a_block() -> None:
    """Two by two tiles, and two blocks at least."""
    counter = next(kernel for kernel in KERNELS if kernel.scheme == "work_counter")
    found = closed_forms(Case(counter, 32, 64, 64, 32), 8, 0.0)
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"] == 4 + 2


@pytest.mark.parametrize(
    ("name", "sectors"),
    [
        ("grouped", 2 * 64 * 64 // 8),
        ("lower triangle", 2 * 64 * 64 // 8),
        ("triangular A", (32 * 32 + 32 * 64 + 64 * 64) // 8),  # the first 32 rows of A need 32 of its columns
        ("split-K, atomic", 3 * 64 * 64 // 8),  # C too
        ("table", 2 * 64 * 64 // 8 + 2),  # four numbers in a sector, which comes with its neighbour
        ("batched, grouped", 3 * 2 * 64 * 64 // 8),
    ],
)
def test_sectors_that_must_be_read(name: str, sectors: int) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    assert compulsory_sectors(Case(kernel, 32, 64, 64, 64), ONE_SM) == sectors


def test_counters_of_one_tile_of_tensor_cores() -> None:
    """128 x 128 x 128 are four steps. In each, A's 128 rows have 64 bytes and B's 32 rows 256: 256 sectors each.

    A vector of 16 bytes a lane makes 16 requests of each; C's 128 rows of 512 bytes are 2048 sectors, 8 a request.
    """
    found = mma_forms(128)
    assert [found[name] for name in (*LOADS, *STORES)] == [4 * 32, 4 * 512, 256, 2048]
    assert found["smsp__inst_executed_op_ldsm.sum"] == 4 * 2 * (4 + 2) * 8
