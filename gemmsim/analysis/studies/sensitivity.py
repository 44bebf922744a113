"""Says of each number of a GPU's description which direction is better and what must run again when it changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gemmsim.gpu.fields import types
from gemmsim.launch.spec import Labels


class Better(StrEnum):
    MORE = "more"  # sizes, rates, numbers of units
    LESS = "less"  # latencies, intervals, overheads
    NEITHER = "neither"  # see `Rule.why`


class Changes(StrEnum):
    """What must be run again: the counts and then the time, the time alone, or nothing."""

    COUNTS = "counts"
    TIME = "time"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Rule:
    """The facts known of one number of a GPU's description.

    better   which direction makes a launch faster
    changes  what must be run again when the number changes
    why      why no direction is better, "" where one is
    """

    better: Better
    changes: Changes
    why: str = ""


_SIZE, _RATE = Rule(Better.MORE, Changes.COUNTS), Rule(Better.MORE, Changes.TIME)
_LATENCY, _LEFT_OUT = Rule(Better.LESS, Changes.TIME), Rule(Better.LESS, Changes.COUNTS)


def _no(why: str) -> Rule:
    return Rule(Better.NEITHER, Changes.NOTHING, why)


_STRUCTURE = _no("structure that code is compiled for or the models are built on")
_LIMIT = _no("a limit: a launch that is within it gains nothing")
_PEAK = _no("a figure to compare with, of which no time is made")
_FIXED = _no("it says how a latency follows the clock: at clock.sm_load it changes nothing")
_POWER = _no("it lowers the clock where work takes more power than the board allows: see clock.sm_load")

# Section and name of a key -> its rule, where the name alone does not decide it: see `rule_of`.
RULES: dict[str, Rule] = {
    "sm.count": _SIZE,
    "sm.sub_partitions": _STRUCTURE,
    "sm.max_warps": _SIZE,
    "sm.max_blocks": _SIZE,
    "sm.max_threads_per_block": _LIMIT,
    "sm.max_barriers_per_block": _LIMIT,
    "sm.registers": _SIZE,
    "sm.max_registers_per_thread": _LIMIT,
    "sm.register_allocation_unit": _STRUCTURE,
    "sm.warp_allocation_granularity": _STRUCTURE,
    "sm.gpc_sms": _STRUCTURE,
    "sm.early_sms": _STRUCTURE,
    "sm.early_first_gpcs": _STRUCTURE,
    "sm.early_next_gpcs": _STRUCTURE,
    "clock.sm_base_hz": _PEAK,
    "clock.sm_boost_hz": _PEAK,
    "clock.sm_load_hz": _RATE,
    "clock.sm_tensor_load_hz": _RATE,
    "shared.max_bytes_per_sm": _SIZE,
    "shared.max_bytes_per_block": _LIMIT,
    "shared.default_max_bytes_per_block": _LIMIT,
    "shared.reserved_bytes_per_block": _LEFT_OUT,
    "shared.allocation_unit_bytes": _STRUCTURE,
    "shared.carveouts_bytes": _no("the largest follows shared.max_bytes_per_sm"),
    "shared.banks": _STRUCTURE,
    "shared.bank_bytes": _STRUCTURE,
    "shared.wavefronts_per_cycle": _RATE,
    "shared.carveout_headroom": _no("the driver's choice"),
    "shared.carveout_few_blocks": _no("the driver's choice"),
    "l1.unified_bytes": _SIZE,
    "l1.line_bytes": _STRUCTURE,
    "l1.sector_bytes": _STRUCTURE,
    "l1.tag_lines_per_cycle": _SIZE,
    "l1.miss_lines_per_cycle": _SIZE,
    "l1.ways": _SIZE,
    "l1.set_flips": _STRUCTURE,
    "l1.spare_lines": _STRUCTURE,
    "l1.joined_lines": _STRUCTURE,
    "l1.joined_lane_bytes": _STRUCTURE,
    "l1.joined_growth": _STRUCTURE,
    "l1.joined_behind_loads": _STRUCTURE,
    "l1.lost_lines": _STRUCTURE,
    "l1.fetch_lookups": _STRUCTURE,
    "l1.miss_bytes_per_cycle": _RATE,
    "l1.fill_bytes_per_cycle": _RATE,
    "l1.fill_turn": _STRUCTURE,
    "l1.tagged_after_shared_requests": _LATENCY,
    "l1.store_bytes_per_cycle": _RATE,
    "l2.size_bytes": _SIZE,
    "l2.partitions": _STRUCTURE,
    "l2.line_bytes": _STRUCTURE,
    "l2.sector_bytes": _STRUCTURE,
    "l2.ways": _SIZE,
    "l2.fetch_bytes": _STRUCTURE,
    "l2.merged_requests": _STRUCTURE,
    "l2.drift_steps": _STRUCTURE,
    "l2.loads_in_step": _STRUCTURE,
    "l2.read_bytes_per_s": _RATE,
    "l2.write_share": _RATE,
    "l2.slice_read_share": _RATE,
    "l2.dirty_share": _SIZE,
    "l2.evict_first_share": _SIZE,
    "l2.partial_line_sectors": _LATENCY,
    "l2.least_sectors": _LATENCY,
    "l2.fixed_latency_us": _FIXED,
    "l2.slices": _STRUCTURE,
    "l2.atomic_passing": _LATENCY,
    "l2.atomics_in_step": _STRUCTURE,
    "launch.together_share": _STRUCTURE,
    "dram.fixed_latency_us": _FIXED,
    "dram.peak_bytes_per_s": _RATE,
    "dram.achievable_fraction": _RATE,
    "dram.turnaround": _LATENCY,
    "dram.mixed_crowding": _LATENCY,
    "dram.mixed_remembered_cycles": _STRUCTURE,
    "dram.shared_sooner_cycles": _RATE,
    "dram.size_bytes": _LIMIT,
    "mma.half_work_share": _LATENCY,
    "mma.half_accumulator_share": _LATENCY,
    "warpgroup.queue_entries": _RATE,
    "warpgroup.operand_bytes_per_cycle": _RATE,
    "warpgroup.columns_per_cycle": _RATE,
    "warpgroup.math_interval": _LATENCY,
    "tma.load_bytes_per_cycle": _RATE,
    "tma.load_requests_per_cycle": _RATE,
    "tma.store_bytes_per_cycle": _RATE,
    "tma.reduction_bytes_per_cycle": _RATE,
    "tma.stores_held": _RATE,
    "tma.l2_share": _RATE,
    "tma.merged_alone": _RATE,
    "tma.merged_later": _SIZE,
    "mio.queue_entries": _RATE,
    "mio.shared_entries": _RATE,
    "mio.load_entries": _RATE,
    "mio.copy_reads_behind": _RATE,
    "register_file.read_window_cycles": _RATE,
    "register_file.uniform_row_registers": _RATE,
    "register_file.uniform_read_window_cycles": _RATE,
    "register_file.uniform_operand_window_cycles": _RATE,
    "register_file.result_write_cycles": _STRUCTURE,
    "register_file.late_read_wait_cycles": _STRUCTURE,
    "register_file.load_write_to_use_cycles": _STRUCTURE,
    "register_file.load_write_most_wait_cycles": _RATE,
    "register_file.load_write_slack_cycles": _RATE,
    "register_file.load_write_blocking": _LATENCY,
    "register_file.load_write_spare_wavefronts": _RATE,
    "memory_fence.bulk_loads": _STRUCTURE,
    "barrier.block_turn_cycles": _STRUCTURE,
    "barrier.flush_interval_cycles": _RATE,
    "fetch.line_bytes": _STRUCTURE,
    "fetch.launch_bytes": _RATE,
    "fetch.first_level_bytes": _RATE,
    "fetch.first_level_ways": _STRUCTURE,
    "fetch.second_level_bytes": _RATE,
    "fetch.second_level_ways": _STRUCTURE,
    "fetch.ahead_lines": _STRUCTURE,
    "pipes.warps_take_turns": _STRUCTURE,
    "pipes.passes_barrier": _STRUCTURE,
}


def rule_of(key: str) -> Rule:
    """Return the rule for a full key such as "l2.size_bytes" or "pipes.alu.latency_cycles".

    The numbers of the sections "peak" and "power" have one rule each. All others are looked up in `RULES` by section
    and name, "pipes.alu.latency_cycles" as "pipes.latency_cycles". A key that `RULES` lacks must end with "_cycles" or
    "_us": a smaller number is then better, and changes the time alone.
    """
    section, *_, name = key.split(".")
    if section in ("peak", "power"):
        return _PEAK if section == "peak" else _POWER
    default = {f"{section}.{name}": _LATENCY} if name.endswith(("_cycles", "_us")) else {}
    return (default | RULES)[f"{section}.{name}"]


def varied_keys() -> list[str]:
    """Return the keys of the numbers of a GPU for which one direction is better, in the order of `GpuSpec`."""
    return [key for key in types() if rule_of(key).better != Better.NEITHER]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of making one number of the GPU better.

    key            full key of the number, such as "l2.size_bytes"
    before, after  the number in its field's own unit; where it is a list, the list's first value
    unit           unit in the GPU file; before / unit_factor is in this unit
    change_pct     percent by which the number changed; more than was asked for where it must be a whole number
    time_us        time of the launch with the better number
    saved_us       time that the better number saves
    saved_pct      saved_us in percent of the time without the change
    """

    key: str
    better: Better
    changes: Changes
    before: float
    after: float
    unit: str
    unit_factor: float
    change_pct: float
    time_us: float
    saved_us: float
    saved_pct: float


@dataclass(frozen=True)
class Sensitivity:
    """The effects of all numbers that were tried on one launch, the largest saving first.

    asked_pct  by how many percent each number was made better
    time_us    time of the launch without changes
    skipped    {key of a number: why it was not tried}
    """

    labels: Labels
    gpu: str
    asked_pct: float
    time_us: float
    effects: tuple[Effect, ...]
    skipped: dict[str, str]

    @property
    def scatter_pct(self) -> float:
        """The largest percentage by which a better number made the launch slower.

        A better number does not slow a launch by itself, but it can make warps issue in another order. A saving that is
        no larger than this percentage may come from the order, too.
        """
        return max(0.0, *(-effect.saved_pct for effect in self.effects))
