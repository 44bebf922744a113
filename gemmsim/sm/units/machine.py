"""The state of one SM: its warps, blocks and sub-partitions, and what it has one of."""

from __future__ import annotations

from gemmsim.native.records import Ints, Reals, Record, Rows, Shorts
from gemmsim.sm.spec import Spec
from gemmsim.sm.units.instruction import AccessCost, Instruction
from gemmsim.sm.units.instruction_cache import InstructionCache
from gemmsim.sm.units.memory_queue import MemoryQueue
from gemmsim.sm.units.pipes import Pipe, Pipes
from gemmsim.sm.units.register_ports import RegisterPorts
from gemmsim.sm.units.server import Room, Server
from gemmsim.sm.units.write_ports import WritePorts

NEVER = 1 << 62
# States of a warp: its place is empty; its own state holds it back until `ready`; it can issue as soon as its port is
# free and it is chosen; it waits at a barrier.
GONE, WAITING, ELIGIBLE, AT_BARRIER = range(4)


class Stream(Record):
    """What a warp executes: static instruction indices, and the costs of those that go through the memory path."""

    length: int
    pcs: Shorts
    costs: Rows[AccessCost]


class Warp(Record):
    """A place for a warp on the SM, and the warp that is there.

    slot, block          its number, and its block's
    stream, position, accesses  what it executes, and how far it has come in it
    pc, port             next instruction, and the port where it issues
    ready                first cycle at which the warp's own state lets it issue
    rank                 below that of every older warp
    issued               cycle of the last issue that counts for whose turn it is, -1 before the first
    line                 line of code that it was fetched from last
    blocked_before       blocked cycles of `port` before `ready`; dispatch_blocked_before: of the register ports
    stores_done, copies_done  cycle at which the warp's stores have left the SM, its LDGSTS have arrived
    barrier, behind, opens    the barrier it came to last, whether that is not open yet, and when it opened
    scoreboards, reasons  of each scoreboard: cycle at which it is free, stall reason of who waits for it
    outstanding, outstanding_counts  of each that a DEPBAR counts: when its operations are released, ascending
    release, sources_read, done  of the instruction that it issued last: when its queue entry is free, its sources are
                         read, its result is there or it has left the SM
    """

    slot: int
    block: int
    state: int
    stream: int
    position: int
    accesses: int
    pc: int
    port: int
    ready: int
    rank: int
    issued: int
    line: int
    blocked_before: int
    dispatch_blocked_before: int
    stores_done: int
    copies_done: int
    barrier: int
    behind: int
    opens: int
    scoreboards: Ints
    reasons: Ints
    outstanding: Ints
    outstanding_counts: Ints
    release: int
    sources_read: int
    done: int


class Block(Record):
    """A place for a block, and the block that is there.

    live    warps that have not ended; end: when the last of them has left so far
    order   the lowest goes first
    leaves, left  when its place is free, NEVER while it runs; how many blocks had ended before it
    arrived  how many of its warps have arrived at each barrier
    arriving  by the number of a fetch: when what it asked L2 for is in L1, 0 where nobody asked
    """

    live: int
    end: int
    order: int
    leaves: int
    left: int
    arrived: Ints
    arriving: Ints


class SubPartition(Record):
    """wakes: the cycle at which its scheduler looks again. last_rank, last_issue: the warp that issued last, and when.

    address_free  when the address unit takes the next memory instruction
    """

    wakes: int
    last_rank: int
    last_issue: int
    address_free: float
    pipes: Pipes
    queue: MemoryQueue
    read_ports: RegisterPorts
    write_ports: WritePorts


class MemoryPath(Record):
    """What all sub-partitions share: the queue before L1, its stages, and this SM's share of L2 and DRAM.

    entrance        of the shared queue; handed_over: when each of its entries left it last, a ring from `oldest` on
    after_shared    requests that passed the tag stage since the last that did not
    unflushed       wavefronts of stores since the last flush of the data stage, -1 where there was no access
    flushed         when that was
    """

    entrance: Server
    handed_over: Reals
    oldest: int
    tags: Server
    data: Server
    out: Server
    l2: Server
    dram: Server
    after_shared: int
    unflushed: int
    flushed: float


class Snapshot(Record):
    """The totals when `at` instructions had issued, in cycle `cycles`."""

    at: int
    cycles: int
    data_busy_cycles: float
    stall_cycles: Reals
    executed: Ints
    pipes: Rows[Pipe]


class Event(Record):
    """What an observer is told; see `events`."""

    kind: int
    begin: int
    end: int
    warp: int
    instruction: int
    detail: int


class Sm(Record):
    """One SM.

    places, resident, warps_per_block  places for warps and for blocks, and how many warps a block has
    instructions, instruction_count    the program
    streams, grid  what the warps of the blocks execute: the number of a stream for each warp of each block
    fetches        different numbers of fetches (see `AccessCost`)
    counted        mask of the scoreboards whose outstanding operations a DEPBAR counts
    begun, launched, ended  blocks that have begun, warps that have, blocks that have ended
    ended_slots    the place of each block that has ended, in that order
    block_ends     when each of these has left
    issued, executed  instructions issued, in all and each
    stall_cycles   [instructions, REASONS] warp cycles by the instruction waiting to issue
    arrivals       the unit that counts warps at barriers
    next_snapshot, snapshots_taken     which of `snapshots` comes next
    attention      1 where a turn did what others must know of: it woke a sub-partition, or a block ended
    watched        whether `events` are kept; event_count: how many there are
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
    streams: Rows[Stream]
    grid: Ints
    grid_blocks: int
    fetches: int
    counted: int
    begun: int
    launched: int
    ended: int
    ended_slots: Ints
    block_ends: Ints
    issued: int
    executed: Ints
    stall_cycles: Reals
    next_snapshot: int
    snapshots_taken: int
    snapshots: Rows[Snapshot]
    attention: int
    watched: int
    event_count: int
    events: Rows[Event]
