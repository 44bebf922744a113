"""Arrays that repeat: parts of them are those of a plain copy, and take the memory of one period at most."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gemmsim.support.periodic_array import PERIOD_BYTES, elements, forget_pages, periodic_array, sparse_zeros

COLUMNS = 5003  # no divisor of a period


def made() -> np.ndarray:
    period = np.arange(PERIOD_BYTES // 4, dtype=np.float32)
    return periodic_array(period, (2000, COLUMNS))


def touched_bytes(array: np.ndarray) -> int:
    """The pages of an array that this process has mapped, by /proc/self/smaps."""
    begin, total, inside = array.ctypes.data, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = begin <= int(found[1], 16) < begin + array.nbytes
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.parametrize("part", [(np.array([3, 1999]), slice(None)), (slice(None), np.array([7, 5002]))])
def test_parts_are_those_of_a_plain_copy(part: tuple[object, ...]) -> None:
    array = made()
    plain = (np.arange(2000)[:, None] * COLUMNS + np.arange(COLUMNS)) % (PERIOD_BYTES // 4)
    assert np.array_equal(elements(array, array, part), plain[part])
    assert np.array_equal(elements(array, array.T, part[::-1]), plain.T[part[::-1]])
    assert np.array_equal(elements(np.array(array), np.array(array), part), plain[part])


def test_a_column_touches_one_period() -> None:
    array = made()
    elements(array, array, (slice(None), np.array([0])))
    assert 0 < touched_bytes(array) <= PERIOD_BYTES
    assert array[:, 0].sum() > 0  # read in place, it touches the others, too
    assert touched_bytes(array) > 4 * PERIOD_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system decides")
def test_zeros_may_be_more_than_the_memory_of_any_machine() -> None:
    """4 TiB, of which two pages are written to."""
    zeros = sparse_zeros(1 << 42)
    zeros[5] = zeros[-1] = 1
    assert (zeros[4], zeros[5], zeros[1 << 41], zeros[-1]) == (0, 1, 0, 1)
    assert len(zeros) == 1 << 42


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere arrays are plain memory")
def test_pages_that_were_read_are_given_back() -> None:
    array = made()
    plain = array.copy()
    assert touched_bytes(array) >= array.nbytes
    forget_pages(array)
    assert touched_bytes(array) == 0
    assert np.array_equal(array, plain)
