"""Executes single blocks, or columns of blocks, only to compare what they do, before a `Plan` is made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Sketch

_MOST_COUNTERS = 1 << 22  # up to so many pairs of instruction and shape, accesses are counted in a dense table
_WORTH_A_THREAD = 1_000_000  # warp instructions of a probe from which on a thread pays off: some 30 ms
_MOST_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Probed:
    """What a block or column did: a digest of it, and the number of warp instructions."""

    signature: str
    instructions: int


class Probe:
    """Executes single blocks, or columns of `depth` blocks along z, and remembers what they did."""

    def __init__(self, executor: Executor, depth: int) -> None:
        self.executor, self.depth = executor, depth
        self._known: dict[int, _Probed] = {}

    def _run(self, block: int) -> _Probed:
        if block not in self._known:
            self._known[block] = self._execute(self.executor, block)
        return self._known[block]

    def _execute(self, executor: Executor, block: int) -> _Probed:
        gx, gy, _ = executor.launch.grid
        sketch = executor.probe([block + gx * gy * z for z in range(self.depth)])
        return _Probed(_signature(sketch), int(sketch.executed.sum()))

    def ahead(self, places: Iterable[tuple[int, ...]]) -> None:
        """Execute in parallel the blocks at `places`, which will probably be asked for, where that is worth another
        thread.

        The compiled executor runs without Python's lock. A block that cannot be executed raises its error when it is
        asked for.
        """
        longest = max((probed.instructions for probed in self._known.values()), default=0)
        if self.executor.shadow or longest < _WORTH_A_THREAD:
            return
        from concurrent.futures import ThreadPoolExecutor  # imported here because small launches do without

        from gemmsim.support.processes import available_cpus

        wanted = [
            block for block in dict.fromkeys(self._number(*place) for place in places) if block not in self._known
        ]
        threads = min(available_cpus(), len(wanted), _MOST_THREADS)
        if threads < 2:
            return
        first = self.executor
        others = [Executor(first.program, first.launch, first.budget) for _ in range(threads - 1)]

        def work(number: int) -> None:
            for block in wanted[number::threads]:
                with suppress(GemmsimError):
                    self._known[block] = self._execute([first, *others][number], block)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    def _number(self, x: int, y: int, z: int) -> int:
        gx, gy, _ = self.executor.launch.grid
        return x + gx * (y + gy * z)

    def count(self, x: int, y: int, z: int) -> int:
        """Return the number of warp instructions that the block or column at this place executes."""
        return self._run(self._number(x, y, z)).instructions

    def signature(self, x: int, y: int, z: int) -> str:
        """Return a digest of what the block or column at this place did; blocks that are alike have the same digest."""
        return self.of_block(self._number(x, y, z))

    def of_block(self, block: int) -> str:
        """Return the digest (see `signature`) of the block with this linear id."""
        return self._run(block).signature


def _signature(sketch: Sketch) -> str:
    """Return a digest of what the blocks of a sketch did, with addresses relative to their 128-byte lines."""
    digest = hashlib.sha256()
    digest.update(sketch.executed.tobytes())
    digest.update(sketch.threads_executed.tobytes())
    digest.update(_shapes(sketch).tobytes())
    return digest.hexdigest()


def _shapes(sketch: Sketch) -> np.ndarray:
    """Count the accesses of each instruction by access shape (`Patterns`).

    Returns int64 [3, pairs], sorted, with the rows instruction, shape and count. A shape is named by a hash of its
    content, so that runs can be compared.
    """
    offsets, mask = sketch.patterns.offsets_bytes, sketch.patterns.active_mask
    names = [hashlib.sha256(o.tobytes() + m.tobytes()).digest()[:8] for o, m in zip(offsets, mask, strict=True)]
    name = np.frombuffer(b"".join(names), np.uint64) if names else np.zeros(0, np.uint64)
    key = sketch.record_pc.astype(np.int64) * max(len(name), 1) + sketch.record_pattern
    if sketch.executed.shape[1] * len(name) < _MOST_COUNTERS:
        found = np.bincount(key)
        pairs = np.flatnonzero(found)
        counts = found[pairs]
    else:
        pairs, counts = np.unique(key, return_counts=True)
    rows = np.stack([pairs // max(len(name), 1), name[pairs % max(len(name), 1)].view(np.int64), counts])
    return np.ascontiguousarray(rows[:, np.lexsort(rows[::-1])])
