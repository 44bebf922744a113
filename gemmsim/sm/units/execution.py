"""Defines the records that tell the units of the SM what one execution of an instruction does, or costs."""

from __future__ import annotations

from gemmsim.native.records import Record


class Sync(Record):
    """What one execution of an instruction does at a phase of an mbarrier, or what a bulk copy moves.

    Each phase has a number in its block, its gate, which opens when all that counts for it has happened.

    gate    number of the phase, -1 where there is none, or where a wait waits for nothing; of a BAR whose operands are
            registers, the number of the barrier
    counts  whether the phase needs it to be complete
    more    how many rows of the same execution follow
    amount  bytes that a bulk copy moves; of such a BAR, for how many warps it waits; 1 of a fence that runs
    lines, requests  of a bulk copy: lines of memory that it reads or writes, whole or in part; and its requests to L2
    l2_sectors, dram_sectors  sectors of a bulk copy that go to L2 and that DRAM reads for this SM
    merged_sectors, dram_shared  of `l2_sectors`, those that may come with another SM's request; whether DRAM reads some
            for other SMs, too
    remote  whether it comes from another block of the cluster, or goes there
    tensor_map  number of the tensor map that a copy of a tile uses, from 1 on; 0 where it uses none
    """

    gate: int
    counts: int
    more: int
    amount: int
    l2_sectors: int
    dram_sectors: int
    remote: int
    merged_sectors: int
    dram_shared: int
    tensor_map: int
    lines: int
    requests: int


class AccessCost(Record):
    """What one executed memory instruction costs (see `gemmsim.memory.types.RecordCost`).

    dram_shared  above 0 where it waits for sectors that DRAM reads for other SMs, too
    runs, lines  runs of 256 bytes, and lines, that `l2_sectors` are in
    merged_sectors  of `l2_sectors`, those that L2 reads with others, so that it is not asked for them
    atomic_ps  of an atomic operation: what it adds to the time of the slice of L2 that works longest
    execution  how often its warp has executed its instruction before
    fetch  accesses of a block with the same number above 0 want the same data: the first of them asks L2, and the
           others wait until it arrives; 0: the access asks by itself every time
    partial_lines  of a store: how many lines have sectors that it writes in part
    remote  above 0 where it reaches the shared memory of another block of the cluster
    """

    wavefronts: int
    tag_cycles: int
    l2_sectors: int
    dram_sectors: int
    dram_shared: int
    runs: int
    lines: int
    merged_sectors: int
    atomic_ps: int
    execution: int
    fetch: int
    partial_lines: int
    remote: int
