"""Names the words of the plan of a bulk copy (`gemmsim.trace.engine.copy_plans`), each by its index."""

from __future__ import annotations

# Words of a plan, which says what a copy does. Of each dimension, innermost first, follow size, stride in bytes,
# elements of the tile, step from one of these to the next, and coordinate.
BASE, RANK, ITEM, SWIZZLE, SHARED, COMBINE, ALLOCATION, TARGET = range(8)
SIZE, STRIDE, BOX, STEP, PLACE = 8, 13, 18, 23, 28
BYTES, BARRIER, CONVERTS, MAP, PLAN_WORDS = 33, 34, 35, 36, 37  # MAP: address of a tensor map, 0 where there is none
