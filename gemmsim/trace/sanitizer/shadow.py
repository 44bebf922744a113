"""Names of the words that the watching executor and its Python side share; see `gemmsim.trace.sanitizer.checks`."""

from __future__ import annotations

# Of a granule of shared memory (the fewest bytes that any access of the program takes): its last write and two readers.
WRITE, WRITE_WITH, WRITE_SERIAL, READER, READER_WITH, SECOND_READER, SECOND_READER_WITH = range(7)
SHADOW_WORDS = 8
# A stamp says who accessed: clock << 32 | warp << 27 | lane << 22 | kind << 20 | instruction; 0 means nobody. Its WITH
# is active mask << 32 | joins of the warp, for a copy the number of its group.
CLOCK_SHIFT, WARP_SHIFT, LANE_SHIFT, KIND_SHIFT = 32, 27, 22, 20
INSTRUCTION_MASK = (1 << KIND_SHIFT) - 1
READ, WRITTEN, ATOMIC, COPY, NOTHING = range(5)  # kinds; NOTHING: there is no other access

# Of a barrier of the block: clocks (one a warp) follow from GATE_CLOCKS on
GATE_ARRIVED, GATE_WAITING, GATE_COUNTED, GATE_FIRST, GATE_WARP, GATE_LANE = range(6)
GATE_OTHER, GATE_OTHER_WARP, GATE_OTHER_LANE = 6, 7, 8
GATE_CLOCKS, MAX_WARPS = 9, 32
GATE_WORDS = GATE_CLOCKS + MAX_WARPS

# Of a warp: its groups of copies, and where its threads ended; the last JOINS of which it is known who met, the last at
# which all did, and for each two lanes (MET + 32 * lane + lane) the last at which both did; and for each of the last
# RING groups the clock at which it was waited for, from WAITED on
GROUP, DONE, EXIT, EXIT_LANE, MET_KNOWN, ALL_MET, MET = range(7)
WAITED, RING = MET + 32 * 32, 1024
WARP_WATCH_WORDS = WAITED + RING

# Findings: a header, then rows
FOUND, LOST, SERIAL = 0, 1, 2
HEADER_WORDS, MAX_FINDINGS = 8, 4096
(F_KIND, F_COUNT, F_INSTRUCTION, F_OTHER, F_ACCESS, F_WARP, F_LANE, F_OTHER_ACCESS, F_OTHER_WARP, F_OTHER_LANE) = range(
    10
)
F_ADDRESS, F_BYTES, F_SHARED = 10, 11, 12
FINDING_WORDS = 16
RACE, UNWAITED, UNWRITTEN, OUTSIDE, MISPLACED, UNEVEN_EXIT, UNEVEN_PLACE = range(7)  # F_KIND
