"""Defines what a GPU file says of what warps wait for that others do: mbarriers, bulk copies, memory fences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mbarrier:
    """Times of barriers in shared memory (mbarrier), from sm_90 on."""

    arrival_cycles: float  # from the issue of an arrival until it counts
    remote_arrival_cycles: float  # the same, where the mbarrier is another block's of the cluster
    wake_cycles: float  # from the last arrival until the first warp goes on that waits
    next_wake_cycles: float  # from one such warp to the next


@dataclass(frozen=True, slots=True)
class Tma:
    """The unit of an SM that does bulk copies (TMA), from sm_90 on."""

    load_bytes_per_cycle: float  # to shared memory
    load_requests_per_cycle: float  # to L2: for a line's whole sectors, or for half a sector
    store_bytes_per_cycle: float  # from shared memory
    reduction_bytes_per_cycle: float  # from shared memory, where the copy combines with what is there
    load_latency_cycles: float  # from issue until an mbarrier has counted a load that takes no time, and found it in L2
    l2_share: float  # at how many times `l2.read` L2 delivers whole tiles
    queue_latency_cycles: float  # what one line waits where L2 is half busy; with its use u as u / (1 - u)
    merged_alone: float  # share of requests that merge of those that could, where SMs wait for each load
    merged_later: float  # the same, once SMs have stored results (memory/caches/merging.py)
    store_latency_cycles: float  # from issue until a store that takes no time has read shared memory
    stores_held: int  # stores that the unit holds until it begins them; then no other can issue
    map_latency_cycles: int  # what a copy waits for a tensor map that is a parameter, the first time on an SM
    own_map_latency_cycles: int  # the same for one that its block has made
    map_drop_cycles: int  # until a tensor map is dropped from its cache


@dataclass(frozen=True, slots=True)
class MemoryFence:
    """How long a warp waits at a memory fence, by whom it orders accesses for, when nothing is under way.

    Where the SM has asked L2 for something since the last fence of the GPU, such a fence first asks L2 whether that is
    done. An SM asks one such question after the other; fences that come before one begins share it.
    """

    block_cycles: float  # for the block
    gpu_cycles: float  # for the GPU or the cluster
    system_cycles: float
    acknowledged_cycles: float  # to ask L2 whether all is done, mean of all SMs
    bulk_loads: int  # bulk loads (TMA) under way for which it waits: later ones have not begun yet
