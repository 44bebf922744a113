"""The executor's own code: each SASS instruction lowered to micro-operations, as rows of a uint32 table.

A warp's state is one array of rows, 32 words each, one a lane: registers, uniform registers (the same word in every
lane), predicates (all ones or zero), special registers, and the constants and immediates that the program mentions. So
an operand is a row, whatever it was in SASS, with two masks that carry its sign, absolute value or inversion:
(row & and_mask) ^ xor_mask.
"""

from __future__ import annotations

LANES = 32

# Columns of a micro-operation row.
OP = 0
GUARD = 1  # word offset of the guard predicate's row
GUARD_XOR = 2  # all ones where the guard is inverted
RESULT = 3  # .. 5: word offsets of the rows written
SOURCE = 6  # .. 20: five times (word offset, and mask, xor mask)
SOURCE_COLUMNS = 3
IMMEDIATE = 21  # .. 23
INSTRUCTION = 24  # index of the SASS instruction
FLAGS = 25
TARGET = 26  # micro-operation to continue at
ACCESS = 27  # memory: bytes a lane, and what kind (see `Access`)
BARRIER = 28  # convergence barrier register, or the memory operation's detail
COLUMNS = 32

# FLAGS
UNIFORM = 1  # writes a uniform register or predicate: the active mask does not apply
LAST = 2  # last micro-operation of its instruction
FIRST = 4  # first of its instruction
UNGUARDED = 8

# Operations that are not lane arithmetic and are executed by the warp loop; numbered after the lane operations.
CONTROL = (
    "nop",
    "exit",
    "bra",
    "bssy",
    "bsync",
    "break",
    "warpsync",
    "call",
    "ret",
    "bar",
    "load",
    "store",
    "atomic",
    "reduce",
    "copy_async",
    "shuffle",
    "vote",
    "first_lane",
    "match",
    "load_constant",
    "load_matrix",
    "multiply_matrix",
    "clock",
    "bra_divergent",
)
