"""Gives the special registers that are the same for all blocks of a launch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import words
from gemmsim.trace.types import Launch

# SR_VIRTID and SR_VIRTCFG hold the warp's number and the number of warps that an SM has room for from this bit on; so
# the code for %warpid and %nwarpid reads them on sm_80 to sm_120.
_WARP_SHIFT = 8
# Warps an SM has room for (CUDA C++ programming guide, table of compute capabilities); 64 on the others.
_SM_WARPS = {"sm_75": 32, "sm_86": 48, "sm_87": 48, "sm_89": 48, "sm_120": 48, "sm_121": 48}


def special_registers(program: Program, launch: Launch, shared_bytes: int) -> dict[str, NDArray[np.uint32]]:
    """Return {name: values}, uint32 [warps of a block, 32], of the special registers that a kernel may read.

    shared_bytes  shared memory of a block, with what the system reserves

    Blocks are executed one after the other, as if on one SM: SR_VIRTUALSMID is 0. SR_CgaSize says which of two sizes of
    clusters of one launch a block's is (sm_100 and later); there is only one here.
    """
    x, y, _ = launch.block
    thread = np.arange(launch.warps_per_block * WARP_LANES, dtype=np.uint32).reshape(-1, WARP_LANES)
    lane = thread % WARP_LANES
    one, all_lanes, zero = np.uint32(1), np.uint32(0xFFFFFFFF), np.zeros_like(thread)
    below = (one << lane) - one
    return {
        "SR_TID.X": thread % x,
        "SR_TID.Y": thread // x % y,
        "SR_TID.Z": thread // (x * y),
        "SR_LANEID": lane,
        "SR_EQMASK": one << lane,
        "SR_LTMASK": below,
        "SR_LEMASK": below | one << lane,
        "SR_GEMASK": all_lanes ^ below,
        "SR_GTMASK": all_lanes ^ (below | one << lane),
        "SR_VIRTID": thread // WARP_LANES << np.uint32(_WARP_SHIFT),
        "SR_VIRTCFG": zero + np.uint32(_SM_WARPS.get(program.arch, 64) << _WARP_SHIFT),
        "SR_VIRTUALSMID": zero,
        "SR_SMEMSZ": zero + np.uint32(shared_bytes),
        "SR_CgaSize": np.ones_like(thread),
        "SR_SWINHI": np.full_like(thread, words.SHARED_WINDOW),
        "SR_LMEMHIOFF": zero,  # the lowest address of the stack, with which code compiled with -G compares R1
    }
