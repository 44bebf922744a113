"""The rungs, in the order in which they are best read. A new kernel is a file of its own and a word here."""

from __future__ import annotations

from . import coalesced, naive, tiled, tiled_padded, tiled_swizzled, tiled_transposed, uncoalesced_bt
from .info import KernelInfo

_RUNGS = (
    naive,
    coalesced,
    tiled,
    tiled_transposed,
    tiled_padded,
    tiled_swizzled,
    uncoalesced_bt,
)
KERNELS: dict[str, KernelInfo] = {module.INFO.name: module.INFO for module in _RUNGS}
