"""Computes how many blocks of a kernel one SM can hold by each resource, for the occupancy and the carve-out.

Source: NVIDIA's occupancy calculation (Nsight Compute's Occupancy Calculator, the CUDA toolkit's cuda_occupancy.h),
checked against `launch__occupancy_limit_*` of an H200 and published reports of sm_75, 80 and 86 (tests).
"""

from __future__ import annotations

from itertools import accumulate

from gemmsim.gpu.spec import GpuSpec, Sm
from gemmsim.support.warp import WARP_LANES

_TPC_SMS = 2


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def gpc_sizes(sm: Sm) -> tuple[int, ...]:
    """Return the number of SMs of each GPC. If those of the GPU file do not add up to its number of SMs, because that
    was changed, the last GPCs get fewer, or there is one GPC more.
    """
    sizes, left = [], sm.count
    for size in sm.gpc_sms:
        sizes.append(min(size, left))
        left -= sizes[-1]
    return tuple(size for size in (*sizes, left) if size)


def cluster_hosts(sm: Sm) -> tuple[list[range], list[range]]:
    """Return groups of SMs within which clusters lie: the TPCs that are served early (`sm.early_sms`), and the GPCs
    without these. SMs are numbered GPC by GPC.
    """
    first, *others = gpc_sizes(sm)
    early = min(sm.early_sms, first) if others else 0
    ends = list(accumulate((first, *others)))
    tpcs = [range(start, start + _TPC_SMS) for start in range(0, early - _TPC_SMS + 1, _TPC_SMS)]
    return tpcs, [range(start, end) for start, end in zip((early, *ends), ends, strict=False)]


def clusters_at_once(blocks_per_sm: int, cluster_blocks: int, gpu: GpuSpec) -> int:
    """Return how many clusters the GPU holds at once, where an SM holds `blocks_per_sm` of their blocks.

    All blocks of a cluster are in one GPC (CUDA C++ Programming Guide, "Thread Block Clusters"). On an H200 there are
    no more of them than the GPC has SMs, however many fit an SM, and each TPC of the SMs that are served early holds
    clusters by itself. That gives cudaOccupancyMaxActiveClusters there for 12 sizes with 1, 2, 5 and 8 blocks an SM
    (tests/records).
    """
    tpcs, gpcs = cluster_hosts(gpu.sm)
    return sum(len(sms) * blocks_per_sm // cluster_blocks for sms in (*tpcs, *gpcs) if len(sms) >= cluster_blocks)


def warps_per_block(threads_per_block: int) -> int:
    return -(-threads_per_block // WARP_LANES)


def blocks_by_warps(threads_per_block: int, gpu: GpuSpec) -> int:
    return gpu.sm.max_warps // warps_per_block(threads_per_block)


def blocks_by_registers(registers: int, threads_per_block: int, gpu: GpuSpec) -> int:
    """Return how many blocks fit into the SM's registers.

    A warp takes a multiple of `register_allocation_unit` registers. All sub-partitions hold equally many warps.

    registers  registers of a thread; where these are more than a thread may have, no block fits
    """
    sm = gpu.sm
    if registers > sm.max_registers_per_thread:
        return 0
    a_warp = round_up(max(registers, 1) * WARP_LANES, sm.register_allocation_unit)
    warps = sm.registers // a_warp // sm.warp_allocation_granularity * sm.warp_allocation_granularity
    return warps // warps_per_block(threads_per_block)


def shared_bytes_allocated(shared_bytes_per_block: int, gpu: GpuSpec) -> int:
    """Return the bytes of the SM's shared memory that a block takes: its own, rounded up, and those reserved for it."""
    return round_up(shared_bytes_per_block, gpu.shared.allocation_unit_bytes) + gpu.shared.reserved_bytes_per_block


def blocks_by_shared(shared_bytes_per_block: int, carveout_bytes: int, gpu: GpuSpec) -> int:
    """Return how many blocks fit into `carveout_bytes`, the part of the data array that serves as shared memory.

    The result is `max_blocks` where a block takes no shared memory, as in Nsight Compute.
    """
    a_block = shared_bytes_allocated(shared_bytes_per_block, gpu)
    return carveout_bytes // a_block if a_block else gpu.sm.max_blocks
