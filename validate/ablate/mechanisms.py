"""The mechanisms of the timing model that can be switched off, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmsim.sm.schedule import TimingOptions
from gemmsim.support.errors import GemmsimError, nearest

from .switch import (
    Switch,
    control_bits,
    costs,
    even_tag_banks,
    gpu_numbers,
    lines_apart,
    no_bank_conflicts,
    no_dram,
    no_l1_hits,
    none_in_flight,
    one_tag_cycle,
    options,
)

UNBOUNDED = 1e18  # bytes a second or a cycle, wavefronts a cycle: what takes no time
QUEUE_ENTRIES = 4096  # more than a sub-partition's warps ever have under way


@dataclass(frozen=True)
class Mechanism:
    """key: on the command line; instead: what holds without it; why: what the hardware does, in a line."""

    key: str
    instead: str
    why: str
    switch: Switch


MECHANISMS = (
    Mechanism(
        "stall-counts",
        "every instruction lets the next one issue a cycle later",
        "the compiler writes into each instruction how long its warp waits, for results of fixed latency",
        control_bits(lambda control: replace(control, stall_cycles=1)),
    ),
    Mechanism(
        "yield-hints",
        "no instruction has one",
        "an instruction with the hint keeps its warp from issuing in the next cycle",
        control_bits(lambda control: replace(control, yield_hint=False)),
    ),
    Mechanism(
        "scoreboards",
        "no instruction waits for one, DEPBAR excepted",
        "a warp waits for what it has loaded, and for sources still to be read, by scoreboard",
        control_bits(lambda control: replace(control, wait_mask=0)),
    ),
    Mechanism(
        "register-ports",
        "operands are always there",
        "two banks deliver a register a cycle each, the reuse cache spares some reads",
        options(TimingOptions(register_ports=False)),
    ),
    Mechanism(
        "oldest-block-first",
        "the warp whose last issue is longest ago does",
        "where the warp that issued last cannot go on at once, the youngest of the oldest block does",
        options(TimingOptions(oldest_block_first=False)),
    ),
    Mechanism(
        "taken-branches",
        "they cost no more than their stall count",
        "after a taken branch the warp waits for its target",
        gpu_numbers({"pipes.cbu.latency_cycles": 0.0}),
    ),
    Mechanism(
        "instruction-fetch",
        "lines that are not in the first level come at once",
        "loops longer than the first-level instruction cache, and code that runs for the first time, are fetched",
        gpu_numbers({"fetch.near_line_cycles": 0.0, "fetch.far_line_cycles": 0.0}),
    ),
    Mechanism(
        "barrier-cycles",
        "warps go on a cycle after the last one has arrived",
        "arrivals are counted one after another, and the release takes a while",
        gpu_numbers({"barrier.arrival_cycles": 0.0, "barrier.release_cycles": 0.0}),
    ),
    Mechanism(
        "math-behind-barriers",
        "a warp that has come to a barrier issues nothing until it opens",
        "arithmetic goes on until an instruction needs memory, branches or reads constants",
        options(TimingOptions(math_behind_barriers=False)),
    ),
    Mechanism(
        "address-unit",
        "it takes any number of instructions a cycle",
        "a sub-partition's address unit takes a memory instruction every few cycles",
        gpu_numbers({"pipes.lsu.issue_interval_cycles": 0.0, "mio.shared_load_interval_cycles": 0.0}),
    ),
    Mechanism(
        "memory-queue",
        "it never fills",
        "a sub-partition holds few memory instructions that wait for its address unit; then none can issue",
        gpu_numbers({"mio.queue_entries": QUEUE_ENTRIES}),
    ),
    Mechanism(
        "shared-queue",
        "address units keep their requests until the stage behind them takes them",
        "the sub-partitions share a queue before the tag and data stages",
        gpu_numbers({"mio.shared_entries": 0}),
    ),
    Mechanism(
        "request-interval",
        "requests enter the shared queue and the data stage as fast as they come",
        "one request a cycle, whatever it asks for",
        gpu_numbers({"shared.request_interval_cycles": 0.0}),
    ),
    Mechanism(
        "tag-stage",
        "every request passes it in a cycle",
        "a request takes a cycle for each line that it has in one tag bank",
        costs(one_tag_cycle),
    ),
    Mechanism(
        "tag-banks",
        "lines spread evenly over the four banks",
        "a hash of the address chooses the bank, and lines of a request can meet in one",
        costs(even_tag_banks),
    ),
    Mechanism(
        "bank-conflicts",
        "shared accesses take the wavefronts that their width needs",
        "different words in one bank of shared memory are served one after another",
        costs(no_bank_conflicts),
    ),
    Mechanism(
        "data-stage",
        "it takes any number of requests and wavefronts a cycle",
        "shared and global accesses share a data stage that serves a wavefront a cycle",
        gpu_numbers({"shared.wavefronts_per_cycle": UNBOUNDED, "shared.request_interval_cycles": 0.0}),
    ),
    Mechanism(
        "line-fills",
        "what comes from L2 takes no time of the data stage",
        "arriving lines are written to the data array",
        gpu_numbers({"l1.fill_bytes_per_cycle": UNBOUNDED}),
    ),
    Mechanism(
        "tagged-requests",
        "they take the data stage no longer than their wavefronts",
        "between requests to shared and to global memory the data stage is idle for a moment",
        gpu_numbers({"l1.tagged_request_cycles": 0.0}),
    ),
    Mechanism(
        "store-rate",
        "stores leave the SM as fast as they come",
        "a store takes a cycle a sector on its way to L2, and one more for each line that it writes sectors of in part",
        gpu_numbers({"l1.store_bytes_per_cycle": UNBOUNDED, "l1.partial_line_cycles": 0.0}),
    ),
    Mechanism(
        "barrier-flush",
        "a barrier takes nothing of the data stage",
        "when a barrier opens, what was accessed before it is flushed through the data stage",
        gpu_numbers({"barrier.flush_cycles": 0.0, "barrier.flush_store_cycles": 0.0}),
    ),
    Mechanism(
        "l1-hits",
        "every sector is asked of L2",
        "the L1 cache spares L2 what it holds",
        costs(no_l1_hits),
    ),
    Mechanism(
        "lines-under-way",
        "the load that missed in the cache replay asks L2, an L1 hit never waits",
        "of a block's loads of one line, whichever comes first asks L2, and the others wait until it is there",
        lines_apart,
    ),
    Mechanism(
        "l2-bandwidth",
        "L2 and the SM's link to it are never busy",
        "an SM takes its share of L2's bandwidth, and no more than its link carries",
        gpu_numbers({"l2.read_bytes_per_s": UNBOUNDED, "l1.miss_bytes_per_cycle": UNBOUNDED}),
    ),
    Mechanism(
        "l2-far-half",
        "all of L2 is as near as its near half",
        "lines in the far partition take longer",
        gpu_numbers({"l2.far_latency_cycles": "l2.hit_latency_cycles"}),
    ),
    Mechanism(
        "dram",
        "everything is in L2",
        "first accesses and what L2 has lost come from DRAM, later and at its bandwidth",
        costs(no_dram),
    ),
    Mechanism(
        "dram-bandwidth",
        "DRAM is never busy; its latency stays",
        "the SMs share DRAM's bandwidth",
        gpu_numbers({"dram.peak_bytes_per_s": UNBOUNDED}),
    ),
    Mechanism(
        "dram-in-flight",
        "an L2 hit never waits",
        "a hit in L2 on a sector that another SM has just asked DRAM for takes as long as from DRAM",
        costs(none_in_flight),
    ),
    Mechanism(
        "tensor-clock",
        "kernels that use tensor cores run at the clock of the others",
        "the GPU lowers its clock where tensor cores are used",
        gpu_numbers({"clock.sm_tensor_load_hz": "clock.sm_load_hz"}),
    ),
    Mechanism(
        "launch-overhead",
        "an empty kernel takes no time",
        "a launch takes device time of its own",
        gpu_numbers({"launch.overhead_us": 0.0}),
    ),
    Mechanism(
        "block-start",
        "a block's first instruction issues a cycle after a place is free",
        "a block takes a while from its dispatch to its first instruction",
        gpu_numbers({"launch.block_start_cycles": 0.0}),
    ),
)
BY_KEY = {mechanism.key: mechanism for mechanism in MECHANISMS}


def chosen(keys: tuple[str, ...]) -> tuple[Mechanism, ...]:
    """Those with these keys, all where there are none, in the order of the table. GemmsimError for one unknown."""
    for key in keys:
        if key not in BY_KEY:
            raise GemmsimError(f"unknown mechanism '{key}'{nearest(key, BY_KEY)}: known are {', '.join(BY_KEY)}")
    return tuple(mechanism for mechanism in MECHANISMS if not keys or mechanism.key in keys)
