"""Says by how much the sectors move that a bulk copy reads or writes, where the coordinates of its tile do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.native.function import NativeFunction
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.engine import plan_words
from gemmsim.trace.engine.variants import sources_of
from gemmsim.trace.steady.states import NotProvedError, States

_PLANS = "gemmsim.trace.engine.copy_plans"
_make_plan = NativeFunction(_PLANS, "make_plan", sources_of(_PLANS))
_CONSTANT = (micro.SOURCE, micro.THIRD_SOURCE, micro.FOURTH_SOURCE)


def stride_of_copy(states: States, row: list[int], op: int, mask: int, context: NDArray[np.uint64]) -> int:
    """Return by how many bytes the addresses of a bulk copy move in a period.

    row      the copy's micro-operation
    op       its address
    context  the executor's words

    Raises NotProvedError where it is another copy in other periods: where its data decide, or where more or less of its
    tile is in the array. All of a tile that moves must be.
    """
    if states.warps > 1:
        raise NotProvedError("copies are followed for each warp by itself")
    if row[micro.DETAIL] & micro.DIRECTION_MASK == micro.COPY_LOAD and not row[micro.ACCESS] & micro.UNMOVED_BIT:
        raise NotProvedError("what is copied decides")
    for column in _CONSTANT:
        states.constant(row[column], mask, decides=True)
    rank = row[micro.DETAIL] >> micro.RANK_SHIFT & 7
    if rank == 0:
        return states.stride(row[micro.SECOND_SOURCE], mask)
    places = [row[micro.FIFTH_SOURCE] + WARP_LANES * d for d in range(rank)]
    for at in (row[micro.SECOND_SOURCE], row[micro.SECOND_SOURCE] + WARP_LANES):
        states.constant(at, mask, decides=True)
    moves = [states.moves(at, mask) for at in places]
    for at, moved in zip(places, moves, strict=True):
        if moved and not states.same_everywhere(at, mask):
            raise NotProvedError("tiles of other blocks may leave their array")
        if not moved:  # so much of the tile is in the array as was before, wherever it is
            states.constant(at, mask, decides=True)
    moving = [d for d in range(rank) if moves[d]]
    if not moving:
        return 0

    def bytes_moved(states: States) -> int:
        return _moved(states, [_plan(states, n, op, mask, context) for n in range(3)], moving)

    stride = bytes_moved(states)
    states.tape.ask(lambda states, _: bytes_moved(states) == stride)
    return stride


def _plan(states: States, number: int, op: int, mask: int, context: NDArray[np.uint64]) -> NDArray[np.int64]:
    plan, lane = np.zeros(plan_words.PLAN_WORDS, np.int64), (mask & -mask).bit_length() - 1
    where = (context.ctypes.data, states.addresses[number], op, plan.ctypes.data)
    if _make_plan(*map(np.uint64, where), lane) != 0:
        raise NotProvedError("a copy cannot be executed")
    return plan


def _moved(states: States, plans: list[NDArray[np.int64]], moving: list[int]) -> int:
    """Return the bytes from a tile to that of the next period.

    plans   those of three of them, as in `States`
    moving  dimensions along which the tile moves; where it is along others may not be known
    """
    zero, one, last = plans
    moved = 0
    for d in moving:
        first, step = int(zero[plan_words.PLACE + d]), int(one[plan_words.PLACE + d] - zero[plan_words.PLACE + d])
        if not step:
            raise NotProvedError("coordinates move unevenly")
        across = (int(zero[plan_words.BOX + d]) - 1) * int(zero[plan_words.STEP + d])
        room = int(zero[plan_words.SIZE + d]) - 1 - across - first if step > 0 else first
        if first < 0 or room < 0 or first + across >= int(zero[plan_words.SIZE + d]):
            raise NotProvedError("a tile that moves reaches beyond the array")
        states.limit(room // abs(step), "a tile leaves the array")
        if int(last[plan_words.PLACE + d]) - first != step * states.last:
            raise NotProvedError("coordinates move unevenly")
        moved += step * int(zero[plan_words.STRIDE + d])
    return moved
