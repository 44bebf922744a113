"""Checks a GPU's numbers against rules that hold for every GPU, real or not. Each rule has a message for the user."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gemmsim.gpu.fields import types
from gemmsim.gpu.improve import value_of
from gemmsim.gpu.spec import GpuSpec
from gemmsim.gpu.units import dimension
from gemmsim.support.errors import GemmsimError
from gemmsim.support.warp import WARP_LANES

MAY_BE_ZERO = (  # keys that begin so may be 0
    "peak.",
    "power.",
    "shared.reserved_bytes_per_block",
    "shared.carveouts_bytes",
    "launch.",
    "l1.set_flips",
    "l1.spare_lines",
    "l1.lost_lines",
    "l1.partial_line_cycles",
    "l1.copy_cycles",
    "l1.zeros_cycles",
    "l1.tagged_after_shared_requests",
    "mio.shared_entries",
    "mio.load_entries",
    "mio.copy_reads_behind",
    "sources_read.",
    "register_file.second_pass_cycles",
    "register_file.late_read_wait_cycles",
    "register_file.load_write_",
    "barrier.block_turn_cycles",
    "barrier.flush_interval_cycles",
    "sm.gpc_sms",
    "sm.early_",
    "shared.carveout_few_blocks",
    "clock.tensor_",
    "l2.fixed_latency_us",
    "l2.latency_spread_cycles",
    "l2.latency_deviation_cycles",
    "l2.partial_line_sectors",
    "dram.fixed_latency_us",
    "dram.latency_spread_cycles",
    "dram.latency_deviation_cycles",
    "dram.shared_sooner_cycles",
    "dram.queue_latency_cycles",
    "dram.mixed_latency_cycles",
    "dram.mixed_crowding",
    "l2.atomic_passing",
    "tma.queue_latency_cycles",
    "l1.miss_interval_cycles",
    "l1.narrow_fill_cycles",
    "tma.merged_alone",
    "tma.merged_later",
    "tma.map_latency_cycles",
    "tma.own_map_latency_cycles",
    "tma.map_drop_cycles",
    "fetch.launch_bytes",
    "fetch.near_line_spread_cycles",
    "fetch.ahead_lines",
    "dram.turnaround",
)

# The most that a number may be, by the dimension of its field: far beyond any GPU, and within what the models can hold.
MOST = {
    "number": 1e6,
    "bytes": 2.0**34,
    "bytes_per_s": 1e16,
    "bytes_per_cycle": 1e6,
    "hz": 1e11,
    "cycles": 1e7,
    "us": 1e6,
    "flops": 1e19,
    "ops": 1e19,
    "watts": 1e5,
    "joules": 1e-3,
}
_MOST_OF = {"sm.count": 10_000, "dram.size_bytes": 2.0**50, "dram.mixed_crowding": 0.99}
_LEAST_OF = {"hz": 1e6}


def check(gpu: GpuSpec) -> GpuSpec:
    """Return `gpu` as it is. Raises GemmsimError with the first rule that it breaks."""
    for key in gpu.provenance:
        allowed = key.startswith(MAY_BE_ZERO) or types()[key] == "bool"
        value = value_of(gpu, key)
        for number in value if isinstance(value, tuple) else (value,):
            if not math.isfinite(number) or number < 0 or (number == 0 and not allowed):
                limit = "at least" if allowed else "above"
                raise GemmsimError(f"GPU '{gpu.name}': {key} must be {limit} 0, not {number}")
            kind = dimension(key.rpartition(".")[2])
            least, most = _LEAST_OF.get(kind, 0), _MOST_OF.get(key, MOST[kind])
            if not least <= number <= most:
                raise GemmsimError(f"GPU '{gpu.name}': {key} must be from {least:g} to {most:g}, not {number:g}")
    for holds, message in _rules(gpu):
        if not holds:
            raise GemmsimError(f"GPU '{gpu.name}': {message}")
    return gpu


def _rules(gpu: GpuSpec) -> Iterator[tuple[bool, str]]:
    """Yield (holds, message) for each rule; the user reads the message where the rule does not hold."""
    sm, shared, l1, l2, clock = gpu.sm, gpu.shared, gpu.l1, gpu.l2, gpu.clock
    most, a_block, reserved = shared.max_bytes_per_sm, shared.max_bytes_per_block, shared.reserved_bytes_per_block
    threads, carveouts, flips = sm.max_threads_per_block, shared.carveouts_bytes, l1.set_flips
    yield re.fullmatch(r"sm_\d{2,3}", gpu.arch) is not None, f"arch must look like 'sm_90', not '{gpu.arch}'"
    barriers = f"sm.max_barriers_per_block ({sm.max_barriers_per_block})"
    yield sm.max_barriers_per_block >= 16, f"{barriers} is below 16: instructions name barriers 0 to 15"
    warps = f"{WARP_LANES} * sm.max_warps ({WARP_LANES * sm.max_warps})"
    yield threads <= WARP_LANES * sm.max_warps, f"sm.max_threads_per_block ({threads}) exceeds {warps}"
    even = sm.max_warps % sm.sub_partitions == 0 and sm.registers % sm.sub_partitions == 0
    yield even, f"sm.max_warps and sm.registers must divide by sm.sub_partitions ({sm.sub_partitions})"
    whole = f"l1.unified_bytes ({l1.unified_bytes}), of which it is a part"
    yield most <= l1.unified_bytes, f"shared.max_bytes_per_sm ({most}) exceeds {whole}"
    both = f"shared.max_bytes_per_block ({a_block}) and the reserved {reserved}"
    yield a_block + reserved <= most, f"{both} exceed shared.max_bytes_per_sm ({most})"
    default = f"shared.default_max_bytes_per_block ({shared.default_max_bytes_per_block})"
    yield shared.default_max_bytes_per_block <= a_block, f"{default} exceeds shared.max_bytes_per_block ({a_block})"
    ascending = list(carveouts) == sorted(set(carveouts)) and carveouts[-1] == most
    yield ascending, f"shared.carveouts_bytes must ascend and end with shared.max_bytes_per_sm ({most})"
    set_bytes = l2.line_bytes * l2.ways * l2.partitions
    yield l2.size_bytes >= set_bytes, f"l2.size_bytes ({l2.size_bytes}) is below one set of lines, {set_bytes}"
    sectors = l1.line_bytes % l1.sector_bytes == 0 and l2.line_bytes % l2.sector_bytes == 0
    yield sectors, "line_bytes must be a multiple of sector_bytes in l1 and l2"
    flips_fit = 0 < max(flips) < 4096 and len(flips) <= 48
    yield flips_fit, "l1.set_flips must be at most 48 numbers below 4096, one of them above 0"
    sets = 1 << max(flips).bit_length()
    yield _reached(flips) == sets, f"l1.set_flips reach only {_reached(flips)} of the {sets} sets that they name"
    lost_fit = max(l1.lost_lines) <= 64 and l1.lost_lines[2] > 0
    yield lost_fit, "l1.lost_lines must be at most 64 each, and above 0 where a line finds a free tag"
    yield l1.unified_bytes <= 1 << 22, f"l1.unified_bytes ({l1.unified_bytes}) exceeds 4 MiB"
    far, near = l2.far_latency_cycles, l2.hit_latency_cycles
    yield far >= near, f"l2.far_latency_cycles ({far:g}) is below l2.hit_latency_cycles ({near:g})"
    base, boost = clock.sm_base_hz, clock.sm_boost_hz
    yield base <= boost, f"clock.sm_base_hz ({base:g}) exceeds clock.sm_boost_hz ({boost:g})"
    fetch = gpu.fetch
    for level in ("first", "second"):
        size, ways = getattr(fetch, f"{level}_level_bytes"), getattr(fetch, f"{level}_level_ways")
        sets_fit = size > 0 and size % (ways * fetch.line_bytes) == 0
        a_set = f"{ways} lines of {fetch.line_bytes} bytes"
        yield sets_fit, f"fetch.{level}_level_bytes ({size}) is not a multiple of a set, {a_set}"
    power, least = gpu.power, min(gpu.power.limit_watts, gpu.power.burst_limit_watts)
    anyway = f"power.busy_watts ({power.busy_watts:g}), which the board takes anyway"
    yield not power.busy_watts or least > power.busy_watts, f"power.limit_watts ({least:g}) is not above {anyway}"
    share = gpu.dram.achievable_fraction
    yield share <= 1, f"dram.achievable_fraction ({share:g}) exceeds 1"
    for name in ("write_share", "dirty_share", "evict_first_share"):
        yield getattr(l2, name) <= 1, f"l2.{name} ({getattr(l2, name):g}) exceeds 1"
    for name, part in (("alone", gpu.tma.merged_alone), ("later", gpu.tma.merged_later)):
        yield part <= 1, f"tma.merged_{name} ({part:g}) exceeds 1"


def _reached(flips: tuple[int, ...]) -> int:
    """Return how many different exclusive ors some of these numbers have."""
    basis: list[int] = []
    for flipped in flips:
        rest = flipped
        for one in basis:
            rest = min(rest, rest ^ one)
        if rest:
            basis.append(rest)
    return 1 << len(basis)
