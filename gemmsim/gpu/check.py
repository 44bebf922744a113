"""Rules that hold for every GPU, real or not, each with the message that the user reads."""

from __future__ import annotations

import math
import re

from gemmsim.gpu.fields import types
from gemmsim.gpu.improve import value_of
from gemmsim.gpu.spec import GpuSpec
from gemmsim.support.errors import GemmsimError

MAY_BE_ZERO = (
    "peak.",
    "shared.reserved_bytes_per_block",
    "shared.carveouts_bytes",
    "launch.",
    "l1.tag_bank_flips",
    "l1.partial_line_cycles",
    "l1.tagged_after_shared_requests",
    "mio.shared_entries",
    "sources_read.",
    "register_file.second_pass_cycles",
    "register_file.load_write_",
    "barrier.flush_interval_cycles",
    "sm.gpc_sms",
    "sm.early_",
    "shared.carveout_few_blocks",
)


def check(gpu: GpuSpec) -> GpuSpec:
    """Return `gpu` as it is. Raises GemmsimError with the first rule that it breaks."""
    for key in gpu.provenance:
        allowed = key.startswith(MAY_BE_ZERO) or types()[key] == "bool"
        value = value_of(gpu, key)
        for number in value if isinstance(value, tuple) else (value,):
            if not math.isfinite(number) or number < 0 or (number == 0 and not allowed):
                limit = "at least" if allowed else "above"
                raise GemmsimError(f"GPU '{gpu.name}': {key} must be {limit} 0, not {number}")
    for holds, message in _rules(gpu):
        if not holds:
            raise GemmsimError(f"GPU '{gpu.name}': {message}")
    return gpu


def _rules(gpu: GpuSpec) -> list[tuple[bool, str]]:
    sm, shared, l1, l2, clock = gpu.sm, gpu.shared, gpu.l1, gpu.l2, gpu.clock
    most = shared.max_bytes_per_sm
    return [
        (re.fullmatch(r"sm_\d{2,3}", gpu.arch) is not None, f"arch must look like 'sm_90', not '{gpu.arch}'"),
        (
            sm.max_threads_per_block <= 32 * sm.max_warps,
            f"sm.max_threads_per_block ({sm.max_threads_per_block}) exceeds 32 * sm.max_warps ({32 * sm.max_warps})",
        ),
        (
            sm.max_warps % sm.sub_partitions == 0 and sm.registers % sm.sub_partitions == 0,
            f"sm.max_warps and sm.registers must divide by sm.sub_partitions ({sm.sub_partitions})",
        ),
        (
            most <= l1.unified_bytes,
            f"shared.max_bytes_per_sm ({most}) exceeds l1.unified_bytes ({l1.unified_bytes}), of which it is a part",
        ),
        (
            shared.max_bytes_per_block + shared.reserved_bytes_per_block <= most,
            f"shared.max_bytes_per_block ({shared.max_bytes_per_block}) and the reserved "
            f"{shared.reserved_bytes_per_block} exceed shared.max_bytes_per_sm ({most})",
        ),
        (
            shared.default_max_bytes_per_block <= shared.max_bytes_per_block,
            f"shared.default_max_bytes_per_block ({shared.default_max_bytes_per_block}) exceeds "
            f"shared.max_bytes_per_block ({shared.max_bytes_per_block})",
        ),
        (
            list(shared.carveouts_bytes) == sorted(set(shared.carveouts_bytes)) and shared.carveouts_bytes[-1] == most,
            f"shared.carveouts_bytes must ascend and end with shared.max_bytes_per_sm ({most})",
        ),
        (
            l1.line_bytes % l1.sector_bytes == 0 and l2.line_bytes % l2.sector_bytes == 0,
            "line_bytes must be a multiple of sector_bytes in l1 and l2",
        ),
        (
            max(l1.tag_bank_flips) < 4 and len(l1.tag_bank_flips) <= 32,
            "l1.tag_bank_flips must be at most 32 numbers below 4, the number of tag banks",
        ),
        (
            l2.far_latency_cycles >= l2.hit_latency_cycles,
            f"l2.far_latency_cycles ({l2.far_latency_cycles:g}) is below l2.hit_latency_cycles "
            f"({l2.hit_latency_cycles:g})",
        ),
        (
            clock.sm_base_hz <= clock.sm_boost_hz,
            f"clock.sm_base_hz ({clock.sm_base_hz:g}) exceeds clock.sm_boost_hz ({clock.sm_boost_hz:g})",
        ),
        (
            gpu.dram.achievable_fraction <= 1,
            f"dram.achievable_fraction ({gpu.dram.achievable_fraction:g}) exceeds 1",
        ),
    ]
