"""The state of one SM: its warps, blocks and sub-partitions, and the units that they all share."""

from __future__ import annotations

from gemmsim.native.records import Ints, Reals, Record, Rows, Shorts
from gemmsim.sm.spec import Spec
from gemmsim.sm.units.execution import AccessCost, Sync
from gemmsim.sm.units.fills import Fills
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.instruction_cache import InstructionCache
from gemmsim.sm.units.issue_queue import IssueQueue
from gemmsim.sm.units.pipes import Pipe, Pipes
from gemmsim.sm.units.register_ports import RegisterPorts
from gemmsim.sm.units.server import Room, Server
from gemmsim.sm.units.share import Share
from gemmsim.sm.units.write_ports import WritePorts

NEVER = 1 << 62
# States of a warp. GONE: its place is empty. WAITING: what it did before holds it back until `ready`. ELIGIBLE: it can
# issue as soon as its port is free and it is chosen. AT_BARRIER: it waits for a barrier to open. AT_GATE: it waits for
# a phase of an mbarrier of which not all has happened that completes it.
GONE, WAITING, ELIGIBLE, AT_BARRIER, AT_GATE = range(5)


class Stream(Record):
    """What a warp executes: static instruction indices, the costs of those that go through the memory path, and what
    others do at mbarriers and move in bulk."""

    length: int
    pcs: Shorts
    costs: Rows[AccessCost]
    syncs: Rows[Sync]


class Warp(Record):
    """One of the SM's places for warps, and the warp that occupies it.

    slot, block          the number of its place, and of its block's place
    state                GONE, WAITING, ELIGIBLE or AT_BARRIER
    stream, position, accesses, syncs  number of the stream that it executes, and how many instructions and how many
                         memory accesses of it have issued, and how many rows of `Stream.syncs` are used up
    gate                 the phase for which it waits, -1 where it waits for none
    pc, port             static index of its next instruction, and the port where that issues
    ready                first cycle at which the warp's own state lets it issue
    rank                 a number that names the warp on its SM, below that of every older warp
    issued               cycle of the last issue that counts for whose turn it is, -1 before the first
    line                 line of code that its last fetched instruction is on
    blocked_before       cycles before `ready` for which `port` was blocked
    dispatch_blocked_before  cycles before `ready` for which the register ports let nothing issue
    loads_done, stores_done, copies_done, bulk_read  cycles at which what it has loaded to registers has come, all its
                         stores have left the SM, all its LDGSTS have arrived,
                         and all its bulk stores have read shared memory
    barrier, behind, opens  the barrier that it came to last, whether it must wait there because that is not open yet,
                         and the cycle in which the last barrier that it had to wait at opened (0: none has)
    scoreboards, reasons  for each scoreboard, the cycle at which it is free, and the stall reason of a wait for it
    loaded, worked       the cycle at which what it asked DRAM for was there, and how long it then took until it asked
                         again
    returned             when the last of the wavefronts comes that its loads have found in L1 or shared memory
    moved                whether what a load of it waited for came later than was expected, since it looked last
    outstanding, outstanding_counts  for each scoreboard that a DEPBAR counts, the cycles at which its operations are
                         released, ascending, and how many these are
    release, sources_read, done  of the instruction that it issued last, the cycles at which its queue entry is free,
                         its sources are read, and its result is there or (a store) it has left the SM
    """

    slot: int
    block: int
    state: int
    stream: int
    position: int
    accesses: int
    syncs: int
    gate: int
    pc: int
    port: int
    ready: int
    rank: int
    issued: int
    line: int
    blocked_before: int
    dispatch_blocked_before: int
    stores_done: int
    loads_done: int
    copies_done: int
    bulk_read: int
    barrier: int
    behind: int
    opens: int
    scoreboards: Ints
    reasons: Ints
    moved: int
    outstanding: Ints
    outstanding_counts: Ints
    loaded: int
    worked: int
    returned: float
    release: int
    sources_read: int
    done: int


class Block(Record):
    """One of the SM's places for blocks, and the block that occupies it.

    live      how many of its warps have not ended
    end       the latest cycle at which one of its warps that have ended leaves the SM
    order     its priority: warps of the block with the lowest `order` issue first
    leaves    cycle at which its place is free, NEVER while it runs
    left      how many blocks had ended before it
    arrived   how many of its warps have arrived at each barrier
    arriving  for each number of a fetch (see `AccessCost`), the cycle at which its data arrives; 0: no access has
              asked L2 for it yet
    maps      for each tensor map that the block has made, the cycle from which the SM has it; 0: it was not asked for
    missing, opens  for each gate, how much of what completes it has not happened yet, and when the last of what has
              happened is complete
    """

    live: int
    end: int
    order: int
    leaves: int
    left: int
    arrived: Ints
    arriving: Ints
    maps: Ints
    missing: Ints
    opens: Ints


class SubPartition(Record):
    """One of an SM's sub-partitions.

    wakes         the cycle at which its scheduler looks again for something to issue
    last_rank, last_order  `Warp.rank` of the warp that issued last, and `Block.order` of its block
    last_issue    the cycle of that issue
    address_free  the cycle from which its address unit takes the next memory instruction
    returns       the way to its registers, on which wavefronts of loads that missed come one after another
    operands_free the cycle from which operands of its next asynchronous multiplication (wgmma) are read
    copied_cycles `MemoryPath.copied_cycles` when it began the last of these
    multiplies_from, multiplies_until  the cycles in which its tensor pipe works on them without a pause
    queue, multiplications  its queues of memory instructions, and of such multiplications
    """

    wakes: int
    last_rank: int
    last_order: int
    last_issue: int
    address_free: float
    returns: Server
    operands_free: float
    copied_cycles: float
    multiplies_from: float
    multiplies_until: float
    pipes: Pipes
    queue: IssueQueue
    multiplications: IssueQueue
    read_ports: RegisterPorts
    write_ports: WritePorts


class MemoryPath(Record):
    """The memory path that all sub-partitions share: the queue before L1, L1's stages, this SM's shares of L2 and DRAM.

    entrance        the entrance of the shared queue, which takes one request at a time
    handed_over     cycles at which the last requests left the shared queue, one for each of its entries: a ring from
                    `oldest` on
    entered         when the last of those entered it that have been booked
    loads_begun     cycles at which the last loads to registers began at the tags, or at the data stage, one for each
                    entry of their queue: a ring from `oldest_load` on
    tags, data, out  the stages of L1: the tags, the data, and the way out to L2
    banks           the banks of shared memory and L1, where operands of wgmma are read beside the data stage; until the
                    first of these the data stage alone says when they are free
    owed            for how many cycles the data stage has yet to wait for what loads have returned; below 0, how many
                    wavefronts have made up for such waits beforehand
    operand_cycles  for how many cycles operands of wgmma have been read from them so far
    copied_cycles   for how many cycles these have waited for what asynchronous copies bring
    fills           what loads wait for on its way from L2 to the data stage
    link            the link to L2, for ordinary loads
    l2_share, slice_share, dram_share
                    this SM's share of what comes from L2, of the time of L2's slices, and of DRAM's bandwidth
    l2_stores       its share of L2, for stores alone
    dram_read, dram_written  how many cycles of the share of DRAM its loads and stores have taken of late
    turns           sectors that DRAM has read since the last of those after which a write made it turn round
    draws           which of `Spec.slowest` the last load took
    companions      so many blocks of the SM compute one after another, and are first in turn to ask for what other SMs
                    ask for too
    tma_loads, tma_stores  the TMA unit, which works on one bulk copy after another in each direction
    load_gate       the phase to which its last load belongs
    load_end, earlier_end  the last cycle in which a load's last byte is there, of all, and of those of earlier phases
    load_latency    how long the last load takes
    maps            as `Block.maps`, for those that the kernel was given
    tile_ends       when its last loads end, a ring from `oldest_tile` on
    stores_begun    cycles at which its last stores began, a ring from `oldest_store` on with an entry for each that it
                    holds
    unacknowledged  whether L2 was asked for something since the last question whether all is done began
    question        when this began, or will begin
    after_shared    requests to global memory that passed the data stage since the last one to shared memory, counted up
                    to `Spec.tagged_after_shared_requests`
    unflushed       wavefronts of stores since the last flush of the data stage, -1 where nothing was accessed since
    flushed         the cycle of that flush
    """

    entrance: Server
    handed_over: Reals
    oldest: int
    entered: float
    loads_begun: Reals
    oldest_load: int
    tags: Server
    data: Server
    banks: Server
    owed: float
    operand_cycles: float
    copied_cycles: float
    fills: Fills
    out: Server
    link: Server
    l2_share: Share
    slice_share: Share
    dram_share: Share
    l2_stores: Server
    dram_read: float
    dram_written: float
    turns: int
    draws: int
    companions: int
    tma_loads: Server
    tma_stores: Server
    load_gate: int
    load_end: float
    earlier_end: float
    load_latency: float
    maps: Ints
    tile_ends: Reals
    oldest_tile: int
    stores_begun: Reals
    oldest_store: int
    unacknowledged: int
    question: float
    after_shared: int
    unflushed: int
    flushed: float


class Snapshot(Record):
    """What had been counted when the `at`-th instruction issued, in cycle `cycles`."""

    at: int
    cycles: int
    data_busy_cycles: float
    stall_cycles: Reals
    executed: Ints
    pipes: Rows[Pipe]


class Event(Record):
    """One message to the observer.

    kind         STARTED, ISSUED, STALLED, ACCESSED or ENDED (see `events`)
    begin, end   the cycles [begin, end) of which it tells
    warp         the slot of the warp
    instruction  static index of the instruction
    detail       depends on the kind. STARTED: the number of the block; ISSUED: the sub-partition; STALLED: the reason;
                 ACCESSED: how far the access went; ENDED: 0
    """

    kind: int
    begin: int
    end: int
    warp: int
    instruction: int
    detail: int


class Sm(Record):
    """The whole state of one SM: its units, what it runs, and what is counted.

    places, resident, warps_per_block  how many places there are for warps and for blocks, and warps in a block
    instructions, instruction_count  the program
    blocks_take_turns  see `gemmsim.sm.instructions.InstructionTable`
    streams, grid  what warps execute, and the number of the stream of each warp of each block
    fetches        how many different numbers of fetches there are, 0 included (see `AccessCost`)
    maps, makes_maps  how many different tensor maps there are, and whether each block has made its own
    gates, needed  [grid blocks, 2] where in `needed` the gates of each block begin and how many it has; and for each
                   how much completes it
    counted        mask of the scoreboards whose outstanding operations a DEPBAR counts
    released       how many phases were taken to be complete because nothing else could happen
    begun, launched, ended  how many blocks have begun, how many warps have, and how many blocks have ended
    next_block     the earliest cycle in which another block is dispatched to this SM
    ended_slots    the place of each block that has ended, in the order in which they ended
    block_ends     the cycle at which each of these has left, in that order
    issued, executed  how many instructions have issued: all together, and [instructions] of each static one
    tensor_began, tensor_ended  cycle in which the first matrix instruction issued that lowers the clock (-1: none has),
                   and the one in which the last of them is done
    stall_cycles   [instructions, REASONS] warp cycles by the instruction waiting to issue
    arrivals       the unit that counts warps at barriers
    snapshots_taken, next_snapshot  how many of `snapshots` are filled, and the issued instructions at which the next is
    attention      1 where a turn did what the drive must know of: it woke a sub-partition, or a block ended
    watched        whether `events` are kept
    event_count    how many of them there are
    """

    spec: Spec
    room: Room
    sub_partitions: Rows[SubPartition]
    warps: Rows[Warp]
    blocks: Rows[Block]
    memory: MemoryPath
    cache: InstructionCache
    arrivals: Server
    places: int
    resident: int
    warps_per_block: int
    instructions: Rows[Instruction]
    instruction_count: int
    blocks_take_turns: int
    streams: Rows[Stream]
    grid: Ints
    grid_blocks: int
    fetches: int
    maps: int
    makes_maps: int
    gates: Ints
    needed: Ints
    counted: int
    released: int
    begun: int
    next_block: float
    launched: int
    ended: int
    ended_slots: Ints
    block_ends: Ints
    issued: int
    executed: Ints
    tensor_began: int
    tensor_ended: int
    stall_cycles: Reals
    next_snapshot: int
    snapshots_taken: int
    snapshots: Rows[Snapshot]
    attention: int
    watched: int
    event_count: int
    events: Rows[Event]
