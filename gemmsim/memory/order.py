"""Sorting by several columns of whole numbers, several times as fast as `np.lexsort`; and different rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_by(*columns: NDArray) -> NDArray[np.int64]:
    """Indices that sort by the first column, then by the next; equal ones keep their order. Columns of integers [n].

    One number a row, its index behind it, is sorted where that fits 63 bits.
    """
    size = len(columns[0])
    key, room = np.zeros(size, np.int64), size
    for column in columns if size else ():
        low = int(column.min())
        span = int(column.max()) - low + 1
        room *= span
        if room >= 1 << 63:
            return np.lexsort(columns[::-1])
        key = key * span + (column.astype(np.int64) - low)
    return np.sort(key * size + np.arange(size)) % max(size, 1)


def distinct_rows(rows: NDArray) -> NDArray:
    """Those that differ, [n, columns], sorted.

    Asked for indices too, NumPy does not look whether `rows` is a masked array: importing what those are takes as long
    as a small launch's whole cache model.
    """
    return np.unique(rows, axis=0, return_index=True)[0]
