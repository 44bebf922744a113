"""Writes the sanitizing executor's findings into a table, whose words `gemmsim.trace.sanitizer.shadow` names."""

from __future__ import annotations

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.knowledge import number_of

# mypy: disable-error-code="no-untyped-def"

_KIND_AND_INSTRUCTION = (1 << shadow.LANE_SHIFT) - 1  # of a stamp


@subroutine(INDEX, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX)
def stamp_of(context, clock, warp, lane, kind, instruction):
    """Pack the thread, of the block that runs, and the instruction of an access into one word, a stamp, whose layout
    `gemmsim.trace.sanitizer.shadow` gives.

    Clocks begin at 1, so no stamp is 0, which means nobody.
    """
    stamp = clock << shadow.CLOCK_SHIFT | number_of(context, warp) << shadow.WARP_SHIFT | lane << shadow.LANE_SHIFT
    return stamp | kind << shadow.KIND_SHIFT | instruction


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX)
def report(context, defect, stamp, other, address, size):
    """Note a finding in the table: the access `stamp`, which collides with the earlier one `other` (0 where there is
    none).

    For each defect and pair of instructions only the first finding is kept, with a count of all. The newest rows are
    searched first, because what is found once is mostly found again at once.
    """
    table = get_u64(context, words.FINDINGS_AT)
    found = get_i64(table, shadow.FOUND)
    for i in range(found - 1, -1, -1):
        row = moved(table, 8 * (shadow.HEADER_WORDS + shadow.FINDING_WORDS * i))
        differs = (get_i64(row, shadow.FINDING_STAMP) ^ stamp) & shadow.INSTRUCTION_MASK
        differs |= (get_i64(row, shadow.FINDING_OTHER) ^ other) & _KIND_AND_INSTRUCTION
        if differs == 0 and get_i64(row, shadow.FINDING_DEFECT) == defect:
            set_i64(row, shadow.FINDING_COUNT, get_i64(row, shadow.FINDING_COUNT) + 1)
            return
    if found == shadow.MAX_FINDINGS:
        set_i64(table, shadow.LOST, get_i64(table, shadow.LOST) + 1)
        return
    row = moved(table, 8 * (shadow.HEADER_WORDS + shadow.FINDING_WORDS * found))
    set_i64(row, shadow.FINDING_DEFECT, defect)
    set_i64(row, shadow.FINDING_COUNT, 1)
    set_i64(row, shadow.FINDING_STAMP, stamp)
    set_i64(row, shadow.FINDING_OTHER, other)
    set_i64(row, shadow.FINDING_ADDRESS, address)
    set_i64(row, shadow.FINDING_BYTES, size)
    set_i64(row, shadow.FINDING_WITH, get_i64(table, shadow.OTHER_WITH))
    set_i64(table, shadow.FOUND, found + 1)
