"""Names the columns and the kinds of rows of a tape (`gemmsim.trace.steady.tapes`)."""

from __future__ import annotations

# Columns of a tape: what is done or asked, the word at which a row begins (of OPERATE: the address of the operation),
# the lanes, and what else it takes
COLUMNS = 6
KIND, AT, MASK, FIRST, SECOND, THIRD = range(COLUMNS)

OPERATE = 0  # execute an operation on lanes
MOVES = 1  # whether any word of a row moves: FIRST
HOLDS = 2  # for which lanes of every warp a predicate holds, XORed with FIRST: SECOND
STRIDE = 3  # by how many bytes the address in two rows moves for all lanes: FIRST
RANGE = 4  # a word that moves, XORed with FIRST, does not leave the range of THIRD bits, with a sign where SECOND
LINEAR = 5  # a row moves evenly
CONSTANT = 6  # a row does not move
PRODUCT = 7  # the low word of AT times the row FIRST plus the row SECOND does not wrap around; THIRD: what is added, of
# two rows, must be 0
