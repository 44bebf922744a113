"""wgmma_persistent in clusters, whose blocks load B's tiles together."""

from __future__ import annotations

from .hopper import BLOCKS, GROUP, MATRICES, SLOTS, STAGES, WIDE_TILE_N, blocks_of_gpu, source
from .info import KernelInfo, LaunchShape, Tunable


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_gpu(m, n, tunables)


INFO = KernelInfo(
    name="wgmma_cluster",
    title="wgmma_persistent in clusters that load B together",
    teaches=(
        "Two blocks of a cluster multiply different rows of A with the same columns of B. Each loads half of B's "
        "tile, and TMA writes it into the shared memory of both (multicast). The GPU merges many such reads within a "
        "GPC anyway: what is left to gain is 8 % of L2's reads and a fifth of DRAM's at 4096. The price is that the "
        "two go in step, as a stage is empty only when the consumers of both are done with it."
    ),
    look_for="UTMALDG with MULTICAST; sectors that L2 reads for cluster=2 against `wgmma_persistent`",
    launch=launch,
    tunables=(WIDE_TILE_N, STAGES, SLOTS, GROUP, Tunable("cluster", (2, 4), 2, "blocks of a cluster"), BLOCKS),
    dtypes=("f16", "bf16"),
    arguments=(*MATRICES, "map_A", "map_B", "map_C"),
    cuda=source("wgmma_persistent", maps=3),
)
