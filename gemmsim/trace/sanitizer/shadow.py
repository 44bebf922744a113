"""Names the words that the sanitizing executor shares with Python: its shadow of shared memory, what each warp knows,
and its findings.

The modules of this package use them in compiled code, `shadow_state` in Python. What they are for is told in
`gemmsim.trace.sanitizer.knowledge` (vectors), `granules` (shared memory), `flights` (wgmma) and
`gemmsim.trace.engine.watched.mbarriers`.
"""

from __future__ import annotations

# Kinds of access. Up to LAST_READ they only read. Those of matrices and bulk copies, and COPY (cp.async), are
# asynchronous: they go on after their instruction.
READ, MATRIX_READ, BULK_READ, ATOMIC, WRITTEN, COPY, BULK_WRITE = range(7)
LAST_READ = BULK_READ

# The words of a granule of shared memory, which is as many bytes as the narrowest access of the program: its last write
# and some readers.
WRITE, WRITE_WITH, WRITE_SERIAL, READERS_AT = range(4)
READERS = 4
READERS_END = READERS_AT + 2 * READERS
SHADOW_WORDS = READERS_END + 1
# A stamp says who accessed: clock << 36 | rank of the block in its cluster << 32 | warp << 27 | lane << 22 | kind << 19
# | instruction. 0 means nobody. Rank and warp together are the number of the warp in the cluster. The word WITH beside
# a stamp holds active mask << 32 | meetings of the warp. Of an asynchronous access its low 32 bits hold the value that
# the clock of its agent has when it is complete; of a bulk copy that writes, they follow, << 32, the number of its
# mbarrier, counted from 0, with the rank of its block above, and, << 42, its place in that block's shared memory.
CLOCK_SHIFT, RANK_SHIFT, WARP_SHIFT, LANE_SHIFT, KIND_SHIFT = 36, 32, 27, 22, 19
INSTRUCTION_MASK, KIND_MASK, WARP_MASK, RANK_MASK = (1 << KIND_SHIFT) - 1, 7, 511, 15
WITH_MASK, WITH_NUMBER_SHIFT, WITH_NUMBER_MASK, WITH_ADDRESS_SHIFT = (1 << 32) - 1, 32, 1023, 42

# The words of a granule of global memory: stamps of the last write, and of the first and the last reader, with the
# block's number plus 1 as their clock; then of the last write again, and of a reader of the block of the last reader,
# with the clocks of their warps, and the words beside them; and the number of the store that wrote.
BLOCK_WRITE, BLOCK_READER, BLOCK_LAST_READER = range(3)
OWN_WRITE, OWN_WRITE_WITH, OWN_WRITE_SERIAL, OWN_READER, OWN_READER_WITH, BLOCK_WORDS = range(3, 9)

# A vector of clocks, which a warp, a barrier, or an mbarrier knows, has PART_WORDS words for each block of the cluster,
# in the order of their ranks: from each of these words on, one clock for each
#   CLOCK          warp
#   FENCED         warp: what fence.proxy.async has made visible to the asynchronous proxy
#   COPIES         warp: asynchronous copies of it (cp.async, bulk copies out of shared memory) that are complete
#   FENCED_COPIES  warp: those that were complete at such a fence
#   MATRICES       warpgroup: groups of its wgmma that are complete
#   PHASES         mbarrier: its phases that are complete
MAX_WARPS, MAX_WARPGROUPS, MAX_MBARRIERS = 32, 8, 64
CLOCK, FENCED, COPIES, FENCED_COPIES, MATRICES, PHASES = 0, 32, 64, 96, 128, 136
PART_WORDS = PHASES + MAX_MBARRIERS
# From the number of a warp in the cluster to its rank, and from that of an mbarrier
RANK_OF_WARP, RANK_OF_MBARRIER = 5, 6

# The words of a barrier of the block. GATE_FIRST is the stamp of the first thread that arrived, GATE_OTHER that of one
# that arrived at another instruction (0 where none did). From GATE_VECTOR on follows what those know that have arrived.
# Behind these barriers lie two for the cluster's, of which only the vectors are used: what those of the block know that
# have arrived, or ended, since it opened; and what all of the cluster knew that had arrived when it opened. Last come
# those of the warpgroups, whose vectors hold what its warps knew when they last arrived (WARPGROUP.ARRIVE).
GATE_ARRIVED, GATE_WAITING, GATE_COUNTED, GATE_FIRST, GATE_OTHER, GATE_VECTOR = range(6)
CLUSTER_PENDING, CLUSTER_PUBLISHED, WARPGROUP_GATES = 16, 17, 18
GATES = WARPGROUP_GATES + MAX_WARPGROUPS

# The mbarriers of a block: USED of them so far; then for each 8 bytes of shared memory the number of the mbarrier
# there, counted from 1 (0 where there is none, -1 where there were too many before); then the words of each, in the
# order in which they were initialised: MB_VECTORS, and two vectors.
# MB_ADDRESS, MB_INITIALISED, MB_INITIALISED_WITH  where it is; stamp of its initialisation, and the word beside
# MB_BALANCE               bytes that are expected and have not come
# MB_EXPECTED, MB_COPIED   stamps of the last arrival that expected bytes, and of the last bulk copy
# MB_ARRIVED, MB_COMPLETED stamps of the last arrival, and of what completed the last phase
# Of the vectors, the first is what those know that have arrived so far, the second what those knew that had when the
# last phase was complete.
USED, MBARRIER_NUMBERS = 0, 1
MB_ADDRESS, MB_INITIALISED, MB_INITIALISED_WITH, MB_BALANCE = range(4)
MB_EXPECTED, MB_COPIED, MB_ARRIVED, MB_COMPLETED, MB_VECTORS = range(4, 9)

# The words of a warp.
# COPIED, GROUPS       asynchronous copies that it has begun; groups of them that are closed
# MULTIPLIED           groups of wgmma that it has closed
# FLIGHTS              its wgmma that it has not waited for, at most FLIGHT_LIMIT: words FLIGHT_... of each from FLIGHT
#                      on
# EPOCH                how often WARPGROUP.ARRIVE was executed, plus 1
# EXIT                 stamp of a thread that ended (0 where none did)
# MEETINGS_KNOWN       words.MEETINGS up to which ALL_MET and MET are known
# ALL_MET              number of the last meeting of all threads; MET + 32 * lane + other lane: of the last one of two
#                      lanes
# CLOSED               from here on RING words: COPIED when each of the last RING groups was closed
# CHANGED              for each register that wgmma uses the stamp of the last instruction that wrote it, with the epoch
#                      as its clock
# PENDING, PENDING_LANES  whether any register holds a word of shared memory that nobody had written when it was loaded;
#                      PENDING_LANES + register: the lanes for which it does
# PENDING_AT           for each register and lane PENDING_WORDS words: the stamp of the load, and the address << 32 |
#                      bytes of its access. They count only where PENDING_LANES says so, and no block clears them
COPIED, GROUPS, MULTIPLIED, FLIGHTS, EPOCH, EXIT, MEETINGS_KNOWN, ALL_MET, MET = range(9)
CLOSED, RING = MET + 32 * 32, 64
FLIGHT, FLIGHT_LIMIT = CLOSED + RING, 64
FLIGHT_OP, FLIGHT_GROUP, FLIGHT_STAMP, FLIGHT_WORDS = range(4)
CHANGED, REGISTERS = FLIGHT + FLIGHT_WORDS * FLIGHT_LIMIT, 256
PENDING, PENDING_LANES = CHANGED + REGISTERS, CHANGED + REGISTERS + 1
PENDING_AT = PENDING_LANES + REGISTERS
PENDING_STAMP, PENDING_PLACE, PENDING_WORDS = range(3)
WARP_SHADOW_WORDS = PENDING_AT + PENDING_WORDS * 32 * REGISTERS
# For each micro-operation: which registers it reads, and which it writes, a bit for each. There are two such tables:
# one of the registers that wgmma uses, for a program with wgmma (a multiplication reads A and writes its accumulators),
# and one of the registers that loads from shared memory write.
REGISTER_WORDS = REGISTERS // 64
WATCH_READS, WATCH_WRITES, WATCH_WORDS = 0, REGISTER_WORDS, 2 * REGISTER_WORDS

# The table of findings: a header, then a row for each. FINDING_STAMP is the stamp of the access, FINDING_OTHER that of
# the earlier one that it collides with (0 where there is none), FINDING_WITH the word beside that one, where the
# header's OTHER_WITH held it. ACTIVE are the lanes of the path that runs.
FOUND, LOST, SERIAL, OTHER_WITH, ACTIVE = range(5)
HEADER_WORDS, MAX_FINDINGS = 8, 4096
FINDING_DEFECT, FINDING_COUNT, FINDING_STAMP, FINDING_OTHER, FINDING_ADDRESS, FINDING_BYTES, FINDING_WITH = range(7)
FINDING_WORDS = 7
BANK_SHIFT = 24  # FINDING_ADDRESS of OUTSIDE_BANK: number of the constant bank << 24 | byte offset in it
# FINDING_DEFECT
RACE, UNWAITED, UNWRITTEN, OUTSIDE, MISPLACED, UNEVEN_EXIT, UNEVEN_PLACE = range(7)
UNWAITED_READER, UNWAITED_MATRIX, UNFENCED, NO_MBARRIER, PHASE_UNSEEN, PHASE_PASSED, BYTES_DIFFER = range(7, 14)
EARLY_REGISTER, UNFENCED_REGISTER, UNORDERED_USE, BETWEEN_BLOCKS, ENDED, ENDS = range(14, 20)
WITHIN_BLOCK, UNEVEN_COUNT, OUTSIDE_BANK = range(20, 23)
