"""Names of the words that the compiled executor and its Python side share: slots of arrays of 64-bit words."""

from __future__ import annotations

# A warp: (its paths follow from PATHS_AT on)
PC, ACTIVE, ALIVE, STATE, PATH_COUNT, PATHS_AT = 0, 1, 2, 3, 4, 8
JOINS, JOINED = 5, 6  # how often divergent paths have met, and which threads did last
READY, WAITING, DONE = 0, 1, 2  # STATE
# A path of a warp: threads that do not run now, and why. NEED depends on the reason: the threads it waits for (WARP),
# the row of the convergence barrier (CONVERGENCE), or the number of the block's barrier (BLOCK).
PATH_PC, PATH_MASK, PATH_REASON, PATH_NEED = 0, 1, 2, 3
PATH_WORDS, MAX_PATHS = 4, 32
RUNNABLE, WAIT_CONVERGENCE, WAIT_WARP, WAIT_COLLECTIVE, WAIT_BLOCK = 0, 1, 2, 3, 4
WARP_WORDS = PATHS_AT + PATH_WORDS * MAX_PATHS

# A barrier of the block (16 of them), and in the last one's place the outcome of the last reduction
BARRIER_ARRIVED, BARRIER_TRUE, BARRIER_REDUCES = 0, 1, 2
BARRIER_WORDS, BLOCK_BARRIERS = 4, 16
OUTCOME = BARRIER_WORDS * BLOCK_BARRIERS
OUTCOME_TRUE, OUTCOME_HOLDS = 0, 1

# Status returned by `run_block`
FINISHED = 0
GROW = 1  # a trace buffer is full: enlarge and call again
BUDGET = 2  # the instruction budget is used up
OUT_OF_BOUNDS = 3
MISALIGNED = 4
DEADLOCK = 5
SHARED_RANGE = 6
TRAP = 7
PARTIAL_WARP = 8
LENT = 9  # something is about to be stored to a lent allocation, whose number is in FAULT_LANE: call again
STALE = 10  # a reduced program reads what was stored in name only: run the whole program

# Counters (int64)
ISSUED, SEGMENTS, RECORDS, PATTERNS, BUDGET_LEFT = 0, 1, 2, 3, 4
FAULT_INSTRUCTION, FAULT_WARP, FAULT_LANE, FAULT_ADDRESS = 5, 6, 7, 8
WARP_BASE = 9  # number of the block's first warp in the trace
COUNTERS = 10

# The context: addresses and numbers, so that compiled functions take one argument
COUNTERS_AT, PATTERNS_AT, HASH_AT, LAST_AT = 0, 1, 2, 3
RECORD_PC_AT, RECORD_PATTERN_AT, RECORD_BASE_AT, RECORD_LIMIT, PATTERN_LIMIT = 4, 5, 6, 7, 8
SEGMENT_WARP_AT, SEGMENT_START_AT, SEGMENT_RECORD_AT, SEGMENT_LIMIT, PC_AT, PC_LIMIT = 9, 10, 11, 12, 13, 14
ALLOCATION_PLACE, WRITTEN_AT, ALLOCATION_START, ALLOCATION_SIZE = 15, 16, 17, 18
ALLOCATION_POSITION, ALLOCATIONS = 19, 20
SHARED_AT, SHARED_BYTES, LOCAL_AT, LOCAL_WORDS, LOCAL_SLOT = 21, 22, 23, 24, 25
BANKS_AT, WARPS, ACCESSES = 26, 27, 28  # BANKS_AT: (address, bytes) of each constant bank
CODE_AT, START_AT, REGISTERS_AT, ROW_WORDS, WARPS_AT, BARRIERS_AT = 29, 30, 31, 32, 33, 34
EXECUTED_AT, THREADS_AT, STREAM = 35, 36, 37  # STREAM: whether instructions are recorded
# Of the executor that watches (see `gemmsim.trace.sanitizer.checks`)
CLOCKS_AT, GATES_AT, WARP_WATCH_AT, SHADOW_AT, FINDINGS_AT = 38, 39, 40, 41, 42
GRANULE_SHIFT, OWN_SHARED_BYTES, BLOCK_THREADS = 43, 44, 45
TOUCHED_AT, ALLOCATION_LENT, ALLOCATION_STALE = 46, 47, 48  # see `gemmsim.trace.launch_data.device_memory`
CONTEXT_SLOTS = 49

# A pattern is a row of uint64: 32 offsets, then
PATTERN_MASK, PATTERN_HIGH, PATTERN_ALIGNMENT, PATTERN_KIND = 32, 33, 34, 35
PATTERN_WORDS = 40
PATTERN_SCATTERED, PATTERN_BROADCAST, PATTERN_ROW = (
    0,
    1,
    2,
)  # PATTERN_KIND; ROW: lane l at the first lane's address + 4 l
LAST_WORDS = 32  # patterns remembered for an access of a warp, by the word of a line where its first lane is
HASH_SLOTS = 1 << 18  # twice the most patterns that a trace may have

# High words of the generic addresses of shared and local memory, and where the record of a local access says that the
# lane-interleaved stacks lie. Below 2**32 a record's address is one of shared memory.
SHARED_WINDOW, LOCAL_WINDOW = 0x7D00, 0x7D01
LOCAL_BASE = 0x7E00_0000_0000
