"""Python's side of the watching executor: the arrays that it writes to, and its findings as data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro, words
from gemmsim.trace.launch_data.address_names import describe_address
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.findings import Defect, Finding, Site
from gemmsim.trace.types import Launch

_DOES = ("reads", "writes", "updates", "copies to", "")
_DEFECTS = {
    shadow.RACE: Defect.RACE,
    shadow.UNWAITED: Defect.UNWAITED_COPY,
    shadow.UNWRITTEN: Defect.UNINITIALISED,
    shadow.OUTSIDE: Defect.OUT_OF_BOUNDS,
    shadow.MISPLACED: Defect.MISALIGNED,
    shadow.UNEVEN_EXIT: Defect.DIVERGENT_BARRIER,
    shadow.UNEVEN_PLACE: Defect.DIVERGENT_BARRIER,
}
_SENTENCES = {
    shadow.RACE: "two threads use the same bytes of shared memory and no barrier lies between",
    shadow.UNWAITED: "an asynchronous copy may still be under way: nobody has waited for its group",
    shadow.UNWRITTEN: "shared memory is read that no thread of the block has written",
    shadow.UNEVEN_EXIT: "a barrier of the whole block that some threads never reach: they have ended",
    shadow.UNEVEN_PLACE: "threads of a block wait at different barriers for each other",
}


class Watcher:
    """The state that a launch's blocks are watched with; `code` are its micro-operations."""

    def __init__(self, program: Program, launch: Launch, code: NDArray[np.uint32], shared_bytes: int) -> None:
        self.program, self.launch = program, launch
        warps = launch.warps_per_block
        own_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
        self.own_end = program.reserved_shared_bytes + own_bytes
        self.granule_shift = _granule_shift(code)
        self.clocks = np.zeros((shadow.MAX_WARPS, shadow.MAX_WARPS), np.int64)
        self.gates = np.zeros((words.BLOCK_BARRIERS, shadow.GATE_WORDS), np.int64)
        self.own = np.zeros((warps, shadow.WARP_WATCH_WORDS), np.int64)
        granules = (shared_bytes >> self.granule_shift) + 1
        self.shadow = np.zeros((granules, shadow.SHADOW_WORDS), np.int64)
        table_words = shadow.HEADER_WORDS + shadow.FINDING_WORDS * shadow.MAX_FINDINGS
        self.table = np.zeros(table_words, np.int64)
        self.blocks: list[int] = []  # in which each row of the table was met

    def fill(self, context: NDArray[np.uint64]) -> None:
        arrays = {
            words.CLOCKS_AT: self.clocks,
            words.GATES_AT: self.gates,
            words.WARP_WATCH_AT: self.own,
            words.SHADOW_AT: self.shadow,
            words.FINDINGS_AT: self.table,
        }
        for slot, array in arrays.items():
            context[slot] = array.ctypes.data
        context[words.GRANULE_SHIFT], context[words.OWN_SHARED_BYTES] = self.granule_shift, self.own_end
        context[words.BLOCK_THREADS] = self.launch.threads_per_block

    def begin(self) -> None:
        """Before a block: nothing written, nobody ordered."""
        self.clocks[:] = np.eye(shadow.MAX_WARPS, dtype=np.int64)
        self.gates[:] = 0
        self.shadow[:] = 0
        self.own[:] = 0
        self.own[:, shadow.EXIT] = -1
        self.own[:, shadow.WAITED] = 1 << 62

    def end(self, block: int) -> None:
        """After a block: what was found since the last one was found in it."""
        self.blocks += [block] * (int(self.table[shadow.FOUND]) - len(self.blocks))

    def forget(self) -> None:
        self.table[:] = 0
        self.blocks.clear()

    @property
    def lost(self) -> int:
        return int(self.table[shadow.LOST])

    def findings(self) -> list[Finding]:
        """What was found so far, one a pair of instructions."""
        rows = self.table[shadow.HEADER_WORDS :].reshape(-1, shadow.FINDING_WORDS)[: len(self.blocks)]
        return [self._finding(row.tolist(), block) for row, block in zip(rows, self.blocks, strict=True)]

    def site(self, does: str, instruction: int, warp: int, lane: int) -> Site:
        found = self.program.instructions[instruction]
        known = [line for line in found.sources if line.file in self.program.source]  # the user's, not a library's
        line = next(iter((*known, *found.sources)), None)
        lines = self.program.source.get(line.file, "").splitlines() if line else []
        text = lines[line.line - 1].strip() if line and 0 < line.line <= len(lines) else ""
        x, y, _ = self.launch.block
        thread = warp * WARP_LANES + lane
        return Site(does, found, line, text, (thread % x, thread // x % y, thread // (x * y)), warp, lane)

    def position(self, block: int) -> tuple[int, int, int]:
        gx, gy, _ = self.launch.grid
        return block % gx, block // gx % gy, block // (gx * gy)

    def _finding(self, row: list[int], block: int) -> Finding:
        kind = row[shadow.F_KIND]
        barrier = kind in (shadow.UNEVEN_EXIT, shadow.UNEVEN_PLACE)
        does = "waits at" if barrier else _DOES[row[shadow.F_ACCESS]]
        at = self.site(does, row[shadow.F_INSTRUCTION], row[shadow.F_WARP], row[shadow.F_LANE])
        other = None
        if row[shadow.F_OTHER] >= 0:
            does = _DOES[row[shadow.F_OTHER_ACCESS]]
            if barrier:
                does = "ends at" if kind == shadow.UNEVEN_EXIT else "waits at"
            place = row[shadow.F_OTHER_WARP], row[shadow.F_OTHER_LANE]
            other = self.site(does, row[shadow.F_OTHER], *place)
        shared, address, size = bool(row[shadow.F_SHARED]), row[shadow.F_ADDRESS], row[shadow.F_BYTES]
        own_bytes = self.own_end - self.program.reserved_shared_bytes
        space, detail, sentence = "", "", _SENTENCES.get(kind, "")
        if not barrier:
            space = "shared" if shared else "global"
            if shared:
                address -= self.program.reserved_shared_bytes
            else:
                detail = describe_address(self.launch.args, address)
        if kind == shadow.OUTSIDE:
            ends = f"the {own_bytes} bytes of shared memory of the block" if shared else "every array argument"
            sentence = f"an access outside {ends}"
        if kind == shadow.MISPLACED:
            sentence = f"an access of {size} bytes at an address that is not a multiple of {size}"
        return Finding(
            _DEFECTS[kind],
            sentence,
            self.position(block),
            space,
            None if barrier else address,
            size,
            at,
            other,
            detail,
            row[shadow.F_COUNT],
        )


def _granule_shift(code: NDArray[np.uint32]) -> int:
    """Log2 of the fewest bytes that an access to shared memory of the program takes."""
    how = code[np.isin(code[:, micro.OP], (CONTROL_NUMBER["access"], CONTROL_NUMBER["load_matrix"])), micro.ACCESS]
    space = (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    sizes = how[np.isin(space, (micro.SHARED, micro.GENERIC))] & micro.SIZE_MASK
    return int(sizes.min()).bit_length() - 1 if len(sizes) else 4
