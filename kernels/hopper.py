"""What the rungs with wgmma share: macros, tensor maps, sizes of shared memory. Their kernels are CUDA C++ (`*.cu`)."""

from __future__ import annotations

from .info import BoxMap, CudaSource, LaunchShape, Tunable, ceil_div

TILE_M = 128
LINE = 128  # bytes of K in a stage, which is the width of the swizzle
BOX_COLUMNS = 64  # of B in a box, where elements have two bytes
SLOT_ROWS, SLOT_COLUMNS = 16, 32  # what a warp stores at a time
CONSUMER_WARPS = 8
# Of a block, for sm_90: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
MOST_SHARED_BYTES = 232448

ARCHS = {"sm_90": "sm_90a"}
MATRICES = ("A", "B", "C", "alpha", "beta", "m", "n", "k")
WIDE_TILE_N = Tunable("tile_n", (64, 128, 256), 256, "columns of C's tile; it has 128 rows")
STAGES = Tunable("stages", (2, 3, 4, 6), 4, "stages of the ring")
SLOTS = Tunable("slots", (1, 2, 4), 2, "places in shared memory for what a warp stores")
GROUP = Tunable("group", (1, 2, 4, 8, 16), 8, "rows of tiles (of clusters) that are computed side by side")
BLOCKS = Tunable("blocks", (4, 108, 132), 132, "blocks at most: one an SM of an H200 by default")
TILE_N = Tunable("tile_n", (64, 128), 128, "columns of C's tile; it has 128 rows")


def source(file: str, maps: int) -> CudaSource:
    """Return the source of a rung whose file is also its kernel's name, with the first `maps` of the tensor maps."""

    def chosen(dtype: str, tunables: dict[str, int]) -> dict[str, BoxMap]:
        return dict(list(_maps(dtype, tunables).items())[:maps])

    return CudaSource(f"{file}.cu", file, ARCHS, _defines, chosen)


def staged_bytes(tunables: dict[str, int]) -> int:
    """The shared memory of all stages in bytes, with two barriers each."""
    stage = (TILE_M + tunables["tile_n"]) * LINE
    return tunables.get("stages", 1) * (stage + 16)


def blocks_of_tiles(m: int, n: int, tunables: dict[str, int]) -> LaunchShape:
    """A block for each tile of C: one warpgroup."""
    grid = (ceil_div(n, tunables["tile_n"]), ceil_div(m, TILE_M), 1)
    return _fitting(LaunchShape(grid, (128, 1, 1), staged_bytes(tunables)))


def blocks_of_roles(m: int, n: int, tunables: dict[str, int]) -> LaunchShape:
    """A block for each tile of C: a warpgroup that fills the stages and two that multiply."""
    shape = blocks_of_tiles(m, n, tunables)
    return LaunchShape(shape.grid, (384, 1, 1), shape.dynamic_shared_bytes)


def blocks_of_gpu(m: int, n: int, tunables: dict[str, int]) -> LaunchShape:
    """No more blocks than `blocks`, in whole clusters, which compute all tiles."""
    cluster = tunables.get("cluster", 1)
    if tunables["tile_n"] < BOX_COLUMNS * cluster:
        raise ValueError(f"a tile of {tunables['tile_n']} columns has no {cluster} boxes for {cluster} blocks to load")
    clusters = min(ceil_div(m, TILE_M * cluster) * ceil_div(n, tunables["tile_n"]), tunables["blocks"] // cluster)
    slots = CONSUMER_WARPS * tunables["slots"] * SLOT_ROWS * SLOT_COLUMNS * 4
    return _fitting(LaunchShape((clusters * cluster, 1, 1), (384, 1, 1), staged_bytes(tunables) + slots))


def _fitting(shape: LaunchShape) -> LaunchShape:
    size = shape.dynamic_shared_bytes
    if size > MOST_SHARED_BYTES:
        raise ValueError(f"{size} bytes of shared memory, a block has {MOST_SHARED_BYTES}: take fewer stages or slots")
    return shape


def _item_bytes(dtype: str) -> int:
    return 1 if dtype == "e4m3" else 2


def _defines(dtype: str, tunables: dict[str, int]) -> dict[str, str | int]:
    macros = {name.upper(): value for name, value in tunables.items() if name != "blocks"}
    return {"TYPE": dtype, "BYTES": _item_bytes(dtype), "CLUSTER": 1, **macros}


def _maps(dtype: str, tunables: dict[str, int]) -> dict[str, BoxMap]:
    depth = LINE // _item_bytes(dtype)
    columns = tunables["tile_n"] // tunables.get("cluster", 1)  # of B, which lie along K where elements are bytes
    return {
        "map_A": BoxMap("A", (TILE_M, depth)),
        "map_B": BoxMap("B", (columns, depth) if dtype == "e4m3" else (depth, depth)),
        "map_C": BoxMap("C", (SLOT_ROWS, SLOT_COLUMNS)),
    }
