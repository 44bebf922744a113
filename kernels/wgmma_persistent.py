"""wgmma_specialised with one block an SM, an order of tiles for L2, and stores that overlap with the next tile."""

from __future__ import annotations

from .hopper import BLOCKS, GROUP, MATRICES, SLOTS, STAGES, WIDE_TILE_N, blocks_of_gpu, source
from .info import KernelInfo, LaunchShape


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_gpu(m, n, tunables)


INFO = KernelInfo(
    name="wgmma_persistent",
    title="wgmma_specialised, one block an SM loops over the tiles",
    teaches=(
        "A block that ends leaves its SM without work until the next one has made its barriers and has its first "
        "tiles. Here each SM has one block that goes on from tile to tile: the producer fetches the next tile's "
        "stages while the consumers store the last one's sums, and TMA takes these from shared memory, so that no "
        "thread waits for stores. The order of the tiles is the kernel's own: groups of rows keep A and B in L2."
    ),
    look_for="UTMASTG; L2 hit rate and DRAM sectors for group=1 against 8; the tensor pipe against `wgmma_specialised`",
    launch=launch,
    tunables=(WIDE_TILE_N, STAGES, SLOTS, GROUP, BLOCKS),
    dtypes=("f16", "bf16"),
    arguments=(*MATRICES, "map_A", "map_B", "map_C"),
    cuda=source("wgmma_persistent", maps=3),
)
