"""wgmma_cluster for bytes: e4m3."""

from __future__ import annotations

from .hopper import BLOCKS, GROUP, MATRICES, SLOTS, STAGES, WIDE_TILE_N, blocks_of_gpu, source
from .info import KernelInfo, LaunchShape, Tunable


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return blocks_of_gpu(m, n, tunables)


INFO = KernelInfo(
    name="wgmma_fp8",
    title="wgmma_cluster for e4m3, B given transposed",
    teaches=(
        "Half the bytes an element are twice the elements a stage, and twice the products a cycle. Both operands must "
        "lie along K, so that B is given transposed. The sums are floats in registers, but wgmma adds with 13 binary "
        "places: what is smaller than that, next to the largest term, is lost."
    ),
    look_for="QGMMA; the relative error that --verify shows, against `wgmma_cluster`",
    launch=launch,
    tunables=(WIDE_TILE_N, STAGES, SLOTS, GROUP, Tunable("cluster", (1, 2), 2, "blocks of a cluster"), BLOCKS),
    dtypes=("e4m3",),
    arguments=(*MATRICES, "map_A", "map_B", "map_C"),
    b_transposed=True,
    cuda=source("wgmma_persistent", maps=3),
)
