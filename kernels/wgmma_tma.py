"""wgmma with a ring of stages that TMA fills."""

from __future__ import annotations

from .hopper import MATRICES, TILE_N, blocks_of_tiles, source
from .info import KernelInfo, LaunchShape, Tunable


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_tiles(m, n, tunables)


INFO = KernelInfo(
    name="wgmma_tma",
    title="wgmma, a ring of stages filled by TMA",
    teaches=(
        "One thread asks TMA for whole boxes of A and B, and a barrier in shared memory (mbarrier) says when their "
        "bytes have come. No thread computes addresses, no register holds what is on its way, and several stages are "
        "under way while the warpgroup multiplies another. Three stages leave room for a second block on the SM, "
        "which multiplies while the first one stores; with more stages the SM holds one block only, and is slower."
    ),
    look_for="UTMALDG in place of LDG and STS; the tensor pipe against `wgmma`; occupancy for stages=3 against 4",
    launch=launch,
    tunables=(TILE_N, Tunable("stages", (2, 3, 4, 6), 3, "stages of the ring")),
    dtypes=("f16", "bf16"),
    arguments=(*MATRICES, "map_A", "map_B"),
    cuda=source("wgmma_tma", maps=2),
)
