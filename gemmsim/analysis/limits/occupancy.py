"""Computes the theoretical occupancy of a launch and its limiters, as Nsight Compute's launch__occupancy_limit_* do."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.gpu.limits import (
    blocks_by_registers,
    blocks_by_shared,
    blocks_by_warps,
    clusters_at_once,
    round_up,
    shared_bytes_allocated,
    warps_per_block,
)
from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.caches.carveout import choose_carveout
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks and warps one SM holds at once, and what limits their number.

    limit_*                 blocks an SM would hold if this were its only limit: launch__occupancy_limit_blocks, _warps,
                            _registers, _shared_mem
    blocks_per_sm           the smallest of the four `limit_*`
    warps_per_sm            warps of `blocks_per_sm` blocks
    theoretical_pct         warps_per_sm in percent of the warps that an SM can hold:
                            sm__maximum_warps_per_active_cycle_pct
    limiters                which of the four limits are the smallest: "blocks", "warps", "registers", "shared_mem"
    carveout_bytes          shared memory configured on the SM (launch__shared_mem_config_size)
    allocated_shared_bytes  shared memory that a block takes: rounded up, reserved bytes included
    waves_per_sm            blocks of the grid divided by the blocks that all SMs hold at once:
                            launch__waves_per_multiprocessor; None where the grid is not known
    clusters_at_once        clusters that the GPU holds at once; None where the launch has none
    registers_cliff         the fewest registers that a thread must save for an SM to hold one more block; None where
                            saving does not help
    shared_cliff_bytes      the fewest bytes of shared memory that a block must save for an SM to hold one more
                            block; None where saving does not help
    """

    limit_blocks: int
    limit_warps: int
    limit_registers: int
    limit_shared_mem: int
    blocks_per_sm: int
    warps_per_sm: int
    theoretical_pct: float
    limiters: tuple[str, ...]
    carveout_bytes: int
    allocated_shared_bytes: int
    waves_per_sm: float | None
    registers_cliff: int | None
    shared_cliff_bytes: int | None
    clusters_at_once: int | None = None


def theoretical_occupancy(
    registers: int,
    shared_bytes: int,
    threads_per_block: int,
    gpu: GpuSpec,
    carveout_bytes: int | None = None,
    grid_blocks: int | None = None,
    cluster_blocks: int | None = None,
) -> Occupancy:
    """Compute the occupancy of a launch whose blocks have `threads_per_block` threads.

    registers       of a thread
    shared_bytes    of a block, static and dynamic
    carveout_bytes  the SM's shared memory configuration; None: the one that the driver picks (`choose_carveout`)
    grid_blocks     blocks of the launch, for `waves_per_sm`
    cluster_blocks  blocks of a cluster; None where the launch has no clusters

    Raises GemmsimError where not even one block fits, or not even one cluster.
    Named barriers are a limit that is not modelled: there is no counter of that limit at hand.
    """
    _check(registers, shared_bytes, threads_per_block, gpu)
    if carveout_bytes is None:
        carveout_bytes = choose_carveout(gpu, registers, threads_per_block, shared_bytes)
    limits = {
        "blocks": gpu.sm.max_blocks,
        "warps": blocks_by_warps(threads_per_block, gpu),
        "registers": blocks_by_registers(registers, threads_per_block, gpu),
        "shared_mem": blocks_by_shared(shared_bytes, carveout_bytes, gpu),
    }
    blocks = min(limits.values())
    if not blocks:
        raise GemmsimError(f"no block fits an SM whose shared memory is configured to {carveout_bytes} bytes")
    warps = blocks * warps_per_block(threads_per_block)
    clusters = None if cluster_blocks is None else clusters_at_once(blocks, cluster_blocks, gpu)
    if clusters == 0:
        raise GemmsimError(f"no cluster of {cluster_blocks} such blocks fits a GPC of {gpu.name}")
    at_once = gpu.sm.count * blocks if clusters is None or cluster_blocks is None else clusters * cluster_blocks
    return Occupancy(
        limit_blocks=limits["blocks"],
        limit_warps=limits["warps"],
        limit_registers=limits["registers"],
        limit_shared_mem=limits["shared_mem"],
        blocks_per_sm=blocks,
        warps_per_sm=warps,
        theoretical_pct=100 * warps / gpu.sm.max_warps,
        limiters=tuple(name for name, limit in limits.items() if limit == blocks),
        carveout_bytes=carveout_bytes,
        allocated_shared_bytes=shared_bytes_allocated(shared_bytes, gpu),
        waves_per_sm=None if grid_blocks is None else grid_blocks / at_once,
        registers_cliff=_registers_cliff(registers, shared_bytes, threads_per_block, blocks + 1, gpu),
        shared_cliff_bytes=_shared_cliff(registers, shared_bytes, threads_per_block, blocks + 1, gpu),
        clusters_at_once=clusters,
    )


def _check(registers: int, shared_bytes: int, threads_per_block: int, gpu: GpuSpec) -> None:
    """Raise GemmsimError where not even one block fits an otherwise empty SM."""
    if not 1 <= threads_per_block <= gpu.sm.max_threads_per_block:
        limit = gpu.sm.max_threads_per_block
        raise GemmsimError(f"a block of {threads_per_block} threads; {gpu.name} takes 1 to {limit}")
    if not 0 <= shared_bytes <= gpu.shared.max_bytes_per_block:
        limit = gpu.shared.max_bytes_per_block
        raise GemmsimError(f"{shared_bytes} bytes of shared memory a block; {gpu.name} has at most {limit}")
    if not blocks_by_registers(registers, threads_per_block, gpu):
        raise GemmsimError(
            f"{registers} registers a thread times {threads_per_block} threads do not fit the {gpu.sm.registers} "
            f"registers of {gpu.name}'s SM (at most {gpu.sm.max_registers_per_thread} a thread)"
        )


def _fits(registers: int, shared_bytes: int, threads_per_block: int, blocks: int, gpu: GpuSpec) -> bool:
    """Tell whether an SM holds `blocks` such blocks when its shared memory is configured as large as possible."""
    return blocks <= min(
        gpu.sm.max_blocks,
        blocks_by_warps(threads_per_block, gpu),
        blocks_by_registers(registers, threads_per_block, gpu),
        blocks_by_shared(shared_bytes, gpu.shared.max_bytes_per_sm, gpu),
    )


def _registers_cliff(
    registers: int, shared_bytes: int, threads_per_block: int, wanted: int, gpu: GpuSpec
) -> int | None:
    fewer = (r for r in range(registers - 1, 0, -1) if _fits(r, shared_bytes, threads_per_block, wanted, gpu))
    return next((registers - r for r in fewer), None)


def _shared_cliff(registers: int, shared_bytes: int, threads_per_block: int, wanted: int, gpu: GpuSpec) -> int | None:
    """Return how many bytes of shared memory a block must save for an SM to hold `wanted` blocks.

    The result is None where saving does not help. Shared memory is allocated in units, so only multiples of the unit
    are tried.
    """
    unit = gpu.shared.allocation_unit_bytes
    fewer = range(round_up(shared_bytes, unit) - unit, -1, -unit)
    return next((shared_bytes - s for s in fewer if _fits(registers, s, threads_per_block, wanted, gpu)), None)
