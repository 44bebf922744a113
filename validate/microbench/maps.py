"""Makes lane maps, which say which bytes the 32 lanes of a shared-memory access address.

A lane's address is always a multiple of the access's size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES

REGION_BYTES = 16 << 10  # all offsets are below this power of two


def lane_maps(size_bytes: int) -> dict[str, NDArray[np.int64]]:
    """Return lane maps by name, each with the byte offset of every lane; `size_bytes`, of an access, is 4, 8 or 16."""
    lane = np.arange(WARP_LANES)
    elements = REGION_BYTES // size_bytes
    maps = {"broadcast": 0 * lane, "pairs": lane >> 1, "pairs_of_2": (lane & 1) | (lane >> 2 << 1), "fours": lane >> 2}
    maps |= {"halves": lane & 15, "reversed": 31 - lane, "one_apart": lane ^ 1}
    maps |= {f"stride_{stride}": stride * lane for stride in (*range(1, 34),)}
    random = np.random.default_rng(7)
    maps |= {f"random_{i}": random.integers(0, elements, WARP_LANES) for i in range(4)}
    rows, columns = lane >> 3, lane & 7
    # xor_swizzle and rotated address tiles with rows of 32 elements, whose columns are exclusive-ored with the row or
    # rotated by it. column_of_33 and column_of_36 address a column of a padded tile.
    maps |= {"xor_swizzle": 32 * columns + (columns ^ rows), "rotated": 32 * columns + ((columns + rows) & 31)}
    maps |= {"column_of_33": 33 * lane, "column_of_36": 36 * lane, "quad_rows": 32 * rows + columns}
    return {name: (np.asarray(index) % elements) * size_bytes for name, index in maps.items()}
