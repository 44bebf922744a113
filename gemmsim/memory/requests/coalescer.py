"""The coalescer: what the lanes of one warp access become on their way into L1.

One executed memory instruction with an active lane is one request. A request touches 32-byte sectors, which are looked
up by 128-byte line (see `tags`). CUDA's accesses are naturally aligned, so the bytes of one lane never cross a sector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECTOR_BYTES = 32
LINE_BYTES = 128
SECTORS_PER_LINE = LINE_BYTES // SECTOR_BYTES
SECTOR_SHIFT = 5
LINE_SHIFT = 7
RUN_SHIFT = 8  # lines of a run of 256 bytes come together (`sm.units.slowest_line`)


@dataclass(frozen=True)
class Coalesced:
    """What a request touches, for each pattern of `trace.types.Patterns`: int64 [patterns] unless said otherwise.

    sectors, lines   distinct 32-byte sectors and 128-byte lines
    runs             distinct runs of 256 bytes, counted from the record's base
    used_bytes       distinct bytes asked for
    ideal_sectors    sectors that those bytes would fill if they were packed
    sector_start     int64 [patterns + 1] pattern p has the sectors sector_offset[sector_start[p]:sector_start[p + 1]]
    sector_offset    int64 [sectors of all patterns] number of each sector, counted from that of the record's base,
                     ascending within a pattern
    sector_whole     bool [sectors of all patterns] whether all bytes of the sector are asked for
    """

    sectors: NDArray[np.int64]
    lines: NDArray[np.int64]
    runs: NDArray[np.int64]
    used_bytes: NDArray[np.int64]
    ideal_sectors: NDArray[np.int64]
    sector_start: NDArray[np.int64]
    sector_offset: NDArray[np.int64]
    sector_whole: NDArray[np.bool_]


def coalesce(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: NDArray[np.int64]) -> Coalesced:
    """Find the sectors and lines that requests touch, each request with a pattern of its own.

    offsets_bytes  int64 [n, 32] as in `trace.types.Patterns`
    active         bool [n, 32]; at least one lane of each request is active
    width_bytes    int64 [n] bytes a lane
    """
    # An inactive lane repeats the lowest active one: it adds nothing that is distinct.
    lowest = np.where(active, offsets_bytes, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    offsets = np.sort(np.where(active, offsets_bytes, lowest), axis=1)
    sector = offsets >> SECTOR_SHIFT
    new_sector = _starts(sector)
    sectors = new_sector.sum(axis=1)
    new_offset = _starts(offsets)
    used_bytes = new_offset.sum(axis=1) * width_bytes
    # This holds because accesses are aligned: no lane's bytes lie in two sectors.
    used_of_sector = np.bincount(np.cumsum(new_sector) - 1, (new_offset * width_bytes[:, None]).reshape(-1))
    return Coalesced(
        sectors=sectors,
        lines=_starts(offsets >> LINE_SHIFT).sum(axis=1),
        runs=_starts(offsets >> RUN_SHIFT).sum(axis=1),
        used_bytes=used_bytes,
        ideal_sectors=-(-used_bytes // SECTOR_BYTES),
        sector_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(sectors)]),
        sector_offset=sector[new_sector],
        sector_whole=used_of_sector >= SECTOR_BYTES,
    )


def _starts(ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it in its row: bool, of the shape of `ascending`."""
    first = np.ones(ascending.shape, bool)
    first[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    return first
