"""How many blocks the SM gets that ends last, and how many SMs share L2 and DRAM with it."""

from __future__ import annotations

from gemmsim.gpu.spec import GpuSpec
from gemmsim.trace.types import SmShare


def blocks_of_last_sm(grid_blocks: int, share: SmShare | None, gpu: GpuSpec) -> int:
    return -(-grid_blocks // gpu.sm.count) if share is None else len(share.blocks)


def active_sms(grid_blocks: int, share: SmShare | None, gpu: GpuSpec) -> int:
    return min(gpu.sm.count, grid_blocks) if share is None else share.active_sms
