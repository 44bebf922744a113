"""Says which rows decide whether the differences of an operation on lanes have to be looked at.

Of most operations of a leader no operand differs in any block. The compiled code keeps beside each row whether any of
its words may, and asks that of few bytes instead of the rows' vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.semantics.operations import load
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.differences.rules import sink_of
from gemmsim.trace.engine.differences import words
from gemmsim.trace.lower.context import CONTROL_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import step_of

# Micro-operations after which it is noted whether what they wrote differs, or that write nothing that does
_NOTED = [CONTROL_NUMBER[name] for name in ("exchange", "mbarrier", "barrier_outcome")]


@cached_by_identity(8)
def operation_rows(program: MicroProgram, code: NDArray[np.uint32]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the rows that each operation on lanes of `code`, the program or a slice of it, reads or writes and that
    may differ by block, as the compiled code reads them; and what is known of each row when a block begins.

    The first is uint16 [micro-operations, words.OPERATION_ROWS]: how many there are, then their numbers. The second is
    uint8 [rows]: words.OFTEN of those that others write, as loads, of which it is not noted whether they differ.
    """
    steps = [step_of(row, number, 0) for number, row in enumerate(code.tolist())]
    by_lanes = code[:, micro.OP] < len(load())
    noted = by_lanes | np.isin(code[:, micro.OP], _NOTED)
    sink = sum(1 << row for row in sink_of(program))
    often = differ = 0
    for step, is_noted in zip(steps, noted.tolist(), strict=True):
        differ |= step.writes
        often |= 0 if is_noted else step.writes
    differ = (differ | sum(1 << row for row in set(program.specials.values()))) & ~sink
    table = np.zeros((len(code), words.OPERATION_ROWS), np.uint16)
    for row, step, by_lane in zip(table, steps, by_lanes.tolist(), strict=True):
        if by_lane:
            rows = _numbers((step.reads | step.writes | step.unguarded) & differ)
            row[: len(rows) + 1] = len(rows), *rows
    known = np.zeros(program.rows, np.uint8)
    known[_numbers(often)] = words.OFTEN
    return table, known


def _numbers(rows: int) -> list[int]:
    """Return the rows of a set that is given as the bits of a number."""
    return [row for row in range(rows.bit_length()) if rows >> row & 1]
