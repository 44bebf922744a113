"""Sectors, lines and bytes of one request, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.memory.requests.coalescer import coalesce

LANES = range(32)


@pytest.mark.parametrize(
    ("addresses", "width", "sectors", "lines", "used_bytes", "ideal"),
    [
        pytest.param([4 * i for i in LANES], 4, 4, 1, 128, 4, id="packed 32-bit: one line"),
        pytest.param([8 * i for i in LANES], 8, 8, 2, 256, 8, id="packed 64-bit: two lines"),
        pytest.param([16 * i for i in LANES], 16, 16, 4, 512, 16, id="packed 128-bit: four lines"),
        pytest.param([0] * 32, 4, 1, 1, 4, 1, id="broadcast"),
        pytest.param([4096 * i for i in LANES], 4, 32, 32, 128, 4, id="a column of a 1024 matrix"),
        pytest.param([4 + 4 * i for i in LANES], 4, 5, 2, 128, 4, id="packed, one word off the line"),
        pytest.param([i // 16 * 4096 + i % 16 * 4 for i in LANES], 4, 4, 2, 128, 4, id="two rows of 16 words"),
        pytest.param(list(LANES), 1, 1, 1, 32, 1, id="packed bytes"),
        pytest.param([32 * i for i in LANES], 4, 32, 8, 128, 4, id="every eighth word"),
        pytest.param([None] * 31 + [128], 16, 1, 1, 16, 1, id="one lane"),
    ],
)
def test_request(
    addresses: list[int | None], width: int, sectors: int, lines: int, used_bytes: int, ideal: int
) -> None:
    offsets = np.array([[a or 0 for a in addresses]], np.int64)
    active = np.array([[a is not None for a in addresses]])
    got = coalesce(offsets, active, np.array([width]))
    assert (got.sectors[0], got.lines[0], got.used_bytes[0], got.ideal_sectors[0]) == (
        sectors,
        lines,
        used_bytes,
        ideal,
    )


def test_sectors_of_several_patterns() -> None:
    offsets = np.array([[64] * 32, [i * 40 // 4 * 4 for i in range(2)] + [0] * 30], np.int64)
    got = coalesce(offsets, np.ones((2, 32), bool), np.array([4, 4]))
    assert got.sector_start.tolist() == [0, 1, 3]
    assert got.sector_offset.tolist() == [2, 0, 1]  # byte 64; bytes 0 and 40
