"""Where a warp's stream loops, and the parts of it that are simulated where its loop is cut."""

import numpy as np
import pytest

from gemmsim.sm.loops import Loop, find_loop, without_middle


def gemm_loop(iterations: int) -> list[int]:
    return [0, 1, *list(range(2, 9)) * iterations, 9, 10]


def test_find_loop_leaves_first_and_last_iteration_outside():
    pcs = gemm_loop(20)
    assert find_loop(np.array(pcs, np.int32)) == Loop(start=2 + 7, length=7, count=18)


def test_find_loop_takes_the_outer_loop_with_its_inner_ones():
    outer = [1, *[2, 3] * 5, 4]
    loop = find_loop(np.array([0, *outer * 10, 5], np.int32))
    assert loop is not None
    assert (loop.length, loop.count) == (12, 8)


def test_find_loop_stops_where_iterations_differ():
    pcs = [0, *[1, 2, 3] * 10, 1, 3, *[1, 2, 3] * 6, 4]
    loop = find_loop(np.array(pcs, np.int32))
    assert loop is not None
    assert (loop.length, loop.count) == (3, 9)


def test_straight_code_has_no_loop():
    assert find_loop(np.arange(50, dtype=np.int32)) is None


@pytest.mark.parametrize(("ends", "middle"), [(2, 1), (5, 4), (3, 0), (18, 2), (30, 0)])
def test_without_middle_keeps_whole_iterations(ends, middle):
    pcs = gemm_loop(20)
    loop = find_loop(np.array(pcs, np.int32))
    assert loop is not None
    parts = without_middle(loop, len(pcs), ends, middle)
    kept = [pc for start, stop in parts for pc in pcs[start:stop]]
    assert kept == gemm_loop(2 + min(18, ends + middle))
