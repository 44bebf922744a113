"""Names the words that the compiled executor shares with Python, each by its index in an array of 64-bit words."""

from __future__ import annotations

# The words of a warp. Its paths follow from PATHS_AT on.
PC, ACTIVE, ALIVE, STATE, PATH_COUNT, PATHS_AT = 0, 1, 2, 3, 4, 12
MEETINGS, LAST_MET = 5, 6  # how often divergent paths have met, and which threads did the last time
# What `gemmsim.trace.engine.polling` remembers of the warp: flags, and the instruction of its last marked access
TURN_FLAGS, TURN_INSTRUCTION_SHIFT = 7, 3
# Which threads have arrived at the cluster's barrier since it opened, and which have not waited after they arrived
CLUSTER_ARRIVED, CLUSTER_DUE = 8, 9
# How many groups of multiplications of its warpgroup it has closed, and how often it has arrived there
GROUPS, ARRIVALS = 10, 11
READY, WAITING, DONE = range(3)  # STATE
# A path of a warp: threads that do not run now, and why. PATH_NEED depends on PATH_REASON: the threads that the path
# waits for (WAIT_WARP, WAIT_COLLECTIVE), the row of the convergence barrier (WAIT_CONVERGENCE), or the number of the
# block's barrier (WAIT_BLOCK).
PATH_PC, PATH_MASK, PATH_REASON, PATH_NEED = range(4)
PATH_WORDS, MAX_PATHS = 4, 32
RUNNABLE, WAIT_CONVERGENCE, WAIT_WARP, WAIT_COLLECTIVE, WAIT_BLOCK = range(5)
WARP_WORDS = PATHS_AT + PATH_WORDS * MAX_PATHS

# The block's 16 barriers. The outcome of the last reduction follows them.
BARRIER_ARRIVED, BARRIER_TRUE, BARRIER_REDUCES = range(3)
BARRIER_WORDS, BLOCK_BARRIERS = 4, 16
OUTCOME = BARRIER_WORDS * BLOCK_BARRIERS
OUTCOME_TRUE, OUTCOME_HOLDS = 0, 1
# Behind them: how often anything happened for which a warp may wait at an mbarrier, and whether the time limit of each
# mbarrier.try_wait counts as over (`gemmsim.trace.engine.mbarrier`)
EVENTS, TIMED_OUT = OUTCOME + 2, OUTCOME + 3
# The block's part of its cluster's barrier lies behind these: how many paths wait at it, and which instruction,
# plus 1, came to it out of turn, with its warp above bit 32.
CLUSTER_BARRIER = BLOCK_BARRIERS + 1
CLUSTER_WAITING, CLUSTER_MISUSED = 0, 3
# Where a block goes on that has stopped in a round, in which each of its warps runs once (`run_block`): at which warp,
# what came before in this round, and how many paths of that warp have waited in it
ROUND_WARP = BARRIER_WORDS * (CLUSTER_BARRIER + 1)
ROUND_SO_FAR, ROUND_PATHS = ROUND_WARP + 1, ROUND_WARP + 2
ROUND_HAPPENED, ROUND_WAITED, ROUND_GAVE_WAY, ROUND_WORKED = 1, 2, 4, 8  # bits of ROUND_SO_FAR
BARRIERS_WORDS = ROUND_PATHS + 1

# Status returned by `run_block`
FINISHED = 0
GROW = 1  # a trace buffer is full: enlarge it and call again
BUDGET = 2  # the instruction budget is used up
OUT_OF_BOUNDS = 3
MISALIGNED = 4
DEADLOCK = 5
SHARED_RANGE = 6
TRAP = 7
PARTIAL_WARP = 8
LENT = 9  # a store to a lent allocation, whose number is in FAULT_LANE, is next: copy the allocation and call again
STALE = 10  # a program slice reads from an allocation to which it has left out a store: run the whole program
GIVES_WAY = 11  # the block lets other resident blocks run before it goes on
SPINS = 12  # as GIVES_WAY, because it only repeats accesses that find what they found before
STUCK = 13  # all resident blocks spin, and nothing changes any more; only Python sets this status
EXTERNAL = 14  # the warp has met the micro-operation "external": do its work, advance the warp, and call again
LOST = 15  # a call or return leads to FAULT_ADDRESS, where there is no code; FAULT_LANE is that instruction's index
UNRELATED = 16  # how other blocks differ from the one that runs is not known (`gemmsim.trace.engine.differences`)
BAD_COPY = 18  # a bulk copy cannot be executed: FAULT_LANE says why (`gemmsim.trace.micro`)
WAITS = 17  # the path waits at an mbarrier or for its warpgroup; only between `run_warp` and `run_block`
OUT_OF_TURN = 18  # a thread arrived twice at the cluster's barrier, or waited at it before it arrived
ENDED_BLOCK = 19  # an access to the shared memory of a block of the cluster that has ended

# Counters (int64)
ISSUED, SEGMENTS, RECORDS, PATTERNS, BUDGET_LEFT = range(5)
FAULT_INSTRUCTION, FAULT_WARP, FAULT_LANE, FAULT_ADDRESS = 5, 6, 7, 8
WARP_BASE = 9  # number of the block's first warp in the trace
SYNCS, SYNC_WARP, ROOM = 10, 11, 12  # see `gemmsim.trace.engine.sync_trace`; records for which a copy needs room
UNMET = 13  # how often threads at WARPSYNC went on without threads that wait at a convergence barrier
LATE_ARRIVAL = 14  # 1 + the last instruction that arrived at an mbarrier of a block of the cluster that had ended
COLUMNS_LEFT = 15  # columns that warpgroups multiply before `run_block` returns GROW, for Python to leave out the rest
REQUESTS = 16  # to L2 of the bulk copy of which `note_sync` tells next
COUNTERS = 17
UNLIMITED = 1 << 62

# The context holds addresses and numbers, so that compiled functions take one argument.
COUNTERS_AT, PATTERNS_AT, HASH_AT, LAST_AT = range(4)
RECORD_PC_AT, RECORD_PATTERN_AT, RECORD_BASE_AT, RECORD_LIMIT, PATTERN_LIMIT = range(4, 9)
SEGMENT_WARP_AT, SEGMENT_START_AT, SEGMENT_RECORD_AT, SEGMENT_LIMIT, PC_AT, PC_LIMIT = range(9, 15)
ALLOCATION_PLACE, WRITTEN_AT, ALLOCATION_START, ALLOCATION_SIZE, ALLOCATION_POSITION, ALLOCATIONS = range(15, 21)
SHARED_AT, SHARED_BYTES, LOCAL_AT, LOCAL_WORDS = range(21, 25)
ATOMIC_DELTA = 25  # what the atomic that is executed adds to its addresses to get those in this process
BANKS_AT, WARPS, ACCESSES = 26, 27, 28  # BANKS_AT: (address, bytes) of each constant bank
CODE_AT, START_AT, REGISTERS_AT, ROW_WORDS, WARPS_AT, BARRIERS_AT = range(29, 35)
EXECUTED_AT, THREADS_AT, STREAM = 35, 36, 37  # STREAM: whether the instruction stream is recorded
TOUCHED_AT, ALLOCATION_LENT, ALLOCATION_STALE = 38, 39, 40  # see `gemmsim.trace.launch_data.device_memory`
# The rest is for the sanitizing executor only (see `gemmsim.trace.sanitizer.checks`).
CLOCKS_AT, GATES_AT, WARP_SHADOWS_AT, SHADOW_AT, FINDINGS_AT = range(41, 46)
GRANULE_SHIFT, OWN_SHARED_BYTES, BLOCK_THREADS = 46, 47, 48
# The next words are for blocks that run interleaved (see `gemmsim.trace.engine.run_residents`).
RESIDENTS_AT, RESIDENTS, CURRENT, TURNS, NOW, SPINS_IN_A_ROW, SPIN_LIMIT = range(49, 56)
POLLS_AT = 56  # for each warp and memory operation a digest of what it found last
ENTRIES = 57  # instructions and external functions: an address of code is 16 times the number of one of them
# For the executor that relates blocks (`gemmsim.trace.engine.differences`): the vector of each record, and its tables
RECORD_MOVER_AT, DIFFERENCES_AT = 58, 59
PHASES_AT = 60  # int32 for each 8 bytes of shared memory: phases that an mbarrier there has completed
# For clusters: where the block's own shared memory begins in the cluster's window, how many blocks a cluster has, and
# for each of them the address of its words as a resident block, 0 where it does not run. CLUSTER_AT is 0 where blocks
# run one by one.
SHARED_BASE, CLUSTER_BLOCKS, CLUSTER_AT = 61, 62, 63
# For the sanitizing executor, too. BLOCK_NUMBER is the block's linear id plus 1, and BLOCKS_SHADOW_AT may be 0.
MBARRIERS_AT, WATCHED_AT, BLOCKS_SHADOW_AT, BLOCKS_SHIFT, BLOCK_NUMBER = range(64, 69)
SYNC_AT, SYNC_LIMIT = 69, 70  # rows of SYNC_WORDS int64, see `gemmsim.trace.engine.sync_trace`
LOADED_AT = 71  # for the sanitizing executor: which registers that loads write each micro-operation touches
CONTEXT_SLOTS = 72

# What a row says of one operation on a barrier, or of one bulk copy: how many instructions had issued, the warp in the
# trace and its instruction; which barrier, and which of its phases; bytes that a copy moves, records that it left, and
# requests to L2.
SYNC_ISSUED, SYNC_OF_WARP, SYNC_PC, SYNC_BARRIER, SYNC_PHASE, SYNC_BYTES, SYNC_RECORDS, SYNC_MAP, SYNC_REQUESTS = range(
    9
)
SYNC_WORDS = 9
NO_BARRIER = -1  # SYNC_BARRIER of a bulk store and of a memory fence

# The words of a resident block. The words of the context that are different for each block follow from STATE_WORDS on,
# in the order of STATE_CONTEXT.
LIVE, CLOCK, LAST_TURN, SPINNING, SPIN_WARP, RESIDENT_WARP_BASE, STATE_WORDS = range(7)
STATE_CONTEXT = (
    *(REGISTERS_AT, WARPS_AT, BARRIERS_AT, SHARED_AT, LOCAL_AT, EXECUTED_AT, THREADS_AT, STREAM),
    *(POLLS_AT, PHASES_AT, CLOCKS_AT, GATES_AT, WARP_SHADOWS_AT, SHADOW_AT, MBARRIERS_AT, SHARED_BASE),
    CLUSTER_AT,
)
RESIDENT_WORDS = STATE_WORDS + len(STATE_CONTEXT)

# A pattern is a row of uint64: 32 offsets, then the words named here.
PATTERN_MASK, PATTERN_HIGH, PATTERN_ALIGNMENT, PATTERN_KIND = 32, 33, 34, 35
PATTERN_WORDS = 40
# PATTERN_KIND: lane l of a ROW is 4 l bytes behind lane 0; STACKED are the addresses of local memory, where a thread's
# next word is STACK_STRIDE bytes further.
PATTERN_SCATTERED, PATTERN_BROADCAST, PATTERN_ROW, PATTERN_STACKED = range(4)
STACK_STRIDE = 128
# For each memory operation of a warp so many patterns are remembered: the last one for each word of a 128-byte line at
# which the address of its first lane was.
LAST_WORDS = 32
HASH_SLOTS = 1 << 18  # twice the most patterns that a trace may have

# High words of the generic addresses of shared and local memory
SHARED_WINDOW, LOCAL_WINDOW = 0x7D00, 0x7D01
# The shared memory of the cluster's block number r begins in that window at r << RANK_SHIFT. Records of a block's own
# shared memory begin at 0; those of other blocks' are placed from REMOTE_BASE on, each block's at its place there.
RANK_SHIFT, REMOTE_BASE = 24, 1 << 28
# The records of local accesses place the lane-interleaved stacks of any block from this address on: where on the GPU
# they lie depends on the SM that it runs on (`gemmsim.memory.grid.stacks`). Addresses below 2**32 are of shared memory.
LOCAL_BASE = 0x7E00_0000_0000
