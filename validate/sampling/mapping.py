"""Works out by hand which tile each block of `orders.cu` computes: a slow, readable twin of the kernels' orders.

Nothing here knows of gemmsim. `segments` lists the work of a whole launch; `closed_forms` counts from that list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

TILE_STEPS = {32: 32, 128: 8}  # side of a tile -> elements of K in a step of its loop
SPLITS, BATCHES, OVERSIZE = 4, 3, 37
ON_TWO_AXES = ("RowMajor2D", "Lower")
IN_A_SQUARE = ("Morton", "Hilbert")


@dataclass(frozen=True, slots=True)
class Problem:
    """The sizes of C = A * B, of which `pad` elements behind each row are not used.

    tile    side of the tiles of C in elements, a key of TILE_STEPS
    blocks  blocks of a persistent grid
    """

    m: int
    n: int
    k: int
    pad: int
    tile: int
    blocks: int

    @property
    def down(self) -> int:
        return -(-self.m // self.tile)

    @property
    def across(self) -> int:
        return -(-self.n // self.tile)

    @property
    def steps(self) -> int:
        """Steps of the loop over K."""
        return -(-self.k // TILE_STEPS[self.tile])

    @property
    def tiles(self) -> int:
        return self.down * self.across


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps [first, last) of the tile at (row, col), in tiles; `z` is the index of a batch or a share of K."""

    z: int
    row: int
    col: int
    first: int
    last: int


def table_of_tiles(tiles: int) -> list[int]:
    """Return the table that the order Table reads: all tiles, shuffled alike in each run."""
    found: list[int] = np.random.default_rng(15).permutation(tiles).tolist()
    return found


def lengths_of_k(p: Problem) -> list[int]:
    """Return K of each row of tiles in a launch of `ragged_k`: multiples of 32, or the whole K; alike in each run."""
    drawn = np.random.default_rng(16).integers(0, -(-p.k // 32), p.down, endpoint=True)
    return [min(p.k, 32 * int(one)) for one in drawn]


def grid_of(scheme: str, order: str, p: Problem) -> tuple[int, int, int]:
    """Return the grid (x, y, z) with which a kernel of `orders.cu` is launched."""
    if scheme == "per_thread":
        return -(-p.m * p.n // 256), 1, 1
    if scheme in ("stream_k", "persistent", "work_counter"):
        return p.blocks, 1, 1
    z = {"split_k": SPLITS, "batched": BATCHES}.get(scheme, 1)
    if order in ON_TWO_AXES:
        return p.across, p.down, z
    return numbers_of(order, p), 1, z


def numbers_of(order: str, p: Problem) -> int:
    """Return how many numbers an order needs to name every tile."""
    if order in IN_A_SQUARE:
        return int((2 ** math.ceil(math.log2(max(p.down, p.across)))) ** 2)
    return {
        "Swizzled": p.down * -(-p.across // 8) * 8,
        "EveryThirdIdle": -(-p.tiles // 2) * 3,
        "Oversized": p.tiles + OVERSIZE,
        "LowerPacked": p.down * (p.down + 1) // 2,
    }.get(order, p.tiles)


def place(order: str, number: int, p: Problem, table: list[int]) -> tuple[int, int] | None:
    """Return (row, column) of the tile that belongs to `number`, None where none does."""
    row, col = number // p.across, number % p.across
    if order in ("RowMajor2D", "RowMajor"):  # blocks of a grid of two axes are numbered along x first
        return row, col
    if order == "ColumnMajor":
        return number % p.down, number // p.down
    if order == "Grouped":
        first = number // (8 * p.across) * 8
        rows = min(p.down - first, 8)
        return first + (number - first * p.across) % rows, (number - first * p.across) // rows
    if order == "Snake":
        return row, p.across - 1 - col if row % 2 else col
    if order in IN_A_SQUARE:
        row, col = (_morton if order == "Morton" else _hilbert)(number, p)
        return (row, col) if row < p.down and col < p.across else None
    if order == "Hashed":
        return divmod((number * 7919 + 12345) % p.tiles, p.across)
    if order == "Diagonal":
        return number % p.down, (number % p.down + number // p.down) % p.across
    if order == "Swizzled":
        wide = -(-p.across // 8) * 8
        row, col = number // wide, number % wide ^ number // wide % 8
        return (row, col) if col < p.across else None
    if order == "Table":
        return divmod(table[number], p.across)
    if order == "EveryThirdIdle":
        tile = number // 3 * 2 + number % 3
        return divmod(tile, p.across) if number % 3 < 2 and tile < p.tiles else None
    if order == "Oversized":
        return (row, col) if number < p.tiles else None
    if order == "Lower":
        return (row, col) if col <= row else None
    assert order == "LowerPacked"
    row = (math.isqrt(8 * number + 1) - 1) // 2
    return row, number - row * (row + 1) // 2


def _morton(number: int, p: Problem) -> tuple[int, int]:
    bits = f"{number:064b}"
    return int(bits[0::2], 2), int(bits[1::2], 2)


def _hilbert(number: int, p: Problem) -> tuple[int, int]:
    """Walk down the square from the largest quarter to the smallest: which quarter, and how it is turned."""
    side = 2 ** math.ceil(math.log2(max(p.down, p.across)))

    def walk(number: int, side: int) -> tuple[int, int]:
        """Return (x, y) within a square of `side`."""
        if side == 1:
            return 0, 0
        half = side // 2
        quarter, within = divmod(number, half * half)
        x, y = walk(within, half)
        if quarter == 0:
            return y, x
        if quarter == 1:
            return x, y + half
        if quarter == 2:
            return x + half, y + half
        return side - 1 - y, half - 1 - x

    x, y = walk(number, side)
    return y, x


def segments(scheme: str, order: str, p: Problem) -> list[Segment]:
    """Return all work of a launch, block by block where a block's number says what it does."""
    table = table_of_tiles(p.tiles)
    if scheme in ("persistent", "work_counter"):
        places = [place(order, tile, p, table) for tile in range(p.tiles)]
        return [Segment(0, *at, 0, p.steps) for at in places if at]
    if scheme == "stream_k":
        return _shares(order, p, table)
    x, y, layers = grid_of(scheme, order, p)
    places = [place(order, number, p, table) for number in range(x * y)]
    lengths, found = lengths_of_k(p), []
    for z in range(layers):
        for number, at in enumerate(places):
            if at is None:
                continue
            k, first, last = p.k, 0, p.steps
            if scheme == "split_k":
                first, last = p.steps * z // layers, p.steps * (z + 1) // layers
            if scheme == "triangular":
                k = min(p.k, (at[0] + 1) * p.tile)
            if scheme == "ragged_k":
                k = lengths[at[0]]
            if scheme == "one_short" and number == len(places) // 7 * 5:
                k = p.k // 64 * 32
            found.append(Segment(z, *at, first, min(last, -(-k // TILE_STEPS[p.tile]))))
    return found


def _shares(order: str, p: Problem, table: list[int]) -> list[Segment]:
    """Return the parts of tiles that equal shares of all steps cut out."""
    found, total = [], p.tiles * p.steps
    for block in range(p.blocks):
        at, end = total * block // p.blocks, total * (block + 1) // p.blocks
        while at < end:
            tile, first = divmod(at, p.steps)
            last = min(p.steps, first + end - at)
            where = place(order, tile, p, table)
            assert where
            found.append(Segment(0, *where, first, last))
            at += last - first
    return found
