"""Accesses of a warp drawn lane by lane."""

from __future__ import annotations

from dataclasses import replace

from gemmsim.analysis.accesses.types import AccessSample, ArrayArgument, WarpAccess
from gemmsim.report.access_drawing import WIDTH, draw

NONE = (-1,) * 32


def shared(addresses: list[int], wavefront: list[int], width: int, conflicts: int) -> AccessSample:
    bank = tuple(address // 4 % 32 for address in addresses)
    access = WarpAccess(
        3, 1, 0, tuple(addresses), 0, 0, max(wavefront) + 1, conflicts, (), NONE, bank, tuple(wavefront), None, ()
    )
    return AccessSample(7, "LDS", None, "", "shared", "ld", width, 1, access, 1.0, access)


def test_two_lanes_of_one_bank_stand_in_two_rows() -> None:
    """Lane 31 has bank 0 at another word than lane 0: a second wavefront."""
    sample = shared([*range(0, 124, 4), 128], [0] * 31 + [1], 4, 1)
    lines = draw(sample)
    assert lines[0] == "LDS, 32 lanes, warp 1 of block 3: 2 wavefronts, 1 bank conflict"
    assert lines[1] == "   bank  0       4       8       12      16      20      24      28"
    assert lines[2] == "wave  0 |" + "".join(f"{lane:2}" for lane in range(31)) + "..|"
    assert lines[3] == "wave  1 |31" + ".." * 31 + "|"
    assert len(lines) == 5 and max(map(len, lines)) <= WIDTH


def test_a_shared_word_is_marked_and_wide_accesses_fill_several_banks() -> None:
    lines = draw(shared([0] * 32, [0] * 32, 4, 0))
    assert lines[2] == "wave  0 |**" + ".." * 31 + "|"
    quarter = draw(shared([16 * lane for lane in range(32)], [lane // 8 for lane in range(32)], 16, 0))
    assert quarter[2] == "wave  0 |" + "".join(f"{lane:2}" * 4 for lane in range(8)) + "|"
    assert quarter[5] == "wave  3 |" + "".join(f"{lane:2}" * 4 for lane in range(24, 32)) + "|"


def test_many_rows_are_shortened() -> None:
    lines = draw(shared([128 * lane for lane in range(32)], list(range(32)), 4, 31))
    assert lines[0] == "LDS, 32 lanes, warp 1 of block 3: 32 wavefronts, 31 bank conflicts"
    assert lines[-2:] == [
        "... and 21 wavefronts more",
        "cells: the lane served from that bank, ** several lanes, .. none",
    ]
    assert len(lines) == 2 + 11 + 2


def test_sectors_with_the_elements_that_lie_there() -> None:
    """Lanes 0 to 7 read a row's first 8 words, lane 8 is off, the rest read the next row, 256 bytes on."""
    start = 0x7F00_0000_0000
    addresses = [start + 4 * lane for lane in range(8)] + [None] + [start + 256 + 4 * lane for lane in range(8)]
    addresses += [None] * (32 - len(addresses))
    elements = tuple(None if a is None else ((a - start) // 256, (a - start) % 256 // 4) for a in addresses)
    sectors = (start, start + 256)
    sector = tuple(-1 if a is None else int(a >= start + 256) for a in addresses)
    access = WarpAccess(0, 0, 0, tuple(addresses), 2, 2, 1, 0, sectors, sector, NONE, NONE, 1, elements)
    sample = AccessSample(7, "LDG.E", None, "", "global", "ld", 4, 1, access, 1.0, access)
    lines = draw(sample, (ArrayArgument(1, "B", "f32", (64, 64), 4),))
    assert lines == [
        "LDG.E, 16 lanes, warp 0 of block 0: 2 sectors, 2 would do",
        "              lane 0       8       16      24",
        "sector +0x0       |########........................| B[0,0] .. B[0,7]",
        "sector +0x100     |.........########...............| B[1,0] .. B[1,7]",
    ]
    assert draw(sample)[2] == "sector +0x0       |########........................|"  # arrays not known
    one = replace(sample, worst=replace(access, sectors=1))
    assert draw(one)[0].endswith("1 sector, 2 would do") and draw(one, worst=False) == draw(sample)
