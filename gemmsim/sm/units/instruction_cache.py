"""Instruction fetch: two levels of cache, and the next line fetched ahead.

A warp that stays on a line, or goes on to one in the first level, never waits: the buffers between that level and the
scheduler keep up with one instruction a cycle (own microbenchmark, H200: code up to 30 KiB). Other lines come one at a
time. The line behind the one that was fetched last is asked for at once, so straight-line code runs at the rate of the
fetches, and a warp that is slower than they are does not wait. Both levels evict the least recently used line.
"""

from __future__ import annotations

from gemmsim.native.records import Ints, Reals, Record
from gemmsim.sm.spec import Spec


class InstructionCache(Record):
    """The instruction cache of an SM.

    lines          lines of the program's code, and at least one more, for what is fetched ahead
    stamp          the last stamp that was given; stamps ascend
    first_lines, second_lines  how many lines each level holds now
    first_stamps, second_stamps  [lines] a line's stamp in each level: the larger, the later the line was used there; 0:
                   the level does not hold it
    ready          [lines] cycle at which each line's last fetch brings it to the first level
    free           cycle at which the last fetch ends, and the next can begin
    """

    lines: int
    stamp: int
    first_lines: int
    second_lines: int
    first_stamps: Ints
    second_stamps: Ints
    ready: Reals
    free: float


def fetch_line(spec: Spec, cache: InstructionCache, line: int, now: int) -> float:
    """Return the cycle at which `line` is there for a warp that wants to issue from it in cycle `now` or later."""
    if cache.first_stamps[line] == 0:
        ready = _load(spec, cache, line, float(now))
    else:
        ready = cache.ready[line]
        cache.stamp += 1
        cache.first_stamps[line] = cache.stamp
    if cache.first_stamps[line + 1] == 0 and ready > now - spec.near_line_cycles:
        _load(spec, cache, line + 1, ready)  # fetched ahead while the line before it is new
    return ready


def _load(spec: Spec, cache: InstructionCache, line: int, asked: float) -> float:
    cycles = spec.near_line_cycles
    cache.stamp += 1
    absent = cache.second_stamps[line] == 0
    cache.second_stamps[line] = cache.stamp
    if absent:
        cycles = spec.far_line_cycles
        cache.second_lines += 1
        if cache.second_lines > spec.second_level_lines:
            _evict(cache.second_stamps, cache.lines)
            cache.second_lines -= 1
    ready = max(cache.free, asked) + cycles
    cache.free = ready
    cache.ready[line] = ready
    cache.first_stamps[line] = cache.stamp
    cache.first_lines += 1
    if cache.first_lines > spec.first_level_lines:
        _evict(cache.first_stamps, cache.lines)
        cache.first_lines -= 1
    return ready


def _evict(stamps: Ints, lines: int) -> None:
    """Evict the least recently used of the lines that one level holds: set its stamp, the lowest above 0, to 0."""
    oldest = -1
    for line in range(lines):
        if stamps[line] > 0 and (oldest < 0 or stamps[line] < stamps[oldest]):
            oldest = line
    stamps[oldest] = 0
