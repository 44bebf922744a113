"""The rungs, in the order in which they are best read. A new kernel is a file of its own and a word here."""

from __future__ import annotations

from importlib import import_module

from .info import KernelInfo

_RUNGS = (
    "naive",
    "coalesced",
    "tiled",
    "tiled_transposed",
    "tiled_padded",
    "tiled_swizzled",
    "uncoalesced_bt",
    "warp_shuffle",
    "register_tiled",
    "blocktile_1d",
    "blocktile_2d",
    "register_blocked",
    "rectangular",
    "vectorized",
    "warptiled",
    "double_buffered",
    "async_pipelined",
    "split_k",
    "persistent",
    "fused_epilogue",
    "hgemm_warptiled",
    "tensorcore_naive",
    "tensorcore_warptiled",
    "tensorcore_double_buffered",
    "tensorcore_pipelined",
    "tensorcore_fused_epilogue",
    "tf32_tensorcore",
    "dgemm",
    "dgemm_tensorcore",
    "igemm",
    "igemm_tensorcore",
    "wgmma",
    "wgmma_tma",
    "wgmma_specialised",
    "wgmma_persistent",
    "wgmma_cluster",
    "wgmma_fp8",
)
KERNELS: dict[str, KernelInfo] = {name: import_module(f"{__package__}.{name}").INFO for name in _RUNGS}
