"""Follows micro-operations that are no arithmetic of single lanes through several periods of a loop at once."""

from __future__ import annotations

import ctypes

import numpy as np

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.context import ALL
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.states import NotProvedError, States

# What executes an exchange: (where a status goes, the context, which it does not read, a warp's rows, its row in the
# code, mask, number of the warp)
_PART = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int64),
)
_OPERANDS = (micro.SOURCE, micro.SOURCE + micro.SOURCE_COLUMNS, micro.SOURCE + 2 * micro.SOURCE_COLUMNS)


def follow_convergence(states: States, name: str, row: list[int], mask: int, path: Path) -> None:
    """Raise NotProvedError where threads that are together do not stay so, or others join them."""
    at = row[micro.RESULT] if name in ("begin", "converge") else row[micro.SOURCE]
    if name != "begin":
        states.constant(at, mask, decides=True)
    if at in path.holds or (name not in ("begin", "converge") and path.holds):
        raise NotProvedError("other threads of the warp may go on")


def is_together(states: States, row: list[int], mask: int) -> bool:
    """Whether the threads of `mask`, all of a warp that have not ended, are those that a divergent branch asks for."""
    if states.unknown(row[micro.SOURCE]):
        raise NotProvedError("a condition is not known")
    lane = (mask & -mask).bit_length() - 1

    def asked(states: States) -> bool:
        words = states.words[0, :, row[micro.SOURCE] + lane] ^ np.uint32(row[micro.SOURCE_FLIP])
        return states.of_all(words & np.uint32(mask)) == mask

    found = asked(states)
    states.tape.ask(lambda states, _: asked(states) == found)
    return found


def follow_mbarrier(states: States, row: list[int], mask: int) -> None:
    """Follow an operation on mbarriers. These are in the same state in each period, so it has the same outcome in each.

    A wait goes on when its phase is complete, and then says so. What a test says depends on when it asks.
    """
    kind = row[micro.DETAIL]
    if kind not in (micro.ARRIVE_AT, micro.TRY):
        raise NotProvedError("an mbarrier is made, or not waited for")
    for at in (*(row[column] for column in _OPERANDS), row[micro.SOURCE] + WARP_LANES):
        states.constant(at, mask, decides=True)
    if kind == micro.TRY:
        states.set_true(row[micro.RESULT], mask)
    else:
        states.forget((row[micro.RESULT], row[micro.RESULT] + WARP_LANES))


def follow_exchange(states: States, row: list[int], op: int, mask: int, touched: tuple[list[int], list[int]]) -> None:
    """Execute an exchange between lanes in all states. Of words that move only the first lane's may be taken.

    op       address of its row in the code
    touched  where the rows begin that it reads and writes
    """
    reads, writes = touched
    first_lane = row[micro.DETAIL] == micro.FIRST_LANE
    moving = any(states.moves(at, mask) for at in reads)
    if any(map(states.unknown, reads)) or not (moving and first_lane):
        for at in reads:
            states.constant(at, mask, decides=True)
    if any(map(states.unknown, reads)):
        states.forget(writes)
        return
    if moving and row[micro.SOURCE_FLIP] not in (0, ALL):
        raise NotProvedError("a word that moves is changed bit by bit")
    function = _PART(row[micro.FUNCTION] | row[micro.FUNCTION + 1] << 32)

    def execute(states: States) -> bool:
        status = ctypes.c_int64()
        for address in states.addresses:
            function(ctypes.addressof(status), 0, address, op, mask, 0)
        return True

    execute(states)
    states.tape.ask(lambda states, _: execute(states))
    written = ALL if row[micro.FLAGS] & micro.UNIFORM else mask
    states.remember(writes, written, moving)
    lane = (mask & -mask).bit_length() - 1 if first_lane else None
    states.exchange_blocks(reads, writes, written, lane)
