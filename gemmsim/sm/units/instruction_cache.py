"""Instruction fetch: two levels of cache, and the next lines fetched ahead.

A warp that stays on a line, or goes on to one in the first level, never waits: the buffers between that level and the
scheduler keep up with one instruction a cycle (own microbenchmark, H200: code up to 30 KiB). Other lines come one at a
time. The lines behind one that was just fetched are asked for at once, so straight-line code runs at the rate of the
fetches, and a warp that is slower than they are does not wait; before a jump they come in vain, and take room and time.
Both levels evict the least recently used line of a set.
Line n is in set n modulo the number of sets: on an H200 a loop of a few lines more than a level holds fetches only
lines of the sets that have one too many, and all its lines from one more in each set on
(tests/records/h200_code_loops.json).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.native.records import Ints, Reals, Record
from gemmsim.sm.spec import Spec


class InstructionCache(Record):
    """The instruction cache of an SM.

    lines          lines of the program's code, and of what may be fetched ahead behind them
    stamp          the last stamp that was given; stamps ascend
    first_stamps, second_stamps  [lines] a line's stamp in each level: the larger, the later the line was used there; 0:
                   the level does not hold it
    ready          [lines] cycle at which each line's last fetch brings it to the first level
    free           cycle at which the last fetch ends, and the next can begin
    """

    lines: int
    stamp: int
    first_stamps: Ints
    second_stamps: Ints
    ready: Reals
    free: float


def stamps_of(lines: int, held: int, sets: int, ways: int) -> NDArray[np.int64]:
    """Return the stamps of a level that holds the first `held` lines of the code: int64 [lines]. It holds nothing of a
    set that has not room for all of its lines: those that come last evict the first again.
    """
    line = np.arange(lines)
    fits = np.bincount(line[:held] % sets, minlength=sets) <= ways
    return np.where((line < held) & fits[line % sets], line + 1, 0)


def fetch_line(spec: Spec, cache: InstructionCache, line: int, now: int) -> float:
    """Return the cycle at which `line` is there for a warp that wants to issue from it in cycle `now` or later."""
    if cache.first_stamps[line] == 0:
        ready = _load(spec, cache, line, float(now))
    else:
        ready = cache.ready[line]
        cache.stamp += 1
        cache.first_stamps[line] = cache.stamp
    if ready > now - spec.near_line_cycles:
        for ahead in range(line + 1, line + 1 + spec.ahead_lines):  # fetched ahead while this line is new
            if cache.first_stamps[ahead] == 0:
                _load(spec, cache, ahead, ready)
    return ready


def _load(spec: Spec, cache: InstructionCache, line: int, asked: float) -> float:
    cycles = spec.near_line_cycles
    cache.stamp += 1
    absent = cache.second_stamps[line] == 0
    cache.second_stamps[line] = cache.stamp
    if absent:
        cycles = spec.far_line_cycles
        _make_room(cache.second_stamps, cache.lines, line, spec.second_level_sets, spec.second_level_ways)
    ready = max(cache.free, asked) + cycles
    cache.free = ready
    cache.ready[line] = ready
    cache.first_stamps[line] = cache.stamp
    _make_room(cache.first_stamps, cache.lines, line, spec.first_level_sets, spec.first_level_ways)
    return ready


def _make_room(stamps: Ints, lines: int, line: int, sets: int, ways: int) -> None:
    """Where the set of `line` now holds more lines than it has ways, evict its least recently used line: set its stamp,
    the lowest above 0, to 0.
    """
    held, oldest = 0, line
    for other in range(line % sets, lines, sets):
        if stamps[other] > 0:
            held += 1
            if stamps[other] < stamps[oldest]:
                oldest = other
    if held > ways:
        stamps[oldest] = 0
