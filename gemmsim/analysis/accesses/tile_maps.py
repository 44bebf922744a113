"""Finds the tensor maps of a launch, and says where in the banks of shared memory the pieces of a tile lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gemmsim.isa.program import Program
from gemmsim.launch import tensor_maps
from gemmsim.launch.tensor_maps import MAP_BYTES, MapFields
from gemmsim.support.dtypes import DTYPES
from gemmsim.trace.types import Launch, Packed

PIECE_BYTES = 16  # what a swizzle keeps together: four banks
_GROUPS = 8  # of four banks
_MOST_PIECES = 16  # of a row that are shown
_TILE_COPIES = ("UTMALDG", "UTMASTG", "UTMAREDG")


@dataclass(frozen=True, slots=True)
class TileMap:
    """How TMA lays the tiles of an array out in shared memory.

    array      its position among the arguments of the launch
    dtype      of its elements
    box        elements of a tile along each dimension, in the order of the array's shape
    swizzle    "none", "32B", "64B" or "128B"
    row_bytes  of a row of the tile, its innermost dimension
    groups     for each of the first eight rows and each 16-byte piece of it, the group of four banks (0 to 7) where it
               lies, in a tile that begins at a multiple of 1024 bytes
    """

    array: int
    dtype: str
    box: tuple[int, ...]
    swizzle: str
    row_bytes: int
    groups: tuple[tuple[int, ...], ...]


def tile_maps(program: Program, launch: Launch) -> tuple[TileMap, ...]:
    """Return the distinct tensor maps among the parameters of a launch; none where the kernel copies no tiles."""
    if not any(i.opcode in _TILE_COPIES for i in program.instructions):
        return ()
    found: dict[TileMap, None] = {}
    for parameter in launch.passed:
        if not isinstance(parameter, Packed):
            continue
        for address in parameter.addresses:
            content = parameter.content[address.at_byte : address.at_byte + MAP_BYTES]
            if fields := _read(content):
                found[_tile(address.array, launch.args[address.array].dtype, fields)] = None
    return tuple(found)


def _read(content: bytes) -> MapFields | None:
    """Return what a tensor map's bytes say, None where they are not those of one."""
    if len(content) < MAP_BYTES or not any(content):
        return None
    fields = tensor_maps.read(content)
    return fields if len(fields.sizes) <= 5 and tensor_maps.written(fields) == content else None


def _tile(array: int, dtype: str, fields: MapFields) -> TileMap:
    row_bytes = fields.box[0] * DTYPES[dtype].item_bytes
    names = {value: key for key, value in tensor_maps.SWIZZLES.items()}
    rows = min(8, max(1, math.prod(fields.box[1:])))
    pieces = range(min(_MOST_PIECES, -(-row_bytes // PIECE_BYTES)))
    groups = tuple(
        tuple(_group(row * row_bytes + PIECE_BYTES * p, fields.swizzle) for p in pieces) for row in range(rows)
    )
    return TileMap(array, dtype, fields.box[::-1], names[fields.swizzle], row_bytes, groups)


def _group(at: int, swizzle: int) -> int:
    """Return the group of banks of the piece at byte `at` of a tile; `swizzle` is a value of SWIZZLES."""
    exchanged = at // 128 & ((1 << swizzle) - 1)
    return (at // PIECE_BYTES ^ exchanged) % _GROUPS
