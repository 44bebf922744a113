"""Finds the micro-operations that touch registers which wgmma uses, for `gemmsim.trace.sanitizer.flights`, and those
that touch registers which loads from shared memory write, for `gemmsim.trace.sanitizer.unwritten`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER, MicroProgram
from gemmsim.trace.lower.control import FIRST_ARGUMENT
from gemmsim.trace.lower.warpgroup import A_IN_REGISTERS
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.slicing.dataflow import rows_of, step_of

_MULTIPLY, _OTHER_MULTIPLY = CONTROL_NUMBER["multiply_warpgroup"], CONTROL_NUMBER["multiply_matrix"]
_MOVE_MATRIX, _ACCESS, _EXTERNAL = (CONTROL_NUMBER[name] for name in ("move_matrix", "access", "external"))
_FRAGMENT_REGISTERS = 4  # of A
_ARGUMENT_REGISTERS = 8  # that are read of what an external function is called with (`runtime.external_calls`)
_SINK_ROWS = 8  # rows that follow the row of all ones; what is written there is never read


def watched(program: Program, code: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the code with `micro.WATCHED` set, and for each micro-operation which of these registers it reads and
    writes (uint64 [micro-operations, shadow.WATCH_WORDS]). The code is the one given where there is no wgmma.
    """
    if not (code[:, micro.OP] == _MULTIPLY).any():
        return code, np.zeros((1, shadow.WATCH_WORDS), np.uint64)
    touched = [_touched(words, number) for number, words in enumerate(code.tolist())]
    products = code[:, micro.OP] == _MULTIPLY
    used = 0
    for number in np.flatnonzero(products).tolist():
        used |= touched[number][0] | touched[number][1]
    used &= rows_of(0, min(program.registers, shadow.REGISTERS))
    table = _table(touched, used)
    code = code.copy()
    code[table.any(axis=1) & ~products, micro.FLAGS] |= np.uint32(micro.WATCHED)
    return code, table


def loaded(lowered: MicroProgram, code: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the code with `micro.TELLS_LATE` and `micro.TOUCHES_LOADED` set, and for each micro-operation which
    registers that such loads write it reads and writes, as `watched` does. The code is the one given where there is no
    load from shared memory into registers of a thread.
    """
    access = code[:, micro.ACCESS]
    shared = np.isin(access >> micro.SPACE_SHIFT & micro.SPACE_MASK, (micro.SHARED, micro.GENERIC))
    loads = (code[:, micro.OP] == _ACCESS) & shared & (access >> micro.KIND_SHIFT == micro.LOAD)
    own = rows_of(0, min(lowered.warp_rows[0].start, shadow.REGISTERS))  # the uniform registers follow
    nowhere = rows_of(lowered.ones + 1, _SINK_ROWS)
    late, used = np.zeros(len(code), np.bool_), 0
    for number in np.flatnonzero(loads).tolist():
        writes = step_of(code[number].tolist(), number, 0).writes
        late[number] = writes & ~own == 0 or writes & ~nowhere == 0
        used |= writes & own if late[number] else 0
    if not late.any():
        return code, np.zeros((1, shadow.WATCH_WORDS), np.uint64)
    table = _table([_all_touched(words, number) for number, words in enumerate(code.tolist())], used)
    code = code.copy()
    code[late, micro.FLAGS] |= np.uint32(micro.TELLS_LATE)
    code[table.any(axis=1), micro.FLAGS] |= np.uint32(micro.TOUCHES_LOADED)
    return code, table


def _table(touched: list[tuple[int, int]], used: int) -> NDArray[np.uint64]:
    """Return the table of the rows `used` (`shadow.WATCH_WORDS`), from the rows that each micro-operation reads and
    writes."""
    words = b"".join((rows & used).to_bytes(8 * shadow.REGISTER_WORDS, "little") for pair in touched for rows in pair)
    return np.frombuffer(words, "<u8").reshape(-1, shadow.WATCH_WORDS).astype(np.uint64)


def _all_touched(words: list[int], number: int) -> tuple[int, int]:
    """Return the rows that a micro-operation may read, for an address, too, and those that it writes."""
    step = step_of(words, number, 0)
    reads, writes = step.reads | step.control, step.writes
    if words[micro.OP] == _EXTERNAL:
        reads |= rows_of(FIRST_ARGUMENT, _ARGUMENT_REGISTERS)
    return reads, writes


def _touched(words: list[int], number: int) -> tuple[int, int]:
    """Return the rows that a micro-operation reads and those that it writes, each as a number with a bit for each."""
    step, kind = step_of(words, number, 0), words[micro.OP]
    if kind == _MULTIPLY:
        a = words[micro.SOURCE] // WARP_LANES
        return rows_of(a, _FRAGMENT_REGISTERS) if words[micro.DETAIL] & A_IN_REGISTERS else 0, step.writes
    if kind == _OTHER_MULTIPLY:  # what it reads is known too roughly
        return 0, step.writes
    if kind == _MOVE_MATRIX and step.reads:
        return rows_of(words[micro.SECOND_SOURCE] // WARP_LANES, words[micro.DETAIL] & 7), 0
    return step.reads, step.writes
