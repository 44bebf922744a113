"""Python's side of the watching executor: the arrays that it writes to, and its findings as data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.trace import micro, state
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.sanitizer import words as watch_state
from gemmsim.trace.sanitizer.hazards import Defect, Finding, Site
from gemmsim.trace.sanitizer.owner import describe_address
from gemmsim.trace.types import WARP_LANES, Launch

_DOES = ("reads", "writes", "updates", "copies to", "")
_DEFECTS = {
    watch_state.RACE: Defect.RACE,
    watch_state.UNWAITED: Defect.UNWAITED_COPY,
    watch_state.UNWRITTEN: Defect.UNINITIALISED,
    watch_state.OUTSIDE: Defect.OUT_OF_BOUNDS,
    watch_state.MISPLACED: Defect.MISALIGNED,
    watch_state.UNEVEN_EXIT: Defect.DIVERGENT_BARRIER,
    watch_state.UNEVEN_PLACE: Defect.DIVERGENT_BARRIER,
}
_SENTENCES = {
    watch_state.RACE: "two threads use the same bytes of shared memory and no barrier lies between",
    watch_state.UNWAITED: "an asynchronous copy may still be under way: nobody has waited for its group",
    watch_state.UNWRITTEN: "shared memory is read that no thread of the block has written",
    watch_state.UNEVEN_EXIT: "a barrier of the whole block that some threads never reach: they have ended",
    watch_state.UNEVEN_PLACE: "threads of a block wait at different barriers for each other",
}


class Watcher:
    """The state that a launch's blocks are watched with; `code` are its micro-operations."""

    def __init__(self, program: Program, launch: Launch, code: NDArray[np.uint32], shared_bytes: int) -> None:
        self.program, self.launch = program, launch
        warps = launch.warps_per_block
        own_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
        self.own_end = program.reserved_shared_bytes + own_bytes
        self.granule_shift = _granule_shift(code)
        self.clocks = np.zeros((watch_state.MAX_WARPS, watch_state.MAX_WARPS), np.int64)
        self.gates = np.zeros((state.BLOCK_BARRIERS, watch_state.GATE_WORDS), np.int64)
        self.own = np.zeros((warps, watch_state.WARP_WATCH_WORDS), np.int64)
        granules = (shared_bytes >> self.granule_shift) + 1
        self.shadow = np.zeros((granules, watch_state.SHADOW_WORDS), np.int64)
        words = watch_state.HEADER_WORDS + watch_state.FINDING_WORDS * watch_state.MAX_FINDINGS
        self.table = np.zeros(words, np.int64)
        self.blocks: list[int] = []  # in which each row of the table was met

    def fill(self, context: NDArray[np.uint64]) -> None:
        arrays = {
            state.CLOCKS_AT: self.clocks,
            state.GATES_AT: self.gates,
            state.WARP_WATCH_AT: self.own,
            state.SHADOW_AT: self.shadow,
            state.FINDINGS_AT: self.table,
        }
        for slot, array in arrays.items():
            context[slot] = array.ctypes.data
        context[state.GRANULE_SHIFT], context[state.OWN_SHARED_BYTES] = self.granule_shift, self.own_end
        context[state.BLOCK_THREADS] = self.launch.threads_per_block

    def begin(self) -> None:
        """Before a block: nothing written, nobody ordered."""
        self.clocks[:] = np.eye(watch_state.MAX_WARPS, dtype=np.int64)
        self.gates[:] = 0
        self.shadow[:] = 0
        self.own[:] = 0
        self.own[:, watch_state.EXIT] = -1
        self.own[:, watch_state.WAITED] = 1 << 62

    def end(self, block: int) -> None:
        """After a block: what was found since the last one was found in it."""
        self.blocks += [block] * (int(self.table[watch_state.FOUND]) - len(self.blocks))

    def forget(self) -> None:
        self.table[:] = 0
        self.blocks.clear()

    @property
    def lost(self) -> int:
        return int(self.table[watch_state.LOST])

    def findings(self) -> list[Finding]:
        """What was found so far, one a pair of instructions."""
        rows = self.table[watch_state.HEADER_WORDS :].reshape(-1, watch_state.FINDING_WORDS)[: len(self.blocks)]
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
        kind = row[watch_state.F_KIND]
        barrier = kind in (watch_state.UNEVEN_EXIT, watch_state.UNEVEN_PLACE)
        does = "waits at" if barrier else _DOES[row[watch_state.F_ACCESS]]
        at = self.site(does, row[watch_state.F_INSTRUCTION], row[watch_state.F_WARP], row[watch_state.F_LANE])
        other = None
        if row[watch_state.F_OTHER] >= 0:
            does = _DOES[row[watch_state.F_OTHER_ACCESS]]
            if barrier:
                does = "ends at" if kind == watch_state.UNEVEN_EXIT else "waits at"
            place = row[watch_state.F_OTHER_WARP], row[watch_state.F_OTHER_LANE]
            other = self.site(does, row[watch_state.F_OTHER], *place)
        shared, address, size = bool(row[watch_state.F_SHARED]), row[watch_state.F_ADDRESS], row[watch_state.F_BYTES]
        own_bytes = self.own_end - self.program.reserved_shared_bytes
        space, detail, sentence = "", "", _SENTENCES.get(kind, "")
        if not barrier:
            space = "shared" if shared else "global"
            if shared:
                address -= self.program.reserved_shared_bytes
            else:
                detail = describe_address(self.launch.args, address)
        if kind == watch_state.OUTSIDE:
            ends = f"the {own_bytes} bytes of shared memory of the block" if shared else "every array argument"
            sentence = f"an access outside {ends}"
        if kind == watch_state.MISPLACED:
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
            row[watch_state.F_COUNT],
        )


def _granule_shift(code: NDArray[np.uint32]) -> int:
    """Log2 of the fewest bytes that an access to shared memory of the program takes."""
    how = code[np.isin(code[:, micro.OP], (CONTROL_NUMBER["access"], CONTROL_NUMBER["load_matrix"])), micro.ACCESS]
    space = (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    sizes = how[np.isin(space, (micro.SHARED, micro.GENERIC))] & micro.SIZE_MASK
    return int(sizes.min()).bit_length() - 1 if len(sizes) else 4
