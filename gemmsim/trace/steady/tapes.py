"""Keeps what walks through a period asked of the words, to ask it of other words without another walk.

What a walk does depends on the words only by the answers to questions: which rows move, which lanes a predicate holds
for, whether a word wraps around. It notes them on a tape, with the operations that it executes between them. Tiles,
leaders and warps that come to the same loop with other words mostly give the same answers; then the walk would go the
same way, and a compiled loop executes the tape instead (`tape_loop`). Where one answer is another, the walk is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.native.function import NativeFunction
from gemmsim.trace.engine.variants import sources_of
from gemmsim.trace.steady import tape_words
from gemmsim.trace.steady.period import Instructions
from gemmsim.trace.steady.states import States
from gemmsim.trace.steady.tape import Tape

_LOOP = "gemmsim.trace.steady.tape_loop"
_replay = NativeFunction(_LOOP, "replay", sources_of(_LOOP))
_MOST_KEPT = 4  # tapes of the same way
# Rows of all tapes, which are 100 MB. A block that comes to its loop at another instruction in each of its tiles has a
# way for each, and so have all the leaders after it.
_MOST_ROWS = 1 << 21
Way = tuple[Any, ...]  # what leads a walk besides words


@dataclass(frozen=True, eq=False)
class _Kept:
    """The tape of a walk that came to its end.

    noted     what it asked and did, without its rows
    tables    its rows, as the compiled loop takes them: int64 [rows, COLUMNS] of those before each question, and behind
    asked     see `States.words_asked`
    blocks    int64 [warps, words of which it asked]: what was known of them when it began, see `_of_one`; None without
              other blocks
    changing  rows that may be others in other blocks behind the period
    unknown   rows that are not known there
    """

    noted: Tape
    tables: tuple[NDArray[np.int64], ...]
    asked: NDArray[np.bool_]
    blocks: NDArray[np.int64] | None
    changing: frozenset[int]
    unknown: frozenset[int]

    @property
    def rows(self) -> int:
        return sum(map(len, self.tables))


class Tapes:
    """The tapes of a program, by the ways that were walked, the one that was used last at the end."""

    def __init__(self) -> None:
        self._kept: dict[Way, list[_Kept]] = {}
        self._rows = 0  # of all of them

    def keep(self, way: Way, blocks: NDArray[np.int64] | None, states: States) -> None:
        """Keep the tape of a walk that came to its end in `states`, and knew `blocks` when it began."""
        tape, begin, tables = states.tape, 0, []
        for stop in (*(place for place, _ in tape.questions), len(tape.rows)):
            table = np.zeros((stop - begin, tape_words.COLUMNS), np.int64)
            for row, noted in zip(table, tape.rows[begin:stop], strict=True):
                row[: len(noted)] = noted
            tables.append(table)
            begin = stop
        asked = states.words_asked()
        known = None if blocks is None else _of_one(blocks[:, asked])
        ends = frozenset(states.changing), frozenset(states.unknown_rows)
        tape.rows.clear()  # the tables have them
        tape.moves = list(dict.fromkeys(tape.moves))  # an instruction may be executed many times
        kept = self._kept[way] = self._kept.pop(way, [])
        kept.insert(0, _Kept(tape, tuple(tables), asked, known, *ends))
        self._rows += kept[0].rows - sum(one.rows for one in kept[_MOST_KEPT:])
        del kept[_MOST_KEPT:]
        while self._rows > _MOST_ROWS and len(self._kept) > 1:
            self._rows -= sum(one.rows for one in self._kept.pop(next(iter(self._kept))))

    def replay(self, way: Way, states: States, begin: Callable[[], States]) -> tuple[States, _Kept | None]:
        """Return the states behind a period, and the tape that led there; where no tape gives the same answers, those
        with which it begins, and None.

        states  those with which it begins
        begin   makes them again

        Raises NotProvedError where a walk would, as something does not hold for all periods.
        """
        kept = self._kept.pop(way, [])
        if kept:
            self._kept[way] = kept
        for place, one in enumerate(kept):
            numbers = _renamed(one.blocks, None if states.blocks is None else _of_one(states.blocks[:, one.asked]))
            if numbers is None:
                continue
            if _answers_alike(one, states, numbers):
                kept.insert(0, kept.pop(place))
                return states, one
            states = begin()
        return states, None


def _answers_alike(kept: _Kept, states: States, numbers: dict[int, int]) -> bool:
    """Execute a tape; return whether all questions have the answers that they had. `numbers`: see `Question`."""
    words, address, begin = states.words, np.uint64(states.words.ctypes.data), 0
    least = np.array([states.least], np.int64)
    for number, table in enumerate(kept.tables):
        stopped = int(_replay(table, words, address, states.last, least)) if len(table) else 0
        if stopped < len(table):
            if otherwise := kept.noted.otherwise.get(begin + stopped):
                otherwise(states)
            return False
        begin += len(table)
        if number < len(kept.noted.questions) and not kept.noted.questions[number][1](states, numbers):
            return False
    states.least = min(states.least, int(least[0]))
    return True


def _of_one(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what is known of the words of several warps in other blocks; of one of them where it is the same of all.
    What a walk concludes is then the same however many warps there are."""
    return blocks[:1] if (blocks == blocks[0]).all() else blocks


def _renamed(before: NDArray[np.int64] | None, now: NDArray[np.int64] | None) -> dict[int, int] | None:
    """Return for each number by which words differed in other blocks the one by which they do now; None where they do
    not differ alike. What is below 1 is no such number, and must be the same.

    before, now  int64 [warps, words]: what is known of words in other blocks, as in `States.blocks`
    """
    if before is None or now is None:
        return {} if before is now else None
    if len(before) != len(now):
        return None
    some = (before != 0) | (now != 0)
    if not some.any():
        return {}
    pairs = np.unique(before[some] << 32 | now[some] & 0xFFFFFFFF)
    numbers = dict(zip((pairs >> 32).tolist(), pairs.astype(np.int32).tolist(), strict=True))
    if len(numbers) < len(pairs) or len(set(numbers.values())) < len(pairs):
        return None
    return numbers if all(old == new or min(old, new) > 0 for old, new in numbers.items()) else None


def way_of(
    instructions: Sequence[int], path: Any, states: States, changed: Sequence[int], unknown: Sequence[int]
) -> Way:
    """Return what leads a walk that begins in `states`, besides words. It is the same for any number of warps, but that
    some things are followed of one alone.

    changed  rows that may be others in other blocks when it begins
    unknown  rows that are not known
    """
    return (Instructions.of(instructions), tuple(changed), tuple(unknown), path, states.warps > 1, states.moving_rows)
