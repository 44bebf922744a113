"""Where the watching executor writes down what it finds."""

from __future__ import annotations

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64
from gemmsim.trace.sanitizer.shadow import (
    F_ACCESS,
    F_ADDRESS,
    F_BYTES,
    F_COUNT,
    F_INSTRUCTION,
    F_KIND,
    F_LANE,
    F_OTHER,
    F_OTHER_ACCESS,
    F_OTHER_LANE,
    F_OTHER_WARP,
    F_SHARED,
    F_WARP,
    FINDING_WORDS,
    FOUND,
    HEADER_WORDS,
    LOST,
    MAX_FINDINGS,
    OUTSIDE,
    RACE,
    UNWAITED,
    UNWRITTEN,
)
from gemmsim.trace.words import FINDINGS_AT

# mypy: disable-error-code="no-untyped-def"

_SHARED_BELOW = 1 << 32


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX)
def report(context, kind, at, access, warp, lane, other, other_access, other_warp, other_lane, address, size):
    """Note a finding between the instructions `at` and `other`; of each kind and pair the first, and how many.

    The newest come first to the eye of the search: what is found once is mostly found again at once.
    """
    table = get_u64(context, FINDINGS_AT)
    found = get_i64(table, FOUND)
    for i in range(found - 1, -1, -1):
        row = moved(table, 8 * (HEADER_WORDS + FINDING_WORDS * i))
        same = get_i64(row, F_KIND) == kind and get_i64(row, F_INSTRUCTION) == at
        if same and get_i64(row, F_OTHER) == other and get_i64(row, F_OTHER_ACCESS) == other_access:
            set_i64(row, F_COUNT, get_i64(row, F_COUNT) + 1)
            return
    if found == MAX_FINDINGS:
        set_i64(table, LOST, get_i64(table, LOST) + 1)
        return
    row = moved(table, 8 * (HEADER_WORDS + FINDING_WORDS * found))
    set_i64(row, F_KIND, kind)
    set_i64(row, F_COUNT, 1)
    set_i64(row, F_INSTRUCTION, at)
    set_i64(row, F_OTHER, other)
    set_i64(row, F_ACCESS, access)
    set_i64(row, F_WARP, warp)
    set_i64(row, F_LANE, lane)
    set_i64(row, F_OTHER_ACCESS, other_access)
    set_i64(row, F_OTHER_WARP, other_warp)
    set_i64(row, F_OTHER_LANE, other_lane)
    set_i64(row, F_ADDRESS, address)
    set_i64(row, F_BYTES, size)
    shared = kind in (RACE, UNWAITED, UNWRITTEN) or (kind >= OUTSIDE and address < _SHARED_BELOW)
    set_i64(row, F_SHARED, 1 if shared else 0)
    set_i64(table, FOUND, found + 1)
