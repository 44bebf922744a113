"""Finds the micro-operations that touch registers which wgmma uses, for `gemmsim.trace.sanitizer.flights`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.lower.warpgroup import A_IN_REGISTERS
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.slicing.dataflow import rows_of, step_of

_MULTIPLY, _OTHER_MULTIPLY = CONTROL_NUMBER["multiply_warpgroup"], CONTROL_NUMBER["multiply_matrix"]
_MOVE_MATRIX = CONTROL_NUMBER["move_matrix"]
_FRAGMENT_REGISTERS = 4  # of A
_WORD = (1 << 64) - 1


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
    table = np.zeros((len(code), shadow.WATCH_WORDS), np.uint64)
    for number, (reads, writes) in enumerate(touched):
        for first, rows in ((shadow.WATCH_READS, reads & used), (shadow.WATCH_WRITES, writes & used)):
            for word in range(shadow.REGISTER_WORDS):
                table[number, first + word] = rows >> 64 * word & _WORD
    code = code.copy()
    code[table.any(axis=1) & ~products, micro.FLAGS] |= np.uint32(micro.WATCHED)
    return code, table


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
