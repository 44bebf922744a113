"""Instruction fetch: two levels of cache, and the next line fetched ahead.

A warp that stays on a line, or goes on to one in the first level, never waits: the buffers between that level and the
scheduler keep up with one instruction a cycle (own microbenchmark, H200: code up to 30 KiB). Other lines come one at a
time. The line behind the one that was fetched last is asked for at once, so straight-line code runs at the rate of the
fetches, and a warp that is slower than they are does not wait.
"""

from __future__ import annotations

from collections import OrderedDict

from gemmsim.gpu.spec import Fetch

INSTRUCTION_BYTES = 16  # Volta and later


class InstructionCache:
    """Of one SM. Both levels evict the least recently used line."""

    def __init__(self, fetch: Fetch) -> None:
        self.instructions_per_line = fetch.line_bytes // INSTRUCTION_BYTES
        self._near, self._far = fetch.near_line_cycles, fetch.far_line_cycles
        self._most_first = fetch.first_level_bytes // fetch.line_bytes
        self._most_second = fetch.second_level_bytes // fetch.line_bytes
        self._first: OrderedDict[int, float] = OrderedDict()  # line -> cycle at which it is there
        self._second: OrderedDict[int, None] = OrderedDict()
        self._free = 0.0  # when the fetch under way ends

    def fetch(self, line: int, now: int) -> float:
        """A warp wants to issue from `line` at cycle `now` at the earliest: the cycle at which it is there."""
        ready = self._first.get(line)
        if ready is None:
            ready = self._load(line, now)
        else:
            self._first.move_to_end(line)
        if line + 1 not in self._first and ready > now - self._near:
            self._load(line + 1, ready)  # fetched ahead while the line before it is new
        return ready

    def _load(self, line: int, asked: float) -> float:
        cycles = self._near
        if line in self._second:
            self._second.move_to_end(line)
        else:
            cycles = self._far
            self._second[line] = None
            if len(self._second) > self._most_second:
                self._second.popitem(last=False)
        begin = self._free if self._free > asked else asked
        self._free = ready = begin + cycles
        self._first[line] = ready
        if len(self._first) > self._most_first:
            self._first.popitem(last=False)
        return ready
