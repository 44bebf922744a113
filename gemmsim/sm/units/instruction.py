"""Defines the record that tells the units of the SM about a static instruction. `gemmsim.sm.instructions` fills it."""

from __future__ import annotations

from enum import IntEnum

from gemmsim.native.records import Record
from gemmsim.sm.types import STALL_REASONS

Reason = IntEnum("Reason", {name.upper(): index for index, name in enumerate(STALL_REASONS)})  # type: ignore[misc]
REASONS = len(STALL_REASONS)
SCOREBOARDS = 6  # that an instruction's control bits name
GROUPS = SCOREBOARDS  # the number of one more, which counts the groups of a warp's asynchronous multiplications
ALL_SCOREBOARDS = SCOREBOARDS + 1
MEMORY_PORT = 0  # the number of the port to the memory queue, in every program


class Kind(IntEnum):
    """The kinds of instructions, by what they do when they issue."""

    PLAIN = 0
    MEMORY = 1  # goes through the MIO queue and the SM's data stage
    BARRIER = 2  # waits for the other warps of the block
    COPY_FENCE = 3  # LDGDEPBAR: its scoreboard is released when the warp's earlier LDGSTS have arrived
    BULK = 5  # a bulk copy, which the TMA unit does
    MULTIPLY = 4  # HGMMA, QGMMA, IGMMA: goes on while the warp does other things
    SPECIAL = 6  # S2R: comes behind the memory instructions before it


class Fence(IntEnum):
    """For whom a memory fence orders accesses; NONE of other instructions."""

    NONE = 0
    BLOCK = 1
    GPU = 2  # or the cluster
    SYSTEM = 3


class Bulk(IntEnum):
    """What a bulk copy does: nothing (it only closes a group of copies), or which way it goes."""

    GROUP = 0
    LOAD = 1
    STORE = 2
    REDUCTION = 3


class ReadMode(IntEnum):
    """How an instruction reads the registers of its slots."""

    ONE_REGISTER = 0
    TWO_PASSES = 1  # IMAD.WIDE passes the multiplier twice
    PAIR = 2  # FP64 reads two registers a slot, one of each bank


class Instruction(Record):
    """What the units must know of one static instruction. Truth values are 0 or 1; -1 means no register or scoreboard.

    port                 number of the port that must be free when it issues (see `pipes.Port`)
    kind                 a `Kind`
    delay, taken_delay   cycles to the warp's next issue: if the next instruction is the one below, and if the warp
                         continues elsewhere (it took a branch)
    wait_mask            scoreboards that must be free before it issues
    drain_scoreboard, drain_most  of a DEPBAR: the scoreboard (GROUPS among them) that it waits for, and how
                         many operations may be
                         outstanding on it
    write_scoreboard, read_scoreboard  the scoreboard that it holds until its result arrives, and the one that it holds
                         until its sources are read
    latency_cycles       from issue to its result, where it is not a memory instruction
    result_reason        stall reason of a warp that waits for its result
    throttle_reason      stall reason of a warp that waits for its port
    writes_registers, copies  of Kind.MEMORY: whether it loads; whether it copies from global to shared memory (LDGSTS)
    past_l1              whether what it copies goes past L1
    copy_cycles          of a copy: for how many cycles more than its wavefronts it takes the data stage
    fill_cycles          of a load to registers: for how many cycles more what it misses takes the data stage
    sources_read_cycles  from issue until its registers may be overwritten, on an idle SM
    lane_groups          groups of lanes that an access of its width serves one after another, one wavefront each where
                         nothing conflicts; what they take is in `hit_latency_cycles`. 1 for matrix loads
    shared_load          whether it passes the address unit at a shared load's rate
    generic              whether its addresses are generic, so that an access of it may reach shared memory; if it does,
                         the fields that begin with `shared_` below count in place of those without
    barrier, barrier_warps, barrier_waits  of Kind.BARRIER: its number, the warps expected (0: the whole block), whether
                         the warp waits there
    of_warpgroup         of Kind.BARRIER: whether each warpgroup has one of its own; `barrier` is that of the first
    reads_scoreboards, reads_registers  whether it waits for any scoreboard; whether it needs any port of the register
                         file
    first, second, third  register that it reads in each operand slot
    reuse_mask           the slots that are marked `.reuse`, as bits
    read_mode            a `ReadMode`
    uniform_rows         rows of uniform registers that it reads
    second_pass          cycles behind it in which nothing issues, as its second pass takes its place
    late_reads, late_banks  of an instruction of variable latency: how many registers it reads, and their banks, the
                         first to be read in the lowest bit (1: odd)
    bank_cycles          of a matrix instruction: for how many cycles it reads registers, of both banks
    math                 whether multiplications of wgmma that are under way make it take its pipe longer
    late_after           cycles from its issue until it reads the first of them
    window, uniform_window  cycles within which its registers and its uniform registers are read
    takes_turns          whether the warps of a block take turns to issue it, instead of the youngest going first
    passes_barrier       whether it may issue while the barrier that its warp has come to is not open yet
    even_results, odd_results, pair_results  how many registers it writes at a fixed time: to the even bank, to the odd
                         bank, and in pairs to both at once
    even_returns, odd_returns, pair_returns  how many registers of each such kind a load writes when its data arrives
    hit_latency_cycles   cycles from load to use, where it hits L1 or is in shared memory
    narrow_latency_cycles  of a load from shared memory: cycles from load to use of a 32-bit load that takes one
                         wavefront; 0 of others
    shared_latency_cycles, shared_narrow_cycles, shared_sources_cycles  of a generic access to shared memory: as
                         `hit_latency_cycles`, `narrow_latency_cycles` and `sources_read_cycles`; 0 of others
    pipe_slots           issue intervals of its pipe that it occupies
    operand_cycles, first_operand_cycles  of Kind.MULTIPLY: cycles in which A and B are read from shared memory, those
                         of A alone, which is read first
    multiply_cycles      of Kind.MULTIPLY: cycles from the one whose work the tensor pipe begins to the next
    lowers_clock         whether the GPU lowers the SM clock while such instructions execute
    syncs                whether the stream has a `Sync` for each execution of it
    after_copies         whether it arrives at an mbarrier only when the warp's earlier LDGSTS have arrived
    bulk                 of Kind.BULK: a `Bulk`
    fence, fence_cycles  a `Fence`, and how long it takes when nothing is under way
    drops_map            whether it drops a tensor map from its cache, as is done with one that the kernel has made
    """

    port: int
    kind: int
    delay: int
    taken_delay: int
    wait_mask: int
    drain_scoreboard: int
    drain_most: int
    write_scoreboard: int
    read_scoreboard: int
    latency_cycles: int
    result_reason: int
    throttle_reason: int
    writes_registers: int
    copies: int
    past_l1: int
    copy_cycles: int
    fill_cycles: float
    sources_read_cycles: int
    lane_groups: int
    shared_load: int
    generic: int
    barrier: int
    barrier_warps: int
    barrier_waits: int
    of_warpgroup: int
    reads_scoreboards: int
    reads_registers: int
    first: int
    second: int
    third: int
    reuse_mask: int
    read_mode: int
    uniform_rows: int
    second_pass: int
    late_reads: int
    late_banks: int
    bank_cycles: int
    math: int
    late_after: int
    window: int
    uniform_window: int
    takes_turns: int
    passes_barrier: int
    even_results: int
    odd_results: int
    pair_results: int
    even_returns: int
    odd_returns: int
    pair_returns: int
    hit_latency_cycles: float
    narrow_latency_cycles: float
    shared_latency_cycles: float
    shared_narrow_cycles: float
    shared_sources_cycles: float
    pipe_slots: float
    operand_cycles: float
    first_operand_cycles: float
    multiply_cycles: float
    lowers_clock: int
    syncs: int
    after_copies: int
    bulk: int
    fence: int
    fence_cycles: float
    drops_map: int
