"""Tensor maps of a launch and the banks of their tiles, against where NumPy's twin of TMA puts the pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_factory import evidence
from tile_twin import pieces

from gemmsim.analysis.accesses.tile_maps import tile_maps
from gemmsim.launch.tensor_maps import MAP_BYTES, Tile, encoded
from gemmsim.trace.types import Address, Argument, Launch, Packed

ARRAY = Argument("f16", (256, 512), 0.0, "A")
COPIES = evidence(code=(("UTMALDG.2D", 1, 1.0), ("EXIT", 2, 1.0)), rows=()).program


def launch(*parameters: int | Packed) -> Launch:
    return Launch((1, 1, 1), (32, 1, 1), (ARRAY,), parameters=(0, *parameters))


def packed(tile: Tile, before: int = 0) -> Packed:
    return Packed(bytes(before) + encoded(tile, ARRAY, 0, "A"), (Address(before, 0),))


@pytest.mark.parametrize(("swizzle", "columns"), [("128B", 64), ("64B", 32), ("32B", 16), ("none", 64), ("none", 8)])
def test_pieces_lie_where_tma_puts_them(swizzle: str, columns: int) -> None:
    [found] = tile_maps(COPIES, launch(packed(Tile((64, columns), swizzle))))
    in_row = 2 * columns // 16
    assert (found.array, found.dtype, found.box, found.swizzle) == (0, "f16", (64, columns), swizzle)
    assert found.row_bytes == 2 * columns
    assert np.array_equal(found.groups, (pieces(8 * in_row, swizzle) % 8).reshape(8, in_row))


def test_a_column_of_the_128_byte_swizzle_has_all_groups_and_without_it_one() -> None:
    [swizzled], [plain] = (tile_maps(COPIES, launch(packed(Tile((64, 64), how)))) for how in ("128B", "none"))
    assert [len(set(column)) for column in zip(*swizzled.groups, strict=True)] == [8] * 8
    assert [len(set(column)) for column in zip(*plain.groups, strict=True)] == [1] * 8


def test_maps_in_a_struct_count_once_and_other_bytes_not_at_all() -> None:
    tile, other = packed(Tile((64, 64), "128B"), 192), Packed(bytes(range(MAP_BYTES)), (Address(0, 0),))
    assert len(tile_maps(COPIES, launch(tile, tile, other))) == 1
    assert tile_maps(COPIES, launch(Packed(bytes(MAP_BYTES), (Address(0, 0),)))) == ()
    assert tile_maps(replace(COPIES, instructions=COPIES.instructions[1:]), launch(tile)) == ()
