"""Makes one number of a GPU better, for example by 10 %, and changes the numbers that depend on it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gemmsim.gpu.spec import GpuSpec

KIB = 1024

# What cannot exceed 1.
_SHARES = (
    *("dram.achievable_fraction", "l2.write_share", "l2.dirty_share", "l2.evict_first_share"),
    *("tma.merged_alone", "tma.merged_later"),
)


def value_of(gpu: GpuSpec, key: str) -> Any:
    """Return the number, or tuple of numbers, that a full key such as "l2.size_bytes" names."""
    section, *pipe, name = key.split(".")
    return getattr(gpu.pipes[pipe[0]] if pipe else getattr(gpu, section), name)


def with_values(gpu: GpuSpec, values: dict[str, Any]) -> GpuSpec:
    """Return a copy of `gpu` with other `values` ({full key: value}), but with the provenance and the hash of `gpu`."""
    for key, value in values.items():
        section, *pipe, name = key.split(".")
        if pipe:
            changed = {pipe[0]: replace(gpu.pipes[pipe[0]], **{name: value})}
            gpu = replace(gpu, pipes=gpu.pipes | changed)
        else:
            gpu = replace(gpu, **{section: replace(getattr(gpu, section), **{name: value})})
    return gpu


def better_values(gpu: GpuSpec, key: str, more: bool, share: float) -> dict[str, Any]:
    """Return values ({full key: value}) that make `key` better by `share` (0.1 is 10 %), or by the least possible step.

    more  whether a larger value is better

    The result has the value of `key` and the values that must change with it. Whole numbers stay whole. Latencies lose
    whole cycles, as the models count in whole cycles. Sizes stay multiples of what is allocated. The result is {} where
    `key` cannot be better.
    """
    before = value_of(gpu, key)
    if isinstance(before, tuple):
        after: Any = tuple(_better(gpu, key, one, more, share) for one in before)
    else:
        after = _better(gpu, key, before, more, share)
    if after == before:
        return {}
    return {key: after} | _followers(gpu, key, after)


def _better(gpu: GpuSpec, key: str, before: float, more: bool, share: float) -> float:
    if not before:
        return before  # 0: the GPU has nothing that could be better
    if key in _SHARES:
        return min(1.0, before * (1 + share))
    if key == "l2.far_latency_cycles":
        least = gpu.l2.hit_latency_cycles
        return max(least, before * (1 - share)) if gpu.l2.partitions > 1 else before
    if more:
        return (
            _stepped(before * (1 + share), before, _step(gpu, key)) if isinstance(before, int) else before * (1 + share)
        )
    if isinstance(before, int):
        return min(before - 1, round(before * (1 - share)))
    if key.endswith("latency_cycles") and before == int(before):
        return float(max(1, min(int(before) - 1, math.ceil(before * (1 - share)))))
    return before * (1 - share)


def _stepped(wanted: float, before: int, step: int) -> int:
    """Return the multiple of `step` nearest to `wanted`, but always one above `before`."""
    return max(round(wanted / step), before // step + 1) * step


def _step(gpu: GpuSpec, key: str) -> int:
    sm = gpu.sm
    return {
        "sm.max_warps": math.lcm(sm.sub_partitions, sm.warp_allocation_granularity),
        "sm.registers": sm.sub_partitions * sm.register_allocation_unit,
        "shared.max_bytes_per_sm": KIB,
        "l1.unified_bytes": KIB,
        "l2.size_bytes": gpu.l2.line_bytes * gpu.l2.ways,
        "fetch.first_level_bytes": gpu.fetch.line_bytes * gpu.fetch.first_level_ways,
        "fetch.second_level_bytes": gpu.fetch.line_bytes * gpu.fetch.second_level_ways,
    }.get(key, 1)


def _followers(gpu: GpuSpec, key: str, after: Any) -> dict[str, Any]:
    if key == "shared.max_bytes_per_sm":
        shared = gpu.shared
        found = {
            "shared.carveouts_bytes": (*shared.carveouts_bytes[:-1], after),
            "shared.max_bytes_per_block": after - (shared.max_bytes_per_sm - shared.max_bytes_per_block),
        }
        return found | ({"l1.unified_bytes": after} if after > gpu.l1.unified_bytes else {})
    return {}
