"""Sorts and finds distinct rows of integer tables, several times as fast as `np.lexsort`.

A table is given as its columns, one array [n] each; row i has element i of every column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def order_by(*columns: NDArray) -> NDArray[np.int64]:
    """Return indices that sort the rows by the first column, then by the next, and so on; equal rows keep their order.

    Each column is integers [n]. Sorting is fast where a row and its index can be packed into one number of 63 bits.
    """
    size = len(columns[0])
    if len(columns) == 1 and size and int(columns[0].max()) - (low := int(columns[0].min())) < 1 << 16:
        # Small numbers are sorted twice as fast.
        return np.argsort((columns[0].astype(np.int64) - low).astype(np.uint16), kind="stable")
    packed = _packed(*columns, np.arange(size))
    if packed is None:
        return np.lexsort(columns[::-1])
    packed[0].sort()
    return _divided(packed[0], max(size, 1))[1]


def new_rows(*columns: NDArray) -> NDArray[np.bool_]:
    """Return whether each row differs from the row before it: bool [n], for columns [n]; True for the first row."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return new


def distinct(*columns: NDArray) -> list[NDArray[np.int64]]:
    """Return the distinct rows, in ascending order: for each column of integers [n], an int64 array [distinct rows]."""
    return counted(*columns)[0]


def counted(*columns: NDArray) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the distinct rows as `distinct` does, and how often each is there, int64 [distinct rows]."""
    packed = _packed(*columns)
    if packed is None:
        rows = sorted_rows(*columns)
        begins = np.flatnonzero(new_rows(*rows))
        found = [column[begins] for column in rows]
    else:
        key, spans = packed
        key.sort()
        begins = np.flatnonzero(new_rows(key))
        found = _unpacked(key[begins], spans, columns)  # the few that are distinct
    return found, np.diff(begins, append=len(columns[0]))


def numbered(*columns: NDArray) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the distinct rows as `distinct` does, and which of them each row is, int64 [n]."""
    packed = _packed(*columns)
    if packed is None:
        rows, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return list(rows), number.reshape(-1)
    key, number = np.unique(packed[0], return_inverse=True)
    return _unpacked(key, packed[1], columns), number


def sorted_rows(*columns: NDArray) -> list[NDArray[np.int64]]:
    """Return the rows in ascending order: for each column of integers [n], an int64 array [n].

    Where a row can be packed into one number, this is several times as fast as taking the rows in the order that
    `order_by` returns.
    """
    packed = _packed(*columns)
    if packed is None:
        order = np.lexsort(columns[::-1])
        return [column[order].astype(np.int64) for column in columns]
    key, spans = packed
    key.sort()
    return _unpacked(key, spans, columns)


def _packed(*columns: NDArray) -> tuple[NDArray[np.int64], list[int]] | None:
    """Pack each row into one number, and return (keys, spans).

    keys   the numbers, int64 [n]; in ascending order of their keys, the rows are sorted
    spans  for each column, its greatest value less its least, plus 1

    The result is None where the keys would take more than 63 bits.
    """
    key, room, spans = np.zeros(len(columns[0]), np.int64), 1, []
    for column in columns:
        low = _least(column)
        spans.append(int(column.max()) - low + 1 if len(column) else 1)
        room *= spans[-1]
        if room >= 1 << 63:
            return None
        key *= spans[-1]
        key += column.astype(np.int64, copy=False)
        key -= low
    return key, spans


def _unpacked(key: NDArray[np.int64], spans: list[int], columns: Sequence[NDArray]) -> list[NDArray[np.int64]]:
    """Return the columns of rows of which `_packed` has made keys and spans; `columns`: those of which it did."""
    found = []
    for column, span in zip(columns[:0:-1], spans[:0:-1], strict=True):
        key, rest = _divided(key, span)
        rest += _least(column)
        found.append(rest)
    key += _least(columns[0])
    return [key, *found[::-1]]


def _least(column: NDArray) -> int:
    return int(column.min()) if len(column) else 0


def _divided(numbers: NDArray[np.int64], by: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return quotients and remainders of numbers that are not negative. NumPy divides several times as fast as it takes
    remainders."""
    quotient = numbers // by
    rest = quotient * by
    return quotient, np.subtract(numbers, rest, out=rest)


def distinct_rows(rows: NDArray) -> NDArray:
    """Return the distinct rows of `rows` [n, columns], sorted.

    NumPy is asked for indices too, because then it does not check whether `rows` is a masked array. Importing masked
    arrays takes as long as the whole cache model of a small launch.
    """
    return np.unique(rows, axis=0, return_index=True)[0]
