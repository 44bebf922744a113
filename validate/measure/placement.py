"""Finds which SM each block of a case's grid goes to.

A probe kernel runs in place of the case's kernel; as many of its blocks fit on an SM as of the case's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

WAIT_NS = 30_000  # the probe waits longer than the scheduler takes to fill the GPU once
MOST_BLOCKS = 1 << 20
BLOCKS_RECORDED = 1024
_STEP_BYTES = 1024


def placement(gpu: Any, probe: Any, launch: Mapping[str, Any], resident: int) -> dict[str, Any] | None:
    """Launch the probe with the grid and block of `launch`, and return the record's `placement`.

    `resident` is how many blocks of the launch fit on an SM. The result is None for grids of more than a million
    blocks, and where no block fits.
    """
    grid, block = launch["grid"], launch["block"]
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    if blocks > MOST_BLOCKS or resident < 1:
        return None
    shared = _shared_for(gpu, probe, threads, resident)
    gpu.allow_shared(probe, shared)
    smid = gpu.upload(np.full(blocks, -1, np.int32))
    address = ctypes.c_void_p(smid.__cuda_array_interface__["data"][0])
    gpu.launch(gpu.call(probe, grid, block, shared, [address, ctypes.c_uint64(WAIT_NS)]))
    gpu.synchronize()
    found = smid.copy_to_host()
    on_each = np.bincount(found, minlength=gpu.sms)
    return {
        "smid": found[:BLOCKS_RECORDED].tolist(),
        "resident_blocks_per_sm": gpu.resident_blocks(probe, threads, shared),
        "dynamic_shared_bytes": shared,
        "blocks_per_sm": [int(on_each.min()), int(on_each.max())],
    }


def _shared_for(gpu: Any, probe: Any, threads: int, resident: int) -> int:
    """Return the least dynamic shared memory (bytes) with which at most `resident` blocks of the probe fit on an SM."""
    gpu.allow_shared(probe, gpu.max_shared_bytes)
    for shared in range(0, gpu.max_shared_bytes + 1, _STEP_BYTES):
        if gpu.resident_blocks(probe, threads, shared) <= resident:
            return shared
    return int(gpu.max_shared_bytes)
