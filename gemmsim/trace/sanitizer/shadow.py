"""Names the words that the sanitizing executor shares with Python: its shadow of shared memory and its findings.

`gemmsim.trace.sanitizer.checks` and `ordering` use them in compiled code, `shadow_state` in Python.
"""

from __future__ import annotations

# The words of a granule of shared memory, which is as many bytes as the narrowest access of the program: its last write
# and two readers.
WRITE, WRITE_WITH, WRITE_SERIAL, READER, READER_WITH, SECOND_READER, SECOND_READER_WITH = range(7)
SHADOW_WORDS = 8
# A stamp says who accessed: clock << 32 | warp << 27 | lane << 22 | kind << 20 | instruction. 0 means nobody. The word
# WITH beside it holds active mask << 32 | meetings of the warp, or for a copy the number of its group.
CLOCK_SHIFT, WARP_SHIFT, LANE_SHIFT, KIND_SHIFT = 32, 27, 22, 20
INSTRUCTION_MASK = (1 << KIND_SHIFT) - 1
READ, WRITTEN, ATOMIC, COPY = range(4)  # kinds of access

# The words of a barrier of the block. GATE_FIRST is the stamp of the first thread that arrived, GATE_OTHER that of one
# that arrived at another instruction (0 where none did). Clocks, one for each warp, follow from GATE_CLOCKS on.
GATE_ARRIVED, GATE_WAITING, GATE_COUNTED, GATE_FIRST, GATE_OTHER = range(5)
GATE_CLOCKS, MAX_WARPS = 5, 32
GATE_WORDS = GATE_CLOCKS + MAX_WARPS

# The words of a warp.
# GROUP           number of the group of copies that is open; groups below GROUPS_DONE have been waited for
# EXIT            stamp of a thread that ended (0 where none did)
# MEETINGS_KNOWN  words.MEETINGS up to which ALL_MET and MET are known
# ALL_MET         number of the last meeting of all threads; MET + 32 * lane + other lane: of the last one of two lanes
# WAITED          from here on RING words: the clock at which each of the last RING groups was waited for
GROUP, GROUPS_DONE, EXIT, MEETINGS_KNOWN, ALL_MET, MET = range(6)
WAITED, RING = MET + 32 * 32, 1024
WARP_SHADOW_WORDS = WAITED + RING

# The table of findings: a header, then a row for each. FINDING_STAMP is the stamp of the access, FINDING_OTHER that of
# the earlier one that it collides with (0 where there is none).
FOUND, LOST, SERIAL = 0, 1, 2
HEADER_WORDS, MAX_FINDINGS = 8, 4096
FINDING_DEFECT, FINDING_COUNT, FINDING_STAMP, FINDING_OTHER, FINDING_ADDRESS, FINDING_BYTES = range(6)
FINDING_WORDS = 6
RACE, UNWAITED, UNWRITTEN, OUTSIDE, MISPLACED, UNEVEN_EXIT, UNEVEN_PLACE = range(7)  # FINDING_DEFECT
