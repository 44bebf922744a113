"""Names of the small arrays that the executor and its Python side share."""

from __future__ import annotations

# Warp states
READY, AT_BARRIER, DONE = 0, 1, 2

# Why a path waits: a convergence barrier 0..15, or one of these
RUNNABLE, WAIT_WARP, WAIT_BLOCK = -1, 16, 17
MAX_PATHS = 64
CONVERGENCE_BARRIERS = 18

# Status returned by `run_block`
FINISHED = 0
GROW = 1  # a trace buffer is full: enlarge and call again
BUDGET = 2  # the instruction budget is used up
OUT_OF_BOUNDS = 3
MISALIGNED = 4
DEADLOCK = 5
SHARED_RANGE = 6
TOO_DIVERGENT = 7
PARTIAL_WARP = 8

# Slots of the counter array
ISSUED, SEGMENTS, RECORDS, PATTERNS, BUDGET_LEFT = 0, 1, 2, 3, 4
FAULT_INSTRUCTION, FAULT_WARP, FAULT_LANE, FAULT_ADDRESS = 5, 6, 7, 8
WARP_BASE = 9  # number of the block's first warp in the trace
COUNTERS = 10

# Slots of the context: addresses (or numbers) as uint64, so that inner functions take one argument
COUNTERS_AT, PATTERNS_AT, HASH_AT, LAST_AT = 0, 1, 2, 3
RECORD_WARP_AT, RECORD_PC_AT, RECORD_PATTERN_AT, RECORD_BASE_AT = 4, 5, 6, 7
GLOBAL_AT, WRITTEN_AT, ALLOCATION_START, ALLOCATION_SIZE, ALLOCATION_POSITION, ALLOCATIONS = 8, 9, 10, 11, 12, 13
SHARED_AT, SHARED_BYTES, LOCAL_AT, LOCAL_WORDS, LOCAL_SLOT = 14, 15, 16, 17, 18
CONSTANTS, CONSTANT_WORDS, WARPS, INSTRUCTIONS = 19, 20, 21, 22
CONTEXT_SLOTS = 23

# A pattern is a row of uint64: 32 offsets, then
PATTERN_MASK, PATTERN_HIGH, PATTERN_ALIGNMENT, PATTERN_KIND = 32, 33, 34, 35
PATTERN_WORDS = 40
