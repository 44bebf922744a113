"""One warpgroup a block multiplies with wgmma; ordinary loads and stores stage the tiles."""

from __future__ import annotations

from .hopper import MATRICES, TILE_N, blocks_of_tiles, source
from .info import KernelInfo, LaunchShape


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_tiles(m, n, tunables)


INFO = KernelInfo(
    name="wgmma",
    title="wgmma by one warpgroup, tiles staged by ordinary loads",
    teaches=(
        "mma.sync reaches two thirds of Hopper's tensor cores. The others come with wgmma: four warps multiply a tile "
        "of 64 rows at once, and read A and B from shared memory by themselves, where a descriptor says how they lie. "
        "No registers hold operands, no LDSM loads them. With tiles that are fetched, stored and waited for in turn, "
        "that gains nothing yet: the tensor cores wait for memory."
    ),
    look_for="HGMMA in place of HMMA and LDSM; the share of time that the tensor pipe is busy; long_scoreboard",
    launch=launch,
    tunables=(TILE_N,),
    dtypes=("f16", "bf16"),
    arguments=MATRICES,
    cuda=source("wgmma", maps=0),
)
