"""Says which rows of a warp's state may change while a block runs, so that only these are copied and compared.

Of the hundreds of rows that a warp has, most hold constants, or what only the results of the program need. A slice of
the program, as leaders execute it, writes some tens of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.micro import OP
from gemmsim.trace.slicing.dataflow import rows_of, step_of

_NOTHING = [CONTROL_NUMBER[name] for name in ("nop", "idle")]


class Rows:
    """Some rows of a warp's state. The words of these rows alone are in the order of all words.

    begins  int64 [rows] the words at which they begin, among those of all rows; ascending
    place   {where a row begins among all words: where among those of these rows}
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = np.array(sorted(numbers), np.int64)
        self.begins = self._numbers * WARP_LANES
        self.place = {at: WARP_LANES * number for number, at in enumerate(self.begins.tolist())}
        self._word = (self.begins[:, None] + np.arange(WARP_LANES)).reshape(-1)

    def of(self, words: NDArray) -> NDArray:
        """Return a copy of the words of these rows: [warps, words of all rows] become [warps, words of these]."""
        rows = words.reshape(len(words), -1, WARP_LANES)
        # Several times as fast as indexing: all of them exist, so that nothing is clipped.
        return rows.take(self._numbers, axis=1, mode="clip").reshape(len(words), -1)

    def put(self, some: NDArray, words: NDArray) -> None:
        """Write words of these rows, as `of` returns them, to where they are among those of all rows."""
        words.reshape(len(words), -1, WARP_LANES)[:, self._numbers] = some.reshape(len(words), -1, WARP_LANES)

    def with_any(self, words: NDArray) -> set[int]:
        """Return where those of these rows begin, among all, of which a warp has any word but 0. `words` is as `of`
        returns it."""
        some = (words != 0).any(axis=0).reshape(-1, WARP_LANES).any(axis=1)  # quicker of truth values
        return set(self.begins[some].tolist())

    def beside(self, begin: int, end: int) -> NDArray[np.bool_]:
        """Return which words of these rows are not among those from `begin` to `end` of all rows: bool [words]."""
        return (self._word < begin) | (self._word >= end)

    def places(self, of_these: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Return where words are among all of some warps, `length` each, that have these places among those of these
        rows."""
        warp, word = np.divmod(of_these, max(len(self._numbers), 1) * WARP_LANES)
        return warp * length + self.begins[word // WARP_LANES] + word % WARP_LANES


def changing_rows(program: MicroProgram, code: NDArray[np.uint32]) -> Rows:
    """Return the rows that may change while a block executes `code`, the program or a slice of it, and those in which
    blocks may differ when they begin: they say which block it is.

    Rows that decide where paths of a warp meet are changed by control flow, which the dataflow of slices leaves out.
    """
    warp_rows = sum(rows_of(rows.start, len(rows)) for rows in program.warp_rows)
    written = rows_of(program.path_rows.start, len(program.path_rows))
    for number in np.flatnonzero(~np.isin(code[:, OP], _NOTHING)).tolist():
        written |= step_of(code[number].tolist(), number, warp_rows).writes
    written |= sum(1 << row for row in set(program.specials.values()))
    return Rows(row for row in range(written.bit_length()) if written >> row & 1)
