"""Launches of `tests/sources/block_tiles.cu`, a GEMM by block tiles, on an H200."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from timed import timing

TESTS = Path(__file__).parent.parent
SOURCE = TESTS / "sources" / "block_tiles.cu"
MEASURED = [
    row
    for record, part in (("block_tiles", "rows"), ("block_tiles", "short_rows"), ("last_blocks", "rows"))
    for row in json.loads((TESTS / "records" / f"h200_{record}.json").read_text(encoding="utf-8"))[part]
]
INSTANCES = tuple({f"tile2d<{','.join(map(str, row[0]))},0>" for row in MEASURED if row[1] > 1})


def tiles(tile: list[int], resident: int, m: int, n: int, caches: str) -> dict[str, Any]:
    """Return what `gemmsim.analyze` takes for a launch of `block_tiles.cu`."""
    bm, bn, bk, tm, tn = tile
    threads, blocks = bm * bn // tm // tn, (m // bm) * (n // bn)
    room = 4 * bk * (bm + bn) + 1024
    dynamic = (226 * 1024 // resident - room) // 1024 * 1024 - (30 * 1024 if resident == 1 else 0) if resident else 0
    return {
        "kernel": SOURCE.read_text(encoding="utf-8"),
        "entry": f"tile2d<{bm},{bn},{bk},{tm},{tn},0>",
        "grid": (n // bn, m // bm),
        "block": threads,
        "shared": dynamic,
        "args": (
            f"f32[{m * 1024}]=0",
            f"f32[{1024 * n}]=0",
            f"f32[{m * n}]=0",
            f"i32={m}",
            f"i32={n}",
            "i32=1024",
            "u32[1024]=0",
            f"u32[{blocks}]=0",
        ),
        "gpu": "h200",
        "caches": caches,
    }


def predicted_us(tile: list[int], resident: int, m: int, n: int, caches: str) -> float:
    return timing(**tiles(tile, resident, m, n, caches), file=SOURCE.name, instances=INSTANCES).duration_us
