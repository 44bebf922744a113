"""What a finding is called, and what its threads do, by its number in the table of findings (`shadow`)."""

from __future__ import annotations

from gemmsim.trace import micro
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.findings import Defect

DOES = {
    shadow.READ: "reads",
    shadow.MATRIX_READ: "multiplies",
    shadow.BULK_READ: "copies from",
    shadow.ATOMIC: "updates",
    shadow.WRITTEN: "writes",
    shadow.COPY: "copies to",
    shadow.BULK_WRITE: "copies to",
}
# By the kind of an access (`micro.LOAD` and so on)
DOES_BY_KIND = {micro.LOAD: "reads", micro.STORE: "writes", micro.ATOMIC: "updates"}
DEFECTS = {
    shadow.RACE: Defect.RACE,
    shadow.UNWAITED: Defect.UNWAITED_COPY,
    shadow.UNWRITTEN: Defect.UNINITIALISED,
    shadow.OUTSIDE: Defect.OUT_OF_BOUNDS,
    shadow.MISPLACED: Defect.MISALIGNED,
    shadow.UNEVEN_EXIT: Defect.DIVERGENT_BARRIER,
    shadow.UNEVEN_PLACE: Defect.DIVERGENT_BARRIER,
    shadow.UNWAITED_READER: Defect.UNWAITED_COPY,
    shadow.UNWAITED_MATRIX: Defect.UNWAITED_PRODUCT,
    shadow.UNFENCED: Defect.MISSING_FENCE,
    shadow.NO_MBARRIER: Defect.UNINITIALISED,
    shadow.UNORDERED_USE: Defect.RACE,
    shadow.BETWEEN_BLOCKS: Defect.RACE,
    shadow.WITHIN_BLOCK: Defect.RACE,
    shadow.UNEVEN_COUNT: Defect.DIVERGENT_BARRIER,
    shadow.OUTSIDE_BANK: Defect.OUT_OF_BOUNDS,
    shadow.PHASE_UNSEEN: Defect.PHASE,
    shadow.PHASE_PASSED: Defect.PHASE,
    shadow.BYTES_DIFFER: Defect.BYTES_EXPECTED,
    shadow.EARLY_REGISTER: Defect.UNWAITED_PRODUCT,
    shadow.UNFENCED_REGISTER: Defect.MISSING_FENCE,
    shadow.ENDED: Defect.ENDED_BLOCK,
    shadow.ENDS: Defect.ENDED_BLOCK,
}
SENTENCES = {
    shadow.RACE: "two threads use the same bytes of shared memory and no barrier lies between",
    shadow.UNWAITED: "an asynchronous copy may still be under way: nobody has waited for its group",
    shadow.UNWRITTEN: "shared memory is read that no thread of the block has written so far",
    shadow.UNEVEN_EXIT: "a barrier of the whole block that some threads never reach: they have ended",
    shadow.UNEVEN_PLACE: "threads of a block wait at different barriers for each other",
    shadow.UNWAITED_READER: "shared memory is overwritten that an asynchronous copy may still read: nobody has waited "
    "for its group",
    shadow.UNWAITED_MATRIX: "shared memory is overwritten that wgmma may still read: nobody has waited for its group",
    shadow.UNFENCED: "TMA or wgmma uses bytes that a thread wrote, and no fence.proxy.async lies between",
    shadow.NO_MBARRIER: "an mbarrier is used that nobody has initialised",
    shadow.PHASE_UNSEEN: "a thread arrives that does not know that the phase before is complete: its arrival may count "
    "in that one",
    shadow.BETWEEN_BLOCKS: "two blocks use the same bytes of global memory, and nothing orders the blocks of a launch",
    shadow.WITHIN_BLOCK: "two threads use the same bytes of global memory and no barrier lies between",
    shadow.UNEVEN_COUNT: "threads wait at a barrier of more threads than can still come to it",
    shadow.UNORDERED_USE: "an mbarrier is used, and no barrier lies between that and its initialisation",
    shadow.PHASE_PASSED: "a wait whose phase is over for long: its parity says no more which one it is",
    shadow.EARLY_REGISTER: "registers of a wgmma are used before anybody has waited for its group",
    shadow.UNFENCED_REGISTER: "wgmma uses registers that were written, and no wgmma.fence lies between",
    shadow.ENDED: "shared memory of a block of the cluster is used that has ended",
    shadow.ENDS: "a block ends, and nothing tells it that another block of the cluster is done with its shared memory",
}

UNSEEN = "a bulk copy may still be under way: nobody has waited for the phase of its mbarrier"
# Of the findings about mbarriers: what the thread of the access does, and that of the earlier one
AT_MBARRIERS = {
    shadow.NO_MBARRIER: ("uses", ""),
    shadow.UNORDERED_USE: ("uses", "initialises"),
    shadow.PHASE_UNSEEN: ("arrives", "completes a phase"),
    shadow.PHASE_PASSED: ("waits", "completes a phase"),
    shadow.BYTES_DIFFER: ("copies to", "expects bytes"),
}
WITH_REGISTERS = (shadow.EARLY_REGISTER, shadow.UNFENCED_REGISTER)
AT_ENDS = {shadow.UNEVEN_EXIT: ("waits at", "ends at"), shadow.UNEVEN_PLACE: ("waits at", "waits at")}
AT_ENDS |= {shadow.ENDED: ("", "ends at"), shadow.ENDS: ("ends at", ""), shadow.UNEVEN_COUNT: ("waits at", "")}
NOWHERE = (shadow.UNEVEN_EXIT, shadow.UNEVEN_PLACE, shadow.UNEVEN_COUNT, *WITH_REGISTERS)  # no memory is concerned
