"""The rungs, in the order in which they are best read. A new kernel is a file of its own and a word here."""

from __future__ import annotations

from . import (
    async_pipelined,
    blocktile_1d,
    blocktile_2d,
    coalesced,
    double_buffered,
    fused_epilogue,
    hgemm_warptiled,
    naive,
    persistent,
    rectangular,
    register_blocked,
    register_tiled,
    split_k,
    tensorcore_naive,
    tensorcore_pipelined,
    tensorcore_warptiled,
    tiled,
    tiled_padded,
    tiled_swizzled,
    tiled_transposed,
    uncoalesced_bt,
    vectorized,
    warp_shuffle,
    warptiled,
)
from .info import KernelInfo

_RUNGS = (
    naive,
    coalesced,
    tiled,
    tiled_transposed,
    tiled_padded,
    tiled_swizzled,
    uncoalesced_bt,
    warp_shuffle,
    register_tiled,
    blocktile_1d,
    blocktile_2d,
    register_blocked,
    rectangular,
    vectorized,
    warptiled,
    double_buffered,
    async_pipelined,
    split_k,
    persistent,
    fused_epilogue,
    hgemm_warptiled,
    tensorcore_naive,
    tensorcore_warptiled,
    tensorcore_pipelined,
)
KERNELS: dict[str, KernelInfo] = {module.INFO.name: module.INFO for module in _RUNGS}
