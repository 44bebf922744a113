"""Defines the executor's own code: each SASS instruction becomes micro-operations, which are rows of a uint32 table.

A warp's state is one array of rows. A row has 32 words, one for each lane. There are rows for registers, uniform
registers (the same word in every lane), predicates (all ones or zero), convergence barriers, special registers, and the
constants and immediates that the program mentions. So an operand is a row, whatever it was in SASS, and two masks that
carry its sign, absolute value or inversion: (row & and_mask) ^ xor_mask.
"""

from __future__ import annotations

# Columns of a micro-operation row.
OP = 0
GUARD = 1  # word offset of the guard predicate's row
GUARD_XOR = 2  # all ones where the guard is inverted
RESULT, SECOND_RESULT, THIRD_RESULT = 3, 4, 5  # word offsets of the rows written
# Columns 6 to 20 hold up to five sources, each as (word offset of its row, and mask, xor mask).
SOURCE, SECOND_SOURCE, THIRD_SOURCE, FOURTH_SOURCE, FIFTH_SOURCE = 6, 9, 12, 15, 18
SOURCE_FLIP, THIRD_FLIP = 8, 14  # xor masks of the first and the third source
SOURCE_COLUMNS = 3
IMMEDIATE, SECOND_IMMEDIATE, THIRD_IMMEDIATE = 21, 22, 23
INSTRUCTION = 24  # index of the SASS instruction
FLAGS = 25
TARGET = 26  # micro-operation to continue at
ACCESS = 27  # what a memory operation does, see below
DETAIL = 28  # which operation of its kind, see below
SLOT = 29  # number of a memory operation among the program's memory operations
FUNCTION = 30  # address, 64 bits, of its machine code, where that is compiled by itself (`trace.engine.parts`)
COLUMNS = 32

# FLAGS
UNIFORM = 1  # writes a uniform register or predicate: the active mask does not apply
FIRST = 2  # first of its instruction
UNGUARDED = 4
TAKES_TURN = 8  # a global atomic before which the block gives way to others (`gemmsim.trace.turns`)
POLLS = 16  # a load after which the block gives way to others where it found what it found before
ANNOUNCES = 32  # an access to global memory for which another block may wait, so that a program slice keeps it
WATCHED = 64  # touches registers that wgmma uses; only when sanitizing (`gemmsim.trace.sanitizer.flights`)
# Touches registers that loads from shared memory write, and is such a load, of which words that nobody wrote are told
# when they are used; only when sanitizing (`gemmsim.trace.sanitizer.unwritten`)
TOUCHES_LOADED, TELLS_LATE = 128, 256

# ACCESS: bytes that a lane accesses, flags, memory space, and kind of access
SIZE_MASK, SIGNED_BIT, PARTIAL_BIT = 0x1F, 0x20, 0x40  # PARTIAL: bytes beyond the first are not checked for bounds
ASYNC_BIT = 0x80  # the store of an asynchronous copy
# An access with this bit is checked and recorded, but nothing is loaded or stored.
UNMOVED_BIT = 0x800
SPACE_SHIFT, SPACE_MASK, KIND_SHIFT = 8, 7, 12
GLOBAL, SHARED, LOCAL, GENERIC, CONSTANT = range(5)
LOAD, STORE, ATOMIC = range(3)
# DETAIL of an atomic: operation, type << TYPE_SHIFT, whether subnormals are flushed, and whether each word is combined
# by itself. Words of types HALF and BRAIN hold two numbers, of IEEE binary16 and of bfloat16.
ADD, MIN, MAX, AND, OR, XOR, EXCHANGE, INCREMENT, DECREMENT, COMPARE, COMPARE_FLAG, ARRIVAL = range(12)
UNSIGNED, SIGNED, FLOAT, HALF, BRAIN = range(5)
OPERATION_MASK, TYPE_SHIFT, TYPE_MASK, FLUSH_BIT, WORDWISE_BIT = 15, 4, 7, 0x80, 0x100

# DETAIL of a barrier: what a BAR does; that of a cluster's barrier is SYNC (it waits) or ARRIVE. IMMEDIATE of a BAR
# says whether registers hold its number or for how many threads it waits.
SYNC, ARRIVE, REDUCE_AND, REDUCE_OR, REDUCE_POPC = range(5)

# DETAIL of a trap behind the code, which a call or return to an address without code runs into; else it is 0
NOWHERE = 1

# DETAIL of a nop that orders accesses, for the sanitizer: it closes a group of asynchronous copies (LDGDEPBAR) or waits
# for groups (DEPBAR.LE), is a fence of the asynchronous proxy, closes a group of wgmma, waits for some, fences
# registers as the warp arrives at its warpgroup's next multiplication, or has waited for the warpgroup's arrival
COMMIT, WAIT, FENCE_PROXY, COMMIT_PRODUCTS, WAIT_PRODUCTS, FENCE_PRODUCTS, MEET_WARPGROUP = range(1, 8)
# DETAIL of a nop of which a trace says when a thread executes it
MEMORY_FENCE = 8

# DETAIL of an mbarrier operation. ARRIVE_AT takes a number of arrivals and a number of bytes; IMMEDIATE then holds
# flags. TEST and TRY tell whether a phase is complete; a wait goes back by SECOND_IMMEDIATE micro-operations.
INITIALISE, ARRIVE_AT, TEST, TRY = range(4)
# DETAIL of what orders the warps of a warpgroup: END_GROUP closes a group of multiplications, AWAIT_GROUPS waits until
# they have closed all but IMMEDIATE of those that this warp has closed. ARRIVE_WARP counts an arrival, AWAIT_WARPS
# waits until they have arrived as often as this warp has.
END_GROUP, AWAIT_GROUPS, ARRIVE_WARP, AWAIT_WARPS = 4, 5, 6, 7
# Flags: later phases expect as many arrivals less; the bytes have come, and are not expected; the thread's asynchronous
# copies (cp.async) are complete before it arrives
DROPS, COMPLETES, AFTER_COPIES = 1, 2, 4

# DETAIL of a bulk copy: direction, whether the upper half of THIRD_SOURCE is a mask of blocks of the cluster that all
# get the bytes, and dimensions of the tile, 0 for a run of bytes. IMMEDIATE is the DETAIL of an atomic with COMBINES
# where the copy combines with what is there; SECOND_IMMEDIATE is the bytes of an element of a run.
COPY_LOAD, COPY_STORE = range(2)
DIRECTION_MASK, MULTICASTS, RANK_SHIFT, COMBINES = 1, 2, 4, 0x1000
# Why a bulk copy cannot be executed (BAD_COPY): what FAULT_LANE then holds
NO_MAP, OTHER_RANK, INTERLEAVED, FILLED, CONVERTED, BEYOND, UNALIGNED, OUTSIDE_SHARED, NO_BARRIER = range(9)
ODD_PLACE, NEGATIVE_PLACE = 9, 10

# DETAIL of an exchange between lanes
SHUFFLES = {"IDX": 0, "UP": 1, "DOWN": 2, "BFLY": 3}
VOTES = {"ALL": 4, "ANY": 5, "EQ": 6}
FIRST_LANE, MATCH_ANY, MATCH_ALL = 7, 8, 9
REDUCTIONS = {"SUM": 10, "AND": 11, "OR": 12, "XOR": 13, "MIN": 14, "MAX": 15, "MIN.S32": 16, "MAX.S32": 17}
TRANSPOSE = 18

# Formats of the factors of a matrix multiplication, in the order of how many elements a register holds: 1, 2, 4, 8, 32
TF32, F16, BF16, S8, U8, E4M3, E5M2, S4, U4, B1 = range(10)

# Operations that are not lane arithmetic. They are numbered in this order, after the lane operations, and the loop that
# executes them relies on it: those from "exit" to "barrier" end a path for the threads that execute them, those listed
# after "access" are rare. Those from "exchange" on are compiled by themselves, and those of matrices come last.
CONTROL = (
    "nop",
    "idle",  # stands for a row of instructions that do nothing, as many as IMMEDIATE says
    "branch",  # to TARGET, for the lanes of a predicate
    "branch_divergent",  # to TARGET where the warp is not together (with DETAIL 1: where it is)
    "exit",
    "jump",  # to the byte offset in a register
    "converge",  # BSYNC
    "warpsync",
    "give_way",  # another warp of the block runs next
    "cluster_barrier",  # UCGABAR_ARV, UCGABAR_WAIT
    "barrier",
    "access",
    "begin",  # BSSY
    "leave",  # BREAK
    "barrier_outcome",
    "trap",
    "external",  # a call of number DETAIL of `Program.externals`, whose work Python does
    "exchange",
    "mbarrier",
    "copy_in_bulk",
    "order_groups",
    "move_matrix",
    "multiply_matrix",
    "multiply_warpgroup",  # one warp's quarter of a multiplication whose factors lie in shared memory
)
