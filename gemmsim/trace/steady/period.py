"""Describes a period of a block's instruction stream, of which more may follow that are like it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.steady.paths import Path, path_of


@dataclass(frozen=True)
class Period:
    """A period that has just been executed.

    stream     int64 [instructions], each with its warp above bit 32
    warps      the warps that may execute it
    registers  uint32 [warps, words] of these warps, behind it
    step       uint32 [warps, words] by how much they move in a period
    """

    stream: NDArray[np.int64]
    warps: range
    registers: NDArray[np.uint32]
    step: NDArray[np.uint32]

    @property
    def rows(self) -> slice:
        """Where the warps are among all warps of the block."""
        return slice(self.warps.start, self.warps.stop)

    def alike(self, states: NDArray[np.int64]) -> Iterator[tuple[list[int], list[int], Path | None]]:
        """Yield warps that execute the same instructions with the same threads while their registers move alike:
        their places in `registers`, the instructions, and the path, None where one has no single one.

        states  int64 [warps of the block, words.WARP_WORDS]
        """
        found: dict[tuple[bytes, bytes, Path | None], list[int]] = {}
        of_warp, pcs = self.stream >> 32, self.stream & 0xFFFFFFFF
        for place, warp in enumerate(self.warps):
            mine = pcs[of_warp == warp]
            if len(mine):
                key = mine.tobytes(), self.step[place].tobytes(), path_of(states[warp])
                found.setdefault(key, []).append(place)
        for (instructions, _, path), places in found.items():
            yield places, np.frombuffer(instructions, np.int64).tolist(), path
