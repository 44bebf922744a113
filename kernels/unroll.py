"""Unrolling by hand: numba has no pragma for it, and NVVM leaves loops with many instructions rolled."""

from __future__ import annotations

from typing import Any


def unrolled(step: Any, times: int) -> Any:
    """A device function that calls the device function step(k, tile_a, tile_b, y, x, acc) for `times` values of k.

    They are k, k + 1, ...; times is a power of two: each doubling calls the function before it twice. Imports numba.
    """
    from numba import cuda, uint32

    def doubled(once: Any, by: int) -> Any:
        @cuda.jit(device=True, fastmath=True, forceinline=True)
        def twice(k, tile_a, tile_b, y, x, acc):
            once(k, tile_a, tile_b, y, x, acc)
            once(uint32(k + by), tile_a, tile_b, y, x, acc)

        return twice

    by = 1
    while by < times:
        step, by = doubled(step, by), 2 * by
    return step
