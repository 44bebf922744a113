"""The words of warps in several periods of a loop at once, and what is known of them.

Warps that execute the same are followed together: what is asked of one is asked of all, and costs little more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.lower.context import ALL
from gemmsim.trace.steady import tape_words
from gemmsim.trace.steady.lengths import MOST_PERIODS
from gemmsim.trace.steady.other_blocks import CHANGES, SAME_IN_BLOCKS, UNKNOWN, results_in_blocks
from gemmsim.trace.steady.rows import Rows
from gemmsim.trace.steady.tape import Tape

# What executes an operation on lanes: (its row in the code, a warp's rows, mask)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
Function = Callable[[int, int, int], None]
Bounds = Callable[[int], tuple[int, int] | None]
_LANES = np.arange(WARP_LANES, dtype=np.uint32)


class NotProvedError(Exception):
    """The period is not proved to come again.

    periods  how often it may still come, where that is known
    factor   so many periods are to be taken for one, which may be proved to come again; 1 where that is not known
    """

    def __init__(self, why: str, periods: int = 0, factor: int = 1) -> None:
        super().__init__(why)
        self.periods, self.factor = periods, factor


class States:
    """The words of warps in period 0, in period 1 and in period `last`; uint32 [3, warps, words].

    blocks   int64 [warps, words of rows that may change]: for each word what is known of it in other blocks, see
             `other_blocks`; None: nothing is asked
    bounds   returns of a number in `blocks` the least and the greatest difference; None where these are not known
    bounded  those that it returned
    tape     what was asked of the words
    asked    rows of which it was asked what is known of them in other blocks when the period began
    """

    def __init__(
        self,
        first: NDArray[np.uint32],
        step: NDArray[np.uint32],
        last: int,
        blocks: NDArray[np.int32] | None,
        bounds: Bounds | None = None,
        rows: Rows | None = None,
    ) -> None:
        """`first` has all rows, `step` and `blocks` have those that may change: `rows`, where it is not None."""
        self.bounds, self.tape = bounds, Tape()
        self.asked: set[int] = set()
        self._overwritten: set[int] = set()  # rows of which nothing was asked before
        self.bounded: dict[int, tuple[int, int]] = {}
        first, step = np.atleast_2d(first, step)
        self._rows = rows or Rows(range(first.shape[1] // WARP_LANES))
        self._begin, self._step = self._rows.of(first), step
        self.words = np.empty((3, *first.shape), np.uint32)
        self.words[:] = first
        for state, periods in ((1, 1), (2, last & ALL)):
            self._rows.put(self._begin + step * np.uint32(periods), self.words[state])
        self.warps, self.addresses = len(first), addresses_of(self.words)
        self.least = MOST_PERIODS  # for so many all holds that was looked at
        self.factor = 1  # so many periods may be proved as one, where one alone is not
        self.last, self.blocks = last, None if blocks is None else np.atleast_2d(blocks).astype(np.int64)
        # By the words at which rows begin: those that are not known, that move, and that differ in other blocks.
        self._unknown: set[int] = set()
        self._moving = self._rows.with_any(step)
        self._differing = set[int]() if self.blocks is None else self._rows.with_any(self.blocks)

    def rows(self, at: int) -> NDArray[np.uint32]:
        """The rows of all warps that begin at a word: uint32 [3, warps, lanes]."""
        return self.words[..., at : at + WARP_LANES]

    def may_change(self, places: set[int]) -> None:
        """Note that rows may have become others in other blocks."""
        if self.blocks is not None:
            for at in places:
                self._blocks(at)[:] = CHANGES
            self._differing |= places

    @property
    def changing(self) -> set[int]:
        """The rows that may have become others in other blocks."""
        if self.blocks is None:
            return set()
        return {at for at in self._differing if (self._blocks(at) == CHANGES).any()}

    def forget(self, places: Sequence[int]) -> None:
        """Note that rows hold words that are the same in each period, but not known."""
        self._unknown.update(places)
        self._moving.difference_update(places)
        if self.blocks is not None:
            self._differing.update(places)
            for at in places:
                self._blocks(at)[:] = UNKNOWN

    def remember(self, places: Sequence[int], mask: int, moving: bool) -> None:
        """Note that an operation has written rows."""
        if moving:
            self._moving.update(places)
        elif mask == ALL:
            self._moving.difference_update(places)
        if mask == ALL:
            self._unknown.difference_update(places)

    def unknown(self, at: int) -> bool:
        return at in self._unknown

    def end_with_unknown(self, places: Iterable[int]) -> None:
        """Note which rows are not known behind the period, and no others."""
        self._unknown = set(places)

    @property
    def unknown_rows(self) -> set[int]:
        return self._unknown

    @property
    def moving_rows(self) -> frozenset[int]:
        return frozenset(self._moving)

    def differing(self, places: Sequence[int]) -> list[int]:
        """Return those of some rows that may differ in other blocks."""
        self._ask(places)
        return [at for at in dict.fromkeys(places) if at in self._differing]

    def known_in_blocks(self, at: int, mask: int) -> NDArray[np.int64]:
        """Return what is known in other blocks of the row that begins at a word: int64 [warps, lanes of `mask`]."""
        return self._blocks(at)[:, lanes_of(mask)]

    def any_unknown(self, places: Sequence[int]) -> bool:
        return not self._unknown.isdisjoint(places)

    def any_moves(self, places: Sequence[int]) -> bool:
        """Whether any of some rows may move."""
        return not self._moving.isdisjoint(places)

    def moves(self, at: int, mask: int) -> bool:
        if at not in self._moving:
            return False
        zero, one, last = self.rows(at)
        found = bool(((zero != one) | (zero != last))[:, lanes_of(mask)].any())
        self.tape.note(tape_words.MOVES, at, mask, found)
        return found

    def truth(self, at: int, flip: int, mask: int) -> int:
        """Return the mask of the lanes for which a predicate holds. It must hold for the same ones in each period, and
        in each warp."""
        if self.unknown(at):
            raise NotProvedError("a condition is not known")
        self._decide(at, lanes_of(mask))
        rows = self.rows(at)[: 3 if at in self._moving else 1]
        found = _masks((rows ^ np.uint32(flip)) >= np.uint32(1 << 31)) & np.uint32(mask)
        if (found != found[0]).any():
            raise NotProvedError("a condition changes")
        self.tape.note(tape_words.HOLDS, at, mask, flip, self.of_all(found[0]))
        return int(found[0, 0])

    def of_all(self, found: NDArray[np.uint32]) -> int:
        """Return what was found for each warp, which must be the same for all."""
        if (found != found[0]).any():
            raise NotProvedError("warps go on differently")
        return int(found[0])

    def constant(self, at: int, mask: int, decides: bool) -> None:
        """Raise NotProvedError where a row moves; `decides` says whether it must not in other blocks, either."""
        if self.moves(at, mask):
            raise NotProvedError("an operand moves")
        if decides:
            self._decide(at, lanes_of(mask))

    def set_true(self, at: int, mask: int) -> None:
        """Let a predicate hold for the threads of `mask` in each period, and in all blocks."""
        self.fill(at, mask)
        self.tape.ask(lambda states, _: states.fill(at, mask))
        self.remember([at], mask, False)
        if self.blocks is not None:
            self._blocks(at)[:, lanes_of(mask)] = SAME_IN_BLOCKS

    def fill(self, at: int, mask: int) -> bool:
        """Set all bits of a row's words; returns True."""
        self.rows(at)[..., lanes_of(mask)] = ALL
        return True

    def same_everywhere(self, at: int, mask: int) -> bool:
        """Whether the words of a row are the same in all blocks."""
        self._ask([at])
        if self.blocks is None or at not in self._differing:
            return True
        return bool((self._blocks(at)[:, lanes_of(mask)] == SAME_IN_BLOCKS).all())

    def exchange_blocks(self, sources: Sequence[int], results: Sequence[int], mask: int, lane: int | None) -> None:
        """Set what is known in other blocks of the results of an exchange: what is known of the one lane that all get,
        or nothing where blocks differ."""
        if self.blocks is None:
            return
        self._ask(sources)
        found = np.full(self.warps, SAME_IN_BLOCKS)
        if lane is not None:
            found = self._blocks(sources[0])[:, lane].copy()
        elif not self._differing.isdisjoint(sources):
            found[:] = UNKNOWN
        self._differing.update(results)
        for at in results:
            self._blocks(at)[:, lanes_of(mask)] = found[:, None]

    def check_round(self, unread: slice) -> None:
        """Raise NotProvedError where the words behind a period are not those with which the next one begins.

        unread  words that are written before they are read
        """
        compared = self._rows.beside(unread.start, unread.stop)
        if self._unknown:  # of what is not known, only what moves is compared
            known = np.repeat([at not in self._unknown for at in self._rows.place], WARP_LANES)
            compared = compared & (known | (self._step != 0))
        expected = self._begin
        for state in self.words[:2]:
            expected = expected + self._step
            if ((self._rows.of(state) != expected) & compared).any():
                raise NotProvedError("registers move otherwise from here on")

    def stride(self, at: int, mask: int) -> int:
        """Return the bytes by which the address in two rows moves in a period, for all lanes and warps alike."""
        if self.unknown(at) or self.unknown(at + WARP_LANES):
            raise NotProvedError("an address is not known")
        if at not in self._moving and at + WARP_LANES not in self._moving:
            return 0
        lanes = lanes_of(mask)
        low, high = (self.rows(place)[..., lanes].astype(np.int64) for place in (at, at + WARP_LANES))
        address = low + (high << 32)
        moved = address[1] - address[0]
        if (moved != moved[0, 0]).any() or (address[2] - address[0] != moved * self.last).any():
            raise NotProvedError("addresses move unevenly")
        self.tape.note(tape_words.STRIDE, at, mask, int(moved[0, 0]))
        return int(moved[0, 0])

    def limit(self, periods: int, why: str, factor: int = 1) -> None:
        """Note that something holds for so many periods; raise NotProvedError where these are too few."""
        self.least = min(self.least, periods)
        if periods < self.last:
            raise NotProvedError(why, max(0, periods), factor)

    def check_range(self, at: int, mask: int, masks: tuple[int, int], signed: bool, bits: int) -> None:
        """Raise NotProvedError, with the periods that are left, where a word that moves leaves its range."""
        keep, flip = masks
        if keep != ALL or flip not in (0, ALL):
            raise NotProvedError("a word that moves is changed bit by bit")
        # Of fewer bits, what is shifted to the left by the others must not wrap around.
        left = np.uint32(32 - min(bits, 32))
        self.tape.note(
            *(tape_words.RANGE, at, mask, flip, signed, min(bits, 32)),
            otherwise=lambda states: states.check_range(at, mask, masks, signed, bits),
        )
        zero, one = (self.rows(at)[:2, :, lanes_of(mask)] ^ np.uint32(flip)) << left
        step = (one - zero).view(np.int32).astype(np.int64)
        value = zero.view(np.int32).astype(np.int64) if signed else zero.astype(np.int64)
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, ALL)
        by = int(step.flat[0])
        if by and (step == by).all():  # as lanes do mostly
            room = (high - int(value.max())) // by if by > 0 else (int(value.min()) - low) // -by
        else:
            value, step = value[step != 0], step[step != 0]
            rooms = np.where(step > 0, high - value, value - low) // np.maximum(np.abs(step), 1)
            room = int(rooms.min(initial=MOST_PERIODS))
        self.limit(room, "a word wraps around")

    def follow_blocks(
        self, sources: list[int], results: list[int], mask: int, changes: bool, name: str, plain: tuple[bool, ...] = ()
    ) -> None:
        """Set what is known of results in other blocks. `results_in_blocks` describes the other parameters."""
        if self.blocks is None:
            return
        lanes = lanes_of(mask)
        self._ask(sources)
        if mask == ALL:
            self._overwritten.update(results)
        if self._differing.isdisjoint(sources):
            for at in self._differing.intersection(results):
                self._blocks(at)[:, lanes] = SAME_IN_BLOCKS
                if mask == ALL:
                    self._differing.discard(at)
            return
        self._differing.update(results)
        known = np.stack([self._blocks(at) for at in sources])
        compares = name.startswith("setp_")
        if compares and any(self.moves(at, mask) for at in sources[:2]):
            a, b = known[0][:, lanes], known[1][:, lanes]
            if not ((a == b) & (a >= 0)).all() or (known[2:, :, lanes] != SAME_IN_BLOCKS).any():
                raise NotProvedError("other blocks may compare otherwise")
            found = np.zeros_like(known[0])
        elif compares and (known == CHANGES)[..., lanes].any():
            raise NotProvedError("other blocks may come to compare otherwise")
        else:
            found = results_in_blocks(known, changes, name, plain)
        for at in results:
            self._blocks(at)[:, lanes] = found[:, lanes]

    def _blocks(self, at: int) -> NDArray[np.int64]:
        """What is known in other blocks of the rows that begin at a word: int64 [warps, lanes]."""
        assert self.blocks is not None
        place = self._rows.place.get(at)
        if place is None:  # what never changes differs in no block
            return np.full((self.warps, WARP_LANES), SAME_IN_BLOCKS, np.int64)
        return self.blocks[:, place : place + WARP_LANES]

    def words_asked(self) -> NDArray[np.bool_]:
        """Return which columns of `blocks` are of rows in `asked`: bool [words]."""
        return np.repeat([at in self.asked for at in self._rows.place], WARP_LANES)

    def _ask(self, places: Iterable[int]) -> None:
        self.asked.update(at for at in places if at not in self._overwritten)

    def _decide(self, at: int, lanes: NDArray[np.bool_]) -> None:
        self._ask([at])
        if self.blocks is None or at not in self._differing:
            return
        if (self._blocks(at) == CHANGES)[:, lanes].any():
            raise NotProvedError("other blocks may come to decide otherwise")


def addresses_of(words: NDArray[np.uint32]) -> list[int]:
    """Return where the words of each warp are, in the order of `words` [..., words of a warp]."""
    first = words.ctypes.data
    return list(range(first, first + words.nbytes, words.strides[-2]))


@cache
def lanes_of(mask: int) -> NDArray[np.bool_]:
    return (np.uint32(mask) >> _LANES) & 1 == 1


def _masks(lanes: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the last axis, lanes, as masks."""
    return np.packbits(lanes, axis=-1, bitorder="little").view(np.uint32)[..., 0]
