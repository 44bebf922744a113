"""wgmma_tma with warpgroups that have roles: one fills the stages, two multiply."""

from __future__ import annotations

from .hopper import MATRICES, STAGES, WIDE_TILE_N, blocks_of_roles, source
from .info import KernelInfo, LaunchShape


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_roles(m, n, tunables)


INFO = KernelInfo(
    name="wgmma_specialised",
    title="wgmma, a producer warpgroup and two consumers",
    teaches=(
        "A warpgroup of its own asks for the tiles, so that those that multiply never stop for it. Producer and "
        "consumers meet at two barriers a stage, full and empty, and not at __syncthreads. The producer gives "
        "registers up (setmaxnreg), the consumers take them, so that each holds 64 x 256 sums: the wider a tile, the "
        "fewer bytes of A and B a product takes from shared memory and L2."
    ),
    look_for="USETMAXREG; the stall reasons gmma and barrier; sectors from L2 a product for tile_n=256 against 128",
    launch=launch,
    tunables=(WIDE_TILE_N, STAGES),
    dtypes=("f16", "bf16"),
    arguments=(*MATRICES, "map_A", "map_B"),
    cuda=source("wgmma_specialised", maps=2),
)
