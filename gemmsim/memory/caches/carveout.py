"""Predicts which shared-memory configuration the driver picks for a launch. What remains of the unified array is L1.

NVIDIA does not publish the rule (the CUDA programming guide: "the driver automatically configures"), so this one is
empirical. `launch__shared_mem_config_size` shows the driver's choices. Of those at hand

- launches with one resident block, and launches whose threads leave room for no more than two blocks
  (`carveout_few_blocks`), get the smallest configuration that holds the resident blocks;
- others get more room, 2.0 to 2.13 times the resident blocks on sm_80, 89, 90 and 120, and 1.07 to 1.33 times on sm_86
  (`GpuSpec.shared.carveout_headroom`). This headroom goes no further than the first configuration that is half of the
  unified array (132 KiB of an H200's 256, 100 of an A100's 192).

The rule reproduces 31 of the 33 launches of the ladder of kernels (kernels/) on an H200 (Nsight Compute, driver
580.159.04), the eight measured there before and 17 of 18 in published reports; tests/hand/memory/test_carveout.py has
those it misses. All of them were used to find the rule, so they do not vouch for it elsewhere.

Not modelled: a preferred carve-out set by the program, and the configuration that an earlier kernel left on the SM.
"""

from __future__ import annotations

from gemmsim.gpu.limits import blocks_by_registers, blocks_by_warps, shared_bytes_allocated
from gemmsim.gpu.spec import GpuSpec
from gemmsim.support.errors import GemmsimError


def choose_carveout(gpu: GpuSpec, registers: int, threads_per_block: int, shared_bytes_per_block: int) -> int:
    """Return the shared memory in bytes that the driver configures on each SM, one of `gpu.shared.carveouts_bytes`.

    registers               registers a thread
    shared_bytes_per_block  shared memory of a block, static and dynamic, without what the system reserves

    Raises GemmsimError where no configuration holds a block.
    """
    a_block = shared_bytes_allocated(shared_bytes_per_block, gpu)
    largest = gpu.shared.carveouts_bytes[-1]
    if a_block > largest:
        raise GemmsimError(
            f"{shared_bytes_per_block} bytes of shared memory a block; {gpu.name} has at most "
            f"{gpu.shared.max_bytes_per_block}"
        )
    by_warps = blocks_by_warps(threads_per_block, gpu)
    resident = min(gpu.sm.max_blocks, by_warps, blocks_by_registers(registers, threads_per_block, gpu))
    needed = wanted = float(resident * a_block)
    if resident > 1 and by_warps > gpu.shared.carveout_few_blocks:
        room = min(resident * gpu.shared.carveout_headroom, gpu.sm.max_blocks) * a_block
        half = next((size for size in gpu.shared.carveouts_bytes if 2 * size >= gpu.l1.unified_bytes), largest)
        wanted = max(needed, min(room, half))
    return next((size for size in gpu.shared.carveouts_bytes if size >= wanted), largest)
