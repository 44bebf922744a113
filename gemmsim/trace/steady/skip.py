"""Finds the steady loop of a block while it runs, and lets the block go on many iterations further.

A block that has run for a while is stopped again and again after a period of its instruction stream. Where all that
decides how it goes on is then as it was, but for registers that moved by a constant step, `Walk` proves for how many
periods this stays so. A unit of periods, long enough that its accesses fall into lines as those of the next unit do,
is executed once more and stands for the units behind it: the registers move on by as many steps, and the trace's part
of the unit counts so many times more (`Repeat`).

Warps that run one after the other, because nothing makes them wait, are cut each at the same place of its way. Where
they wait for each other the period is one of the whole block.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import words
from gemmsim.trace.repeats import Repeat
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.again import Again
from gemmsim.trace.steady.deciding import deciding, kept
from gemmsim.trace.steady.followed import Followed
from gemmsim.trace.steady.lengths import MOST_PERIODS, lengths_of, periods_until_all_wrap
from gemmsim.trace.steady.period import Period
from gemmsim.trace.steady.proofs import Proofs
from gemmsim.trace.steady.rows import changing_rows
from gemmsim.trace.steady.running import Executor, Tables
from gemmsim.trace.steady.tiles import Tiles
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.waiting import has_mbarriers

# Warp instructions of a block before its loops are looked at, and of a unit. A block of fewer than CUT_ABOVE, which
# take half a second, is executed in full.
HEAD, UNIT, CUT_ABOVE = 1 << 17, 1 << 16, 2_000_000
AGAIN_ABOVE = 1 << 27  # in a block of more, which takes a second, each loop is cut that is like one that was
_LEAST_ALONE = 1 << 13  # of a warp that runs alone
_MOST_STATES = 24  # periods of the stream after which the registers move evenly, at most
_TRIES, _FAILURES = 256, 6
_MARGIN = 2  # periods behind those that are left out, which are executed
_ALIGNMENTS = (4096, 1024, 128)  # bytes, of which units move addresses by multiples
_LONGEST_UNIT = 4  # times a unit's least length, for more than the least alignment
_LONGEST_TOGETHER = UNIT  # instructions of several periods that are taken for one


@dataclass(frozen=True)
class Cut:
    """Where a block was cut, so that another execution of it can be cut at the same place.

    at              warp instructions that it had executed by then, without those left out
    unit            how many of these, the last ones, came again
    times           how often
    place, word     registers, by their index among those of all warps, and what they held afterwards
    records         how many records of the block there were by then
    period_records  how many of these are of the last period
    moving          int64 [n, 3]: warp, instruction, and bytes by which its accesses move from a unit to the next one
    """

    at: int
    unit: int
    times: int
    place: NDArray[np.int64]
    word: NDArray[np.uint32]
    records: int
    period_records: int
    moving: NDArray[np.int64]


class Skipping:
    """Cuts one block that an executor runs.

    counts  int64 [instructions] each: executions by warps and by threads
    tables  what relates other blocks to this one, or None
    """

    def __init__(
        self,
        executor: Executor,
        code: NDArray[np.uint32],
        counts: tuple[NDArray[np.int64], NDArray[np.int64]],
        tables: Tables | None,
    ) -> None:
        self._executor, self._code, self._counts, self._tables = executor, code, counts, tables
        self._state, self._buffers, self._counters = executor.state, executor.buffers, executor.buffers.counters
        self._issued, self._records = (int(self._counters[n]) for n in (words.ISSUED, words.RECORDS))
        self._segment = int(self._counters[words.SEGMENTS])
        self.warps = executor.launch.warps_per_block
        self.cuts: list[Cut] = []
        self.left_out = 0  # instructions
        # What `stream_of_block` returned last, and how many instructions had been issued then
        self._stream, self._stream_stop = np.zeros(0, np.int64), -1
        self._repeats = False  # whether loops are looked for that are like those that were cut
        known = executor.cutting.proofs
        if code.ctypes.data not in known:
            rows = changing_rows(executor.micro, code)
            known[code.ctypes.data] = Proofs(Walk(executor.micro, code, executor.context, rows))
        self._proofs: Proofs = known[code.ctypes.data]
        self._proofs.begin()
        assert self._proofs.rows is not None
        self._rows = self._proofs.rows
        self._waits = has_mbarriers(executor.micro)

    def record(self, wanted: bool = True) -> None:
        """Let the instruction stream be recorded from now on, or not."""
        self._executor.context[words.STREAM] = wanted

    def registers(self, warps: slice = slice(None)) -> NDArray[np.uint32]:
        """Return what the rows of warps hold now that may change: uint32 [warps, words of `Rows`]."""
        return self._rows.of(self._state.registers[warps])

    @property
    def done(self) -> int:
        return int(self._counters[words.ISSUED]) - self._issued

    def stops(self) -> Iterator[int]:
        """Yield after how many instructions the block is to stop, and cut it where it has stopped."""
        if self._waits:
            yield from Tiles(self, self._proofs).stops()
            return
        alone, next_of_block, failures, tried = max(HEAD // self.warps, _LEAST_ALONE), HEAD, 0, -1
        one_by_one = False  # whether a warp has run alone for long: then the others will, too
        self._executor.context[words.STREAM] = 1
        known = 0  # instructions of a period of the block at which it was cut
        for _ in range(_TRIES):
            if known and self._executor.cutting.again:
                break
            segment, ran = self._alone()
            one_by_one |= ran >= alone
            if segment != tried and ran >= alone:
                warp = int(self._buffers.segment_warp[segment] - self._counters[words.WARP_BASE])
                stream = self._buffers.pc[self._counters[words.ISSUED] - ran : self._counters[words.ISSUED]]
                cut = yield from self.attempt(lengths_of(stream.astype(np.int64)), range(warp, warp + 1))
                tried = tried if cut else segment
            elif self.done >= next_of_block and not one_by_one:
                cut = yield from self.attempt(lengths_of(self.stream_of_block(3 * HEAD)), range(self.warps))
                next_of_block, known = self.done if cut else 2 * self.done, cut or known
            else:
                wait = alone // 2 if segment == tried else alone - ran
                wait = wait if one_by_one else min(wait, next_of_block - self.done)
                yield max(1, wait)
                continue
            failures = 0 if cut else failures + 1
            if failures == _FAILURES:
                break
        if known and not one_by_one:
            yield from self._search_again(known)
        self._executor.context[words.STREAM] = 0
        if self._tables is not None and self._executor.cutting.must and not self.cuts:
            raise Stopped("no iterations can be left out", words.UNRELATED, int(self._tables.blocks[0]))

    def _search_again(self, period: int) -> Iterator[int]:
        """Cut the block wherever a period comes again at which it was cut, as in each tile of a block of many tiles."""
        if not self._executor.cutting.again:
            if self._tables is not None:
                return
            self._executor.context[words.STREAM] = 0
            yield max(1, AGAIN_ABOVE - self.done - self.left_out)
            self._executor.context[words.STREAM] = 1
            self._issued = int(self._counters[words.ISSUED])
        self._repeats = True
        yield from Again(self, self._proofs.again, period).stops()

    def _alone(self) -> tuple[int, int]:
        """Return since which segment one warp has run while the others did not, and how many instructions."""
        ran = self._buffers.segment_warp[self._segment : self._counters[words.SEGMENTS]]
        if not len(ran):
            return self._segment, 0
        others = np.flatnonzero(ran != ran[-1])
        first = self._segment + (int(others[-1]) + 1 if len(others) else 0)
        return first, int(self._counters[words.ISSUED] - self._buffers.segment_start[first])

    def stream_of_block(self, most: int) -> NDArray[np.int64]:
        """Return the last instructions of the block, `most` at most, each with its warp above bit 32."""
        stop, last = int(self._counters[words.ISSUED]), int(self._counters[words.SEGMENTS])
        if stop == self._stream_stop and most <= len(self._stream):
            return self._stream[-most:]
        begin, starts = max(self._issued, stop - most), self._buffers.segment_start[:last]
        first = max(self._segment, int(starts.searchsorted(begin, side="right")) - 1)
        edges = np.empty(last - first + 1, np.int64)
        np.maximum(starts[first:], begin, out=edges[:-1])
        edges[-1] = stop
        warp = self._buffers.segment_warp[first:last].astype(np.int64) - self._counters[words.WARP_BASE]
        stream = (warp << 32).repeat(edges[1:] - edges[:-1])
        stream += self._buffers.pc[begin:stop]
        self._stream, self._stream_stop = stream, stop
        return stream

    def attempt(self, lengths: list[int], warps: range) -> Generator[int, None, int]:
        """Cut the block at a period of one of these lengths; return its length, or 0 where it is not cut."""
        tries = list(lengths)
        for length in tries:
            found = yield from self.states(length, warps)
            if found is None:
                continue
            # Many short units stand for as many places as a long one.
            least = 1 if self._repeats else UNIT // self.warps * len(warps)
            if (yield from self.cut_behind(found, least)):
                return length
            if 1 < self._proofs.factor <= _LONGEST_TOGETHER // len(found.stream):
                tries.append(len(found.stream) * self._proofs.factor)  # a masked counter comes round in so many periods
        return 0

    def cut_behind(self, period: Period, least: int) -> Generator[int, None, bool]:
        """Cut the block behind a period, if it is proved that more are like it; return whether it is cut.

        least  instructions that a unit is to have
        """
        periods, strides = self.proved(period)
        unit = _unit_of(periods, len(period.stream), strides, least)
        return bool(unit) and (yield from self._cut(unit, period, periods))

    def states(self, length: int, warps: range) -> Generator[int, None, Period | None]:
        """Let the block go on by `length` instructions at a time until its registers move evenly; return the period
        after which they do, of one or more of these lengths, or None where they do not."""
        rows = slice(warps.start, warps.stop)
        registers, others = [self.registers(rows)], [kept(self.others())]
        last = self.stream_of_block(length)
        for number in range(1, _MOST_STATES + 1):
            yield length
            if not np.array_equal(self.stream_of_block(length), last):
                return None
            registers.append(self.registers(rows))
            others.append(kept(self.others()))
            for back in range(1, number // 2 + 1):
                step = registers[-1] - registers[-1 - back]
                same = all(np.array_equal(a, b) for a, b in zip(others[-1], others[-1 - back], strict=True))
                if same and np.array_equal(step, registers[-1 - back] - registers[-1 - 2 * back]):
                    return Period(self.stream_of_block(back * length), warps, registers[-1], step)
        return None

    def others(self) -> tuple[NDArray, ...]:
        shadow = None if self._tables is None else self._rows.of(self._tables.shadow)
        return deciding(self._state, self._counters, shadow)

    def proved(self, period: Period) -> tuple[int, set[int]]:
        """Return for how many periods the block goes on like this, and the bytes by which addresses move in each."""
        self._proofs.forget()
        periods, bounds = MOST_PERIODS, None if self._tables is None else self._tables.bounds
        differing = None if self._tables is None else self._rows.of(self._tables.shadow[period.rows])
        for places, instructions, path in period.alike(self._state.warps):
            if path is None:
                return 0, set()
            warps = [period.warps[place] for place in places]
            # Where all warps are alike, the step stays the same object, of which more is known (`cached_by_identity`).
            some = slice(None) if len(places) == len(period.warps) else places
            registers, step = (rows if some is not places else rows[places] for rows in (period.registers, period.step))
            blocks = None if differing is None else differing[some]
            followed = Followed(tuple(warps), registers, step, blocks, self._state.registers)
            most = min(periods, periods_until_all_wrap(step))
            periods = self._proofs.periods(followed, instructions, path, most, bounds)
            if not periods:
                break
        return periods, self._proofs.strides

    def _cut(self, unit: int, period: Period, periods: int) -> Generator[int, None, bool]:
        """Execute a unit of `unit` periods, and leave out as many as may be; return whether any are."""
        rows, length, step = period.rows, len(period.stream), period.step
        others, start = kept(self.others()), self.mark()
        yield (unit - 1) * length
        records = int(self._counters[words.RECORDS])
        yield length
        same = all(np.array_equal(a, b) for a, b in zip(others, self.others(), strict=True))
        same = same and np.array_equal(self.stream_of_block(length), period.stream)
        if not same or not np.array_equal(self.registers(rows), period.registers + step * np.uint32(unit)):
            return False
        times = (periods - unit - _MARGIN) // unit
        moving = _moving(step)
        moved = step.reshape(-1)[moving] * np.uint32(times * unit & 0xFFFFFFFF)
        moving, moved = moving[moved != 0], moved[moved != 0]
        words_of_warp = self._state.registers.shape[1]
        place = self._rows.places(moving, words_of_warp) + rows.start * words_of_warp
        word = self._state.registers.reshape(-1)[place] + moved
        now = int(self._counters[words.RECORDS])
        strides = [(*key, stride * unit) for key, stride in self._proofs.moving.items()]
        of_accesses = np.array(strides, np.int64).reshape(-1, 3)
        counted = now - self._records, now - records
        self.cuts.append(Cut(self.done, unit * length, times, place, word, *counted, of_accesses))
        self.apply(start, self.cuts[-1])
        yield (periods - unit * (times + 1) + _MARGIN) * length  # no more can be left out until something changes
        return True

    def replay(self, cuts: list[Cut], record: bool) -> Iterator[int]:
        """Yield, as `stops` does, where a block is to stop that is to be cut as it was before.

        record  whether its stream is to be recorded to the end
        """
        self._executor.context[words.STREAM] = 1
        for cut in cuts:
            if cut.at - cut.unit > self.done:
                yield cut.at - cut.unit - self.done
            start = self.mark()
            yield cut.unit
            assert self.done == cut.at and int(self._counters[words.RECORDS]) - self._records == cut.records
            self.apply(start, cut)
        self._executor.context[words.STREAM] = record

    def mark(self) -> tuple[int, int, list[NDArray[np.int64]]]:
        """Return where a unit begins: in the records, in the stream, and what was counted by then."""
        counted = [counts.copy() for counts in self._counts]
        if self._tables is not None:
            counted.append(self._tables.threads.copy())
        return int(self._counters[words.RECORDS]), int(self._counters[words.ISSUED]), counted

    def apply(self, start: tuple[int, int, list[NDArray[np.int64]]], cut: Cut) -> None:
        """Let the unit that began at `start` count as often as the cut says, and move the registers on."""
        record, issued, counted = start
        counts = [*self._counts, *(() if self._tables is None else (self._tables.threads,))]
        for now, before in zip(counts, counted, strict=True):
            # Of rows of threads, the last column, THREAD_COUNT, is a count.
            part = now if now.ndim == 1 else now[:, -1]
            part += cut.times * (part - (before if now.ndim == 1 else before[:, -1]))
        self._state.registers.reshape(-1)[cut.place] = cut.word
        self.left_out += cut.times * cut.unit
        stop = int(self._counters[words.RECORDS]), int(self._counters[words.ISSUED])
        moving = cut.moving + np.array((self._counters[words.WARP_BASE], 0, 0))
        self._buffers.repeats.append(Repeat((record, stop[0]), (issued, stop[1]), cut.times, moving))


@cached_by_identity(2)  # tiles move as the one before
def _moving(step: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the places of the words that move, among those of all rows."""
    return np.flatnonzero(step.reshape(-1) != 0)  # far quicker of truth values than of words


def _unit_of(periods: int, period: int, strides: set[int], least: int) -> int:
    """Return how many periods a unit has, a power of two; 0 where there are too few periods to leave some out.

    least  instructions that it is to have
    """
    for alignment in _ALIGNMENTS:
        unit = 1
        while unit * period < least or any(unit * stride % alignment for stride in strides):
            unit *= 2
        if periods >= 2 * unit + _MARGIN and (unit * period <= _LONGEST_UNIT * least or alignment == _ALIGNMENTS[-1]):
            return unit
    return 0
