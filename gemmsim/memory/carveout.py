"""Which shared-memory configuration the driver picks for a launch; what remains of the unified array is L1.

NVIDIA does not publish the rule (the CUDA programming guide: "the driver automatically configures"), so this one is
empirical. `launch__shared_mem_config_size` shows its results; of those at hand
- launches with one or two resident blocks get the smallest configuration that holds these;
- others get room for more: 2.0 to 2.13 times the resident blocks on sm_80, 89, 90 and 120, 1.07 to 1.33 times on sm_86
  (`GpuSpec.shared.carveout_headroom`), or the largest configuration where none has that room.
It reproduces the eight launches measured on an H200 and 17 of 18 in published Nsight Compute reports; the one it misses
is in tests/unit/test_carveout.py. All of them were used to find the rule, so they do not vouch for it elsewhere.

Not modelled: a preferred carve-out set by the program, and the configuration that an earlier kernel left on the SM.
"""

from __future__ import annotations

from gemmsim.errors import GemmsimError
from gemmsim.gpu.limits import blocks_by_registers, blocks_by_warps, shared_bytes_allocated
from gemmsim.gpu.spec import GpuSpec

FEW_BLOCKS = 2  # up to so many resident blocks get no headroom


def choose_carveout(gpu: GpuSpec, registers: int, threads_per_block: int, shared_bytes_per_block: int) -> int:
    """Shared memory in bytes that the driver configures on each SM, one of `gpu.shared.carveouts_bytes`.

    `registers` a thread; `shared_bytes_per_block` static and dynamic, without what the system reserves.
    Raises GemmsimError where no configuration holds a block.
    """
    a_block = shared_bytes_allocated(shared_bytes_per_block, gpu)
    largest = gpu.shared.carveouts_bytes[-1]
    if a_block > largest:
        raise GemmsimError(
            f"{shared_bytes_per_block} bytes of shared memory a block; {gpu.name} has at most "
            f"{gpu.shared.max_bytes_per_block}"
        )
    resident = min(
        gpu.sm.max_blocks,
        blocks_by_warps(threads_per_block, gpu),
        blocks_by_registers(registers, threads_per_block, gpu),
    )
    wanted = float(resident)
    if resident > FEW_BLOCKS:
        wanted = min(resident * gpu.shared.carveout_headroom, gpu.sm.max_blocks)
    return next((size for size in gpu.shared.carveouts_bytes if size >= wanted * a_block), largest)


def l1_bytes(gpu: GpuSpec, carveout_bytes: int) -> int:
    """L1 capacity of an SM in bytes."""
    return gpu.l1.unified_bytes - carveout_bytes
