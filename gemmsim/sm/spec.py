"""Converts what a GPU file says into the numbers that the SM model needs. No simulation changes these numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.native.records import Reals, Record, allocate, dtype_of

INSTRUCTION_BYTES = 16  # Volta and later
WARPGROUPS = 8  # of a block


@dataclass(frozen=True, slots=True)
class Rates:
    """One SM's shares of the bandwidth of L2 and DRAM, in bytes an SM cycle, and their latencies, in SM cycles."""

    link_bytes_per_cycle: float  # from L2 to L1
    l2_bytes_per_cycle: float
    l2_write_bytes_per_cycle: float
    dram_bytes_per_cycle: float
    l2_latency_cycles: float
    dram_latency_cycles: float
    dram_shared_latency_cycles: float
    tma_load_latency_cycles: float
    near_line_cycles: float
    atomic_cycles_per_ps: float  # for which this SM's atomics take their way out, as those of all SMs wait for a slice
    block_interval_cycles: float  # from one block's dispatch to this SM to the next one's

    @classmethod
    def share(cls, gpu: GpuSpec, active_sms: int, sm_clock_hz: float) -> Rates:
        """Return equal shares for `active_sms` SMs.

        Where L2 has two partitions, lines are taken to be spread evenly over the near and the far one. The GPU file's
        latencies are those at `clock.sm_load_hz`; at another clock their fixed part is another number of cycles (own
        microbenchmark, tests/records/h200_latency_clock.json). They are those of the SM that waits least. The
        launch ends with the one of its SMs that waits longest: the largest of so many latencies that lie evenly over
        `latency_spread_cycles` (own microbenchmarks, tests/records/h200_loaded_latency.json and h200_streams.json). So
        it is with lines of code from the second level (tests/records/h200_code_loops.json). SMs that ask DRAM for the
        same lines wait alike: none is farther than the others (tests/records/h100_shared_lines.json).

        Blocks are dispatched one by one, to the SMs in turn.
        """
        l2, dram = gpu.l2, gpu.dram
        l2_latency = (l2.hit_latency_cycles + l2.far_latency_cycles) / 2 if l2.partitions > 1 else l2.hit_latency_cycles
        faster_mhz = (sm_clock_hz - gpu.clock.sm_load_hz) * 1e-6
        slowest = (active_sms - 1) / (active_sms + 1)
        l2_more, dram_more = (
            memory.latency_spread_cycles * slowest + memory.fixed_latency_us * faster_mhz for memory in (l2, dram)
        )
        shared = dram.latency_cycles - dram.shared_sooner_cycles + dram.fixed_latency_us * faster_mhz
        share = l2.read_bytes_per_s / sm_clock_hz / active_sms
        return cls(
            link_bytes_per_cycle=gpu.l1.miss_bytes_per_cycle,
            l2_bytes_per_cycle=share,
            l2_write_bytes_per_cycle=min(gpu.l1.miss_bytes_per_cycle, share * l2.write_share),
            dram_bytes_per_cycle=dram.peak_bytes_per_s * dram.achievable_fraction / sm_clock_hz / active_sms,
            l2_latency_cycles=max(1.0, l2_latency + l2_more),
            dram_latency_cycles=max(1.0, dram.latency_cycles + dram_more),
            dram_shared_latency_cycles=max(1.0, shared),
            tma_load_latency_cycles=max(1.0, gpu.tma.load_latency_cycles + l2_more),
            atomic_cycles_per_ps=1e-12 * sm_clock_hz * active_sms,
            near_line_cycles=gpu.fetch.near_line_cycles + gpu.fetch.near_line_spread_cycles * slowest,
            block_interval_cycles=max(
                gpu.launch.block_interval_cycles, gpu.launch.dispatch_interval_us * 1e-6 * sm_clock_hz * active_sms
            ),
        )


class Conditions(NamedTuple):
    """Under which conditions an SM is simulated.

    oldest_block_first  as in `TimingOptions`
    warm_code           whether its instruction caches hold the code as a launch of the same kernel has left it
    """

    oldest_block_first: bool = True
    warm_code: bool = False


USUAL = Conditions()


class Spec(Record):
    """A GPU's SM in cycles. `GpuSpec` says what each number means; the functions of `units` read it and never write.

    Where `GpuSpec` gives a rate or a size in bytes, the field here is the number of cycles, lines or instructions that
    follows from it.
    """

    sub_partitions: int
    pipes: int
    pipe_intervals: Reals  # cycles between two instructions, one a pipe
    barriers_per_block: int  # those that have names, those of warpgroups, and the cluster's
    queue_entries: int
    multiply_queue_entries: int
    shared_entries: int
    load_entries: int
    copy_reads_behind: int
    line_instructions: int
    first_level_sets: int
    first_level_ways: int
    second_level_sets: int
    second_level_ways: int
    ahead_lines: int
    block_start_cycles: int
    block_interval_cycles: float
    other_sources_read_cycles: int
    tagged_after_shared_requests: int
    oldest_block_first: int  # 1: as the hardware does; 0: whichever warp issued longest ago (an ablation)
    result_write_cycles: int
    late_read_wait_cycles: int
    load_write_to_use_cycles: int
    load_write_most_wait_cycles: int
    load_write_hold_cycles: int
    load_write_slack_cycles: int
    load_write_blocking: float
    load_write_spare_wavefronts: float
    issue_to_address_cycles: float
    address_cycles: float
    shared_address_cycles: float
    wavefront_cycles: float
    wavefront_latency_cycles: float
    group_latency_cycles: float
    request_cycles: float
    sector_link_cycles: float
    miss_interval_cycles: float
    sector_l2_cycles: float
    line_l2_cycles: float
    loads_in_step: float
    stored_sector_l2_cycles: float
    slice_sector_cycles: float
    partial_line_l2_cycles: float
    atomic_cycles_per_ps: float
    sector_dram_cycles: float
    sector_fill_cycles: float
    fill_turn: float
    sector_out_cycles: float
    tagged_request_cycles: float
    partial_line_cycles: float
    zeros_cycles: float
    l2_latency_cycles: float
    dram_latency_cycles: float
    dram_shared_latency_cycles: float
    dram_deviation_cycles: float
    l2_deviation_cycles: float
    slowest: Reals  # `units.slowest_line.deviations`
    dram_queue_cycles: float
    dram_mixed_latency_cycles: float
    dram_mixed_crowding: float
    dram_mixed_remembered_cycles: float
    dram_turnaround: float
    near_line_cycles: float
    far_line_cycles: float
    multiply_start_cycles: float
    multiply_finish_cycles: float
    math_interval: float
    arrival_cycles: float
    release_cycles: float
    flush_cycles: float
    flush_store_cycles: float
    flush_most_store_cycles: float
    flush_interval_cycles: float
    block_turn_cycles: int
    cluster_cycles: float
    remote_load_cycles: float
    phase_arrival_cycles: float
    remote_arrival_cycles: float
    wake_cycles: float
    next_wake_cycles: float
    tma_stores_held: int
    tma_load_byte_cycles: float
    tma_load_request_cycles: float
    tma_store_byte_cycles: float
    tma_reduction_byte_cycles: float
    tma_load_cycles: float
    tma_sector_l2_cycles: float
    tma_least_sectors: float
    tma_queue_cycles: float
    tma_merged_alone: float
    tma_store_cycles: float
    fence_acknowledged_cycles: float
    fence_bulk_loads: int
    map_cycles: int
    own_map_cycles: int
    map_drop_cycles: int


# fields that this and `Barrier` have in common
_OF_BARRIERS = (
    "arrival_cycles",
    "flush_cycles",
    "flush_store_cycles",
    "flush_most_store_cycles",
    "flush_interval_cycles",
    "block_turn_cycles",
    "cluster_cycles",
)
# fields that this and `RegisterFile` have in common
_OF_PORTS = (
    "result_write_cycles",
    "late_read_wait_cycles",
    "load_write_to_use_cycles",
    "load_write_most_wait_cycles",
    "load_write_hold_cycles",
    "load_write_slack_cycles",
    "load_write_blocking",
    "load_write_spare_wavefronts",
)
_OF_SHARED = ("wavefront_latency_cycles", "group_latency_cycles")
_OF_DRAM = ("mixed_latency_cycles", "mixed_crowding", "mixed_remembered_cycles", "turnaround")  # after "dram_"
_OF_QUEUES = ("queue_entries", "shared_entries", "load_entries", "copy_reads_behind", "issue_to_address_cycles")
_OF_MULTIPLICATIONS = ("queue_entries", "start_cycles", "finish_cycles")  # "multiply_" stands before these
_OF_TMA = ("load", "store", "reduction")


def spec_of(
    gpu: GpuSpec, rates: Rates, oldest_block_first: bool, intervals_at: int, slowest_at: int
) -> NDArray[np.void]:
    """Return a GPU's `Spec`, as an array of one record.

    intervals_at  address of the pipes' issue intervals (float64, in the order of `gpu.pipes`)
    slowest_at    address of what `units.slowest_line.deviations` returns
    """
    fetch, l1, shared, mio, ports = gpu.fetch, gpu.l1, gpu.shared, gpu.mio, gpu.register_file
    values: dict[str, float] = {
        "sub_partitions": gpu.sm.sub_partitions,
        "pipes": len(gpu.pipes),
        "pipe_intervals": intervals_at,
        "barriers_per_block": gpu.sm.max_barriers_per_block + WARPGROUPS + 1,
        **{name: getattr(mio, name) for name in _OF_QUEUES},
        **{f"multiply_{name}": getattr(gpu.warpgroup, name) for name in _OF_MULTIPLICATIONS},
        "math_interval": gpu.warpgroup.math_interval,
        "line_instructions": fetch.line_bytes // INSTRUCTION_BYTES,
        "first_level_sets": fetch.first_level_bytes // fetch.line_bytes // fetch.first_level_ways,
        "second_level_sets": fetch.second_level_bytes // fetch.line_bytes // fetch.second_level_ways,
        **{name: getattr(fetch, name) for name in ("first_level_ways", "second_level_ways")},
        "ahead_lines": fetch.ahead_lines,
        # At least one cycle each: what one unit does in a cycle, another sees in the next.
        "block_start_cycles": max(1, round(gpu.launch.block_start_cycles)),
        "block_interval_cycles": rates.block_interval_cycles,
        "release_cycles": max(1.0, gpu.barrier.release_cycles),
        "other_sources_read_cycles": gpu.sources_read.other_cycles,
        "tagged_after_shared_requests": l1.tagged_after_shared_requests,
        "oldest_block_first": oldest_block_first,
        **{name: getattr(ports, name) for name in _OF_PORTS},
        "address_cycles": gpu.pipes["lsu"].issue_interval_cycles,
        "shared_address_cycles": mio.shared_load_interval_cycles,
        "wavefront_cycles": 1 / shared.wavefronts_per_cycle,
        **{name: getattr(shared, name) for name in _OF_SHARED},
        "request_cycles": shared.request_interval_cycles,
        "sector_link_cycles": l1.sector_bytes / rates.link_bytes_per_cycle,
        "miss_interval_cycles": l1.miss_interval_cycles,
        "sector_l2_cycles": l1.sector_bytes / rates.l2_bytes_per_cycle,
        "line_l2_cycles": gpu.l2.least_sectors * l1.sector_bytes / rates.l2_bytes_per_cycle,
        "loads_in_step": gpu.l2.loads_in_step,
        "stored_sector_l2_cycles": l1.sector_bytes / rates.l2_write_bytes_per_cycle,
        "slice_sector_cycles": l1.sector_bytes / rates.l2_bytes_per_cycle / gpu.l2.slice_read_share,
        "partial_line_l2_cycles": gpu.l2.partial_line_sectors * l1.sector_bytes / rates.l2_write_bytes_per_cycle,
        "atomic_cycles_per_ps": rates.atomic_cycles_per_ps,
        "sector_dram_cycles": l1.sector_bytes / rates.dram_bytes_per_cycle,
        "sector_fill_cycles": l1.sector_bytes / l1.fill_bytes_per_cycle,
        "fill_turn": l1.fill_turn,
        "sector_out_cycles": l1.sector_bytes / l1.store_bytes_per_cycle,
        "tagged_request_cycles": l1.tagged_request_cycles,
        "partial_line_cycles": l1.partial_line_cycles,
        "zeros_cycles": l1.zeros_cycles,
        "l2_latency_cycles": rates.l2_latency_cycles,
        "dram_latency_cycles": rates.dram_latency_cycles,
        "dram_shared_latency_cycles": rates.dram_shared_latency_cycles,
        "dram_deviation_cycles": gpu.dram.latency_deviation_cycles,
        "l2_deviation_cycles": gpu.l2.latency_deviation_cycles,
        "slowest": slowest_at,
        "dram_queue_cycles": gpu.dram.queue_latency_cycles,
        **{f"dram_{name}": getattr(gpu.dram, name) for name in _OF_DRAM},
        "near_line_cycles": rates.near_line_cycles,
        "far_line_cycles": fetch.far_line_cycles,
        **{name: getattr(gpu.barrier, name) for name in _OF_BARRIERS},
        "remote_load_cycles": shared.remote_load_latency_cycles,
        "phase_arrival_cycles": max(1.0, gpu.mbarrier.arrival_cycles),
        "remote_arrival_cycles": gpu.mbarrier.remote_arrival_cycles,
        "wake_cycles": max(1.0, gpu.mbarrier.wake_cycles),
        "next_wake_cycles": gpu.mbarrier.next_wake_cycles,
        **{f"tma_{name}": getattr(gpu.tma, name) for name in ("stores_held", "merged_alone")},
        **{f"tma_{name}_byte_cycles": 1 / getattr(gpu.tma, f"{name}_bytes_per_cycle") for name in _OF_TMA},
        "tma_load_request_cycles": 1 / gpu.tma.load_requests_per_cycle,
        "tma_load_cycles": rates.tma_load_latency_cycles,
        "tma_sector_l2_cycles": l1.sector_bytes / rates.l2_bytes_per_cycle / gpu.tma.l2_share,
        "tma_least_sectors": gpu.l2.least_sectors,
        "tma_queue_cycles": gpu.tma.queue_latency_cycles,
        "tma_store_cycles": gpu.tma.store_latency_cycles,
        "fence_bulk_loads": gpu.memory_fence.bulk_loads,
        "fence_acknowledged_cycles": gpu.memory_fence.acknowledged_cycles,
        "map_cycles": gpu.tma.map_latency_cycles,
        "own_map_cycles": gpu.tma.own_map_latency_cycles,
        "map_drop_cycles": gpu.tma.map_drop_cycles,
    }
    spec = allocate(Spec)
    for name in dtype_of(Spec).names or ():
        spec[name] = values[name]
    return spec
