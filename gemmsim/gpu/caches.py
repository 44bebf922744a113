"""Defines what a GPU file says of L1, L2 and DRAM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class L1:
    """The L1 cache of an SM. Its tag stage looks up lines, its data stage is that of shared memory."""

    unified_bytes: int  # L1 and shared memory together
    line_bytes: int
    sector_bytes: int
    tag_lines_per_cycle: int  # number of tag banks, each of which looks up one line a cycle
    miss_lines_per_cycle: int  # lines that a load which misses asks L2 for; until then it holds the tag stage
    ways: int
    set_flips: tuple[int, ...]  # element i: bits of the set's number that bit i of the line number inverts; 0, 1: bank
    spare_lines: int  # a tag bank that has data for no more lines loses some
    lost_lines: tuple[int, int, int]  # how many then: at a hit, where one is replaced, where a tag is to spare
    fetch_lookups: int  # for how many look-ups of warps that take turns a line is on its way; its use is no use again
    hit_latency_cycles: tuple[float, float, float]  # from load to use; 32, 64 and 128 bits a thread
    miss_bytes_per_cycle: float  # from L2 to one SM
    miss_interval_cycles: float  # from one load to registers that misses to the next, at least
    fill_bytes_per_cycle: float  # written to the data array; meanwhile the data stage does nothing else
    narrow_fill_cycles: float  # for which what a load of 8 or 16 bits a lane misses keeps the data stage longer
    fill_turn: float  # for how many times as long as the request before it what comes keeps the data stage
    tagged_request_cycles: float  # added to the time in the data stage of a global request that follows a shared one
    tagged_after_shared_requests: int  # how many requests after a shared one take that extra time
    store_bytes_per_cycle: float  # from one SM to L2
    partial_line_cycles: float  # added to the time of a store on its way to L2 for each line written in part
    copy_cycles: tuple[int, int, int]  # added to a copy's (LDGSTS) wavefronts: 32, 64 and 128 bits a thread
    zeros_cycles: float  # that a copy which reads nothing and writes zeros takes the data stage at least
    joined_lines: int  # stores of a warp to the same lines go to L2 together where other stores to fewer lie between
    joined_lane_bytes: int  # those of fewer bytes a lane count twice
    joined_growth: float  # how the share that goes apart grows with them where warps of a sub-partition come between
    joined_behind_loads: tuple[int, int]  # where warps load before: up to so many lines all join, of so many none


@dataclass(frozen=True, slots=True)
class L2:
    size_bytes: int
    partitions: int  # 2 where one half is near to an SM and the other is far
    line_bytes: int
    sector_bytes: int
    ways: int
    dirty_share: float  # of the lines of a set, that may be dirty: of more, the least recent one is written to DRAM
    evict_first_share: float  # of the lines of a set, for data that is to be replaced first, where others want room
    fetch_bytes: int  # aligned piece of memory that is read from DRAM for a sector that misses
    merged_requests: int  # so many requests of SMs of one GPC for the same sectors may become one; 1: none merge
    loads_in_step: float  # after so many loads at once SMs do not ask for them at the same time any more
    drift_steps: float  # loads after which SMs with a block each merge half of the requests that they could
    read_bytes_per_s: float  # to all SMs together
    least_sectors: float  # a request for fewer sectors of a line takes of that rate what so many do
    write_share: float  # of that rate, at which L2's slices take what all SMs store and what comes from DRAM
    slice_read_share: float  # of that rate, at which they would read what hits if they did nothing else
    partial_line_sectors: float  # a line that is written in part takes L2 as long as so many sectors more
    hit_latency_cycles: float  # from load to use, in the near partition
    far_latency_cycles: float  # from load to use, in the far partition
    latency_spread_cycles: float  # from the SM that waits least for L2 to the one that waits longest
    latency_deviation_cycles: float  # standard deviation of the latency from line to line
    fixed_latency_us: float  # what of the latency does not follow the SM clock
    slices: int  # which share the lines, and each do atomics one after another
    atomic_sector_us: float  # for which an atomic takes a slice with each sector that it touches
    atomic_again_us: float  # from an atomic on integers to the next one on the same sector
    atomic_float_again_us: float  # from an atomic on floating-point numbers to the next one on the same sector
    atomics_in_step: float  # so many first atomics of each warp are done before any warp does more
    atomic_passing: float  # of a slice's mean work on atomics, what it passes on to the other partition beside its own


@dataclass(frozen=True, slots=True)
class Dram:
    peak_bytes_per_s: float
    achievable_fraction: float  # share of the peak that a large copy reaches
    latency_cycles: float  # from load to use, in cycles of the SM
    latency_spread_cycles: float  # from the SM that waits least for DRAM to the one that waits longest
    latency_deviation_cycles: float  # standard deviation of the latency from line to line
    shared_sooner_cycles: float  # so much sooner come lines that SMs near to both partitions of L2 ask for
    queue_latency_cycles: float  # what one line waits where DRAM is half busy; with its use u as u / (1 - u)
    mixed_latency_cycles: float  # what a read waits for writes, times their share and use / (1 - mixed_crowding * use)
    mixed_crowding: float  # at which use of the bandwidth that wait grows: 1 as in a queue, 0 in proportion to the use
    mixed_remembered_cycles: float  # of an SM's share of DRAM: what was read and written before counts half
    turnaround: float  # what a write costs more where DRAM reads as much, as a share of the write
    fixed_latency_us: float  # what of the latency does not follow the SM clock
    size_bytes: int
