"""Names the words in which the compiled code of this room finds its tables, each by its index; all have 64 bits."""

from __future__ import annotations

BLOCKS = 0  # elements of a vector: the leader's, which is 0, then one for each other block, then zeros up to 32
VECTORS_AT, USED, CAPACITY = 1, 2, 3  # int32 [capacity, blocks]; so many are in use, of which number 0 is zero
LOWEST_AT, HIGHEST_AT = 4, 5  # int64 [capacity]: bounds of each vector's elements, blocks that were excluded left out
BITS_AT = 25  # uint32 [capacity]: the bits that are set in any element of each vector
CONTENT_AT, CONTENT_SLOTS = 6, 7  # int32 hash table of vectors by content; -1 where empty
# The memo: uint64 keys (0: empty) and int32 [slots, RESULTS]. It has as many slots as MEMO_SLOTS says, from the slot
# with this number on, and grows to MOST_MEMO_SLOTS: one that is small stays in this machine's caches.
MEMO_KEYS_AT, MEMO_VALUES_AT, MEMO_SLOTS, MEMO_USED = 8, 9, 10, 11
FIRST_MEMO_SLOTS, MOST_MEMO_SLOTS = 1 << 10, 1 << 20
SAME_AT, ALIGNED_AT = 12, 13  # uint8 [capacity]: elements must be 0, or multiples of 128, in the leader's class
EXCLUDED_AT = 24  # uint8 [blocks]: blocks that are not in the leader's class
RULES_AT = 14  # int64 [micro-operations, RULE_WORDS]
SCRATCH_AT, SAVED_AT, OUTCOME_AT = 15, 16, 17  # rows of a warp, RESULTS rows, and int32 [RESULTS, blocks]
SHADOW_OFFSET = 18  # bytes from a register's row to its shadow
SHARED_AT, LOCAL_AT, DIFFERENT = 19, 20, 21  # shadows of shared and local memory; whether any is not zero
THREADS_AT, THREADS_USED = 22, 23  # int64 [MAX_THREAD_ROWS, 4], see `THREAD_INSTRUCTION`
EVALUATIONS_LEFT, LOADS_LEFT = 26, 27  # after so many new vectors, and new vectors of loaded words, results are UNKNOWN
AT, LOST_AT = 28, 29  # address of the micro-operation that runs, and of the first for which it mattered what is UNKNOWN
DATA_DECIDES = 30  # whether guards are UNKNOWN: then numbers of threads are not known in other blocks
DATA_AT, DATA_LEFT = 32, 33  # uint8 [capacity]: vectors that come from loaded words; how many more may be made of them
IN_COLUMNS = 31  # whether what an atomic finds in global memory is the same in all blocks, see `leader.relate`
# How often blocks were excluded, and int64 [capacity]: how often they had been when the bounds of a vector were taken
EXCLUSIONS, BOUNDED_AT = 34, 35
# int64 [COPY_SLOTS, COPY_WORDS], by the address of the micro-operation: the dimensions of the last tile it copied, 0
# where there was none, and the vector by which it moves; then of each dimension what `copies` says
COPIES_AT, COPY_SLOTS, COPY_WORDS = 36, 64, 32
# uint16 [micro-operations, OPERATION_ROWS]: how many rows decide whether an operation on lanes is looked at, and which
# they are; and uint8 [warps, rows] of each row of registers, see `OFTEN`, and the address of these registers
OPERATION_ROWS_AT, DIFFERS_AT, REGISTERS_AT = 37, 38, 39
OWN_WORDS = 40
OPERATION_ROWS = 18  # a count, a guard, MAX_SOURCE_ROWS and RESULTS
# A row's bits: some word differs in some block; it is not noted whether any does, as loads write there, too. Where no
# bit is set, all words are those of the leader in every block.
DIFFERS, OFTEN = 1, 2
# Numbers of the vectors that stand for differences that are not followed, and for such in the upper half of a word
# alone, whose lower half is the leader's: both are 0 for the leader alone.
UNKNOWN, UNKNOWN_HIGH = 1, 2

# The rule of a micro-operation on lanes (`rules`)
SOURCES, RESULTS_COUNT = 0, 1  # numbers of rows that it reads and writes
SIGNED, CHECKED, EXACT_IF = 2, 3, 4  # bits for source rows, result rows, source rows
SOURCE_AT, NEEDS, LIMIT_BITS, RESULT_AT = 5, 15, 25, 35
BITWISE = 41  # whether each bit of its only result depends on the same bit of the sources alone
MAX_SOURCE_ROWS, RESULTS = 10, 6
# What is known of the only result where a source is UNKNOWN or UNKNOWN_HIGH. FROM_BITS: each of its bits depends on one
# bit of each source at most, if sources that FIXED has bits for do not differ. FROM_LOW: its lower half depends on the
# lower halves of the sources.
HALVES, FIXED, RULE_WORDS = 42, 43, 44
FROM_BITS, FROM_LOW = 1, 2

# Threads for which the guard of an instruction holds, where that differs by block. In a block these are as many as in
# the leader, minus (plus, where the guard is inverted) COUNT times the element of the vector.
THREAD_INSTRUCTION, THREAD_VECTOR, THREAD_INVERTED, THREAD_COUNT = range(4)
MAX_THREAD_ROWS = 4096
