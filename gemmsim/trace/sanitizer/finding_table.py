"""Where the watching executor writes down what it finds."""

from __future__ import annotations

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64
from gemmsim.trace.sanitizer import shadow

# mypy: disable-error-code="no-untyped-def"

_SHARED_BELOW = 1 << 32


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX)
def report(context, kind, at, access, warp, lane, other, other_access, other_warp, other_lane, address, size):
    """Note a finding between the instructions `at` and `other`; of each kind and pair the first, and how many.

    The newest come first to the eye of the search: what is found once is mostly found again at once.
    """
    table = get_u64(context, words.FINDINGS_AT)
    found = get_i64(table, shadow.FOUND)
    for i in range(found - 1, -1, -1):
        row = moved(table, 8 * (shadow.HEADER_WORDS + shadow.FINDING_WORDS * i))
        same = get_i64(row, shadow.F_KIND) == kind and get_i64(row, shadow.F_INSTRUCTION) == at
        if same and get_i64(row, shadow.F_OTHER) == other and get_i64(row, shadow.F_OTHER_ACCESS) == other_access:
            set_i64(row, shadow.F_COUNT, get_i64(row, shadow.F_COUNT) + 1)
            return
    if found == shadow.MAX_FINDINGS:
        set_i64(table, shadow.LOST, get_i64(table, shadow.LOST) + 1)
        return
    row = moved(table, 8 * (shadow.HEADER_WORDS + shadow.FINDING_WORDS * found))
    set_i64(row, shadow.F_KIND, kind)
    set_i64(row, shadow.F_COUNT, 1)
    set_i64(row, shadow.F_INSTRUCTION, at)
    set_i64(row, shadow.F_OTHER, other)
    set_i64(row, shadow.F_ACCESS, access)
    set_i64(row, shadow.F_WARP, warp)
    set_i64(row, shadow.F_LANE, lane)
    set_i64(row, shadow.F_OTHER_ACCESS, other_access)
    set_i64(row, shadow.F_OTHER_WARP, other_warp)
    set_i64(row, shadow.F_OTHER_LANE, other_lane)
    set_i64(row, shadow.F_ADDRESS, address)
    set_i64(row, shadow.F_BYTES, size)
    shared = kind in (shadow.RACE, shadow.UNWAITED, shadow.UNWRITTEN) or (
        kind >= shadow.OUTSIDE and address < _SHARED_BELOW
    )
    set_i64(row, shadow.F_SHARED, 1 if shared else 0)
    set_i64(table, shadow.FOUND, found + 1)
