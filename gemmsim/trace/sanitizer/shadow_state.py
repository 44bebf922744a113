"""Holds the arrays that the sanitizing executor writes to, and turns its table of findings into `Finding` objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Program
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro, words
from gemmsim.trace.launch_data.address_names import describe_address
from gemmsim.trace.launch_data.clusters import Clusters
from gemmsim.trace.lower.context import CONTROL_NUMBER, MicroProgram
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.findings import Finding, Site
from gemmsim.trace.sanitizer.registers import loaded, watched
from gemmsim.trace.sanitizer.sentences import AT_ENDS, AT_MBARRIERS, DEFECTS, DOES, NOWHERE, SENTENCES, UNSEEN
from gemmsim.trace.types import Launch

# Accesses by which blocks may tell each other what they have done, so that one may come before the other
_TELLING = (MemoryAccess("global", "atom"), MemoryAccess("generic", "atom"))
_LARGEST_SHADOW_BYTES = 4 << 30  # of global memory
_NULL_BELOW = 1 << 16  # an address below is one of a null pointer, plus an offset
_SHARED_BELOW = 1 << 32  # addresses of global memory lie far above


class BlockShadow:
    """Holds what the sanitizing executor remembers of one block while it runs.

    warps     warps of the block
    granules  granules of its shared memory
    places    places for an mbarrier there
    blocks    blocks of its cluster
    """

    def __init__(self, warps: int, granules: int, places: int, blocks: int) -> None:
        vector = shadow.PART_WORDS * blocks
        self._places, self._mbarrier_words = places, shadow.MB_VECTORS + 2 * vector
        self._clocks = np.zeros((shadow.MAX_WARPS, vector), np.int64)
        self._gates = np.zeros((shadow.GATES, shadow.GATE_VECTOR + vector), np.int64)
        self._warps = np.zeros((warps, shadow.WARP_SHADOW_WORDS), np.int64)
        self._granules = np.zeros((granules, shadow.SHADOW_WORDS), np.int64)
        self._mbarriers = np.zeros(
            shadow.MBARRIER_NUMBERS + places + shadow.MAX_MBARRIERS * self._mbarrier_words, np.int64
        )

    def begin(self, rank: int) -> None:
        """Forget the previous block: mark nothing as written, and no warp as having seen another's clock.

        rank  of the new block in its cluster
        """
        for array in (self._clocks, self._gates, self._granules, self._warps[:, : shadow.PENDING_AT], self._mbarriers):
            array[:] = 0
        np.fill_diagonal(self._clocks[:, shadow.PART_WORDS * rank + shadow.CLOCK :], 1)
        self._warps[:, shadow.EPOCH] = 1

    def last_arrival(self, place: int) -> int:
        """Return the stamp of the last arrival at the mbarrier at a place in shared memory; 0 where there is none."""
        number = int(self._mbarriers[shadow.MBARRIER_NUMBERS + place // 8])
        if number <= 0:
            return 0
        begin = shadow.MBARRIER_NUMBERS + self._places + self._mbarrier_words * (number - 1)
        return int(self._mbarriers[begin + shadow.MB_ARRIVED])

    def addresses(self) -> dict[int, int]:
        """Return for each word of the context that names one of these arrays the array's address."""
        arrays = {
            words.CLOCKS_AT: self._clocks,
            words.GATES_AT: self._gates,
            words.WARP_SHADOWS_AT: self._warps,
            words.SHADOW_AT: self._granules,
            words.MBARRIERS_AT: self._mbarriers,
        }
        return {slot: array.ctypes.data for slot, array in arrays.items()}


class ShadowState:
    """Holds what the sanitizing executor finds in a launch's blocks.

    lowered       the program as micro-operations; the attribute `code` is what is to be executed
    shared_bytes  shared memory of a block, in whole units of allocation
    """

    def __init__(
        self, program: Program, launch: Launch, clusters: Clusters, lowered: MicroProgram, shared_bytes: int
    ) -> None:
        self.program, self.launch, self.clusters = program, launch, clusters
        self._own_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
        self._granule_shift = _granule_shift(lowered.code, (micro.SHARED, micro.GENERIC))
        self._granules, self._places = (shared_bytes >> self._granule_shift) + 1, shared_bytes // 8
        self.code, self._watched = watched(program, np.ascontiguousarray(lowered.code))
        self.code, self._loaded = loaded(lowered, self.code)
        self._global_granules: NDArray[np.int64] | None = None
        self._table = np.zeros(shadow.HEADER_WORDS + shadow.FINDING_WORDS * shadow.MAX_FINDINGS, np.int64)
        self._blocks: list[int] = []  # the block in which each row of the table was met

    def fill(self, context: NDArray[np.uint64]) -> None:
        """Write the table's address and the launch's numbers into the context (`gemmsim.trace.words`)."""
        context[words.FINDINGS_AT] = self._table.ctypes.data
        context[words.WATCHED_AT] = self._watched.ctypes.data
        context[words.LOADED_AT] = self._loaded.ctypes.data
        context[words.GRANULE_SHIFT] = self._granule_shift
        context[words.OWN_SHARED_BYTES] = self.program.reserved_shared_bytes + self._own_bytes
        context[words.BLOCK_THREADS] = self.launch.threads_per_block

    def watch_global(self, context: NDArray[np.uint64], memory_bytes: int) -> None:
        """Look for races on global memory, if threads cannot tell each other by atomics there what they have done.

        memory_bytes  bytes of all allocations, as `DeviceMemory.positions` counts them
        """
        shift = _granule_shift(self.code, (micro.GLOBAL, micro.GENERIC))
        words_needed = shadow.BLOCK_WORDS * ((memory_bytes >> shift) + 1)
        told = any(row_of(i).memory in _TELLING for i in self.program.instructions)
        if told or 8 * words_needed > _LARGEST_SHADOW_BYTES:
            return
        self._global_granules = np.zeros(words_needed, np.int64)  # pages that nobody touches take no memory
        context[words.BLOCKS_SHADOW_AT], context[words.BLOCKS_SHIFT] = self._global_granules.ctypes.data, shift

    def forget_global(self) -> None:
        """Forget who has accessed global memory."""
        if self._global_granules is not None:
            self._global_granules[:] = 0

    def new_block(self) -> BlockShadow:
        return BlockShadow(self.launch.warps_per_block, self._granules, self._places, self.clusters.blocks)

    def end_turn(self, block: int) -> None:
        """Note that what was found since the last call was found in `block`."""
        self._blocks += [block] * (int(self._table[shadow.FOUND]) - len(self._blocks))

    def forget_findings(self) -> None:
        self._table[:] = 0
        self._blocks.clear()

    @property
    def lost(self) -> int:
        """The number of findings for which the table had no room."""
        return int(self._table[shadow.LOST])

    def findings(self) -> list[Finding]:
        """Return what was found so far: one finding for each defect and pair of instructions."""
        rows = self._table[shadow.HEADER_WORDS :].reshape(-1, shadow.FINDING_WORDS)[: len(self._blocks)]
        return [self._finding(row.tolist(), block) for row, block in zip(rows, self._blocks, strict=True)]

    def site(self, does: str, instruction: int, warp: int, lane: int) -> Site:
        """Make the site of a warp's lane at the instruction with this index; `does` says what the lane does there."""
        found = self.program.instructions[instruction]
        line = self.program.line_of(found)
        lines = self.program.source.get(line.file, "").splitlines() if line else []
        text = lines[line.line - 1].strip() if line and 0 < line.line <= len(lines) else ""
        x, y, _ = self.launch.block
        thread = warp * WARP_LANES + lane
        return Site(does, found, line, text, (thread % x, thread // x % y, thread // (x * y)), warp, lane)

    def position(self, block: int) -> tuple[int, int, int]:
        """Return the place (x, y, z) in the grid of the block with this linear id."""
        gx, gy, _ = self.launch.grid
        return block % gx, block // gx % gy, block // (gx * gy)

    def site_of(self, stamp: int, does: str = "") -> Site:
        """Make the site that a stamp names. Where `does` is empty, the stamp's kind says what the thread does."""
        warp, lane = stamp >> shadow.WARP_SHIFT & 31, stamp >> shadow.LANE_SHIFT & 31
        kind = DOES[stamp >> shadow.KIND_SHIFT & shadow.KIND_MASK]
        return self.site(does or kind, stamp & shadow.INSTRUCTION_MASK, warp, lane)

    def _finding(self, row: list[int], block: int) -> Finding:
        """Make the finding of a row of the table, met in `block`; `shadow` names the row's columns."""
        defect, count, stamp, other, address, size, other_with = row
        position = self.position(block)
        if defect in AT_MBARRIERS:
            return self._at_mbarrier(row, block)
        does, other_does = AT_ENDS.get(defect, ("", ""))
        at, theirs = self.site_of(stamp, does), self.site_of(other, other_does) if other else None
        if defect in NOWHERE:
            return Finding(DEFECTS[defect], SENTENCES[defect], position, "", None, 0, at, theirs, "", count)
        if defect == shadow.OUTSIDE_BANK:
            bank, length = (
                address >> shadow.BANK_SHIFT,
                len(self.program.constants.get(address >> shadow.BANK_SHIFT, b"")),
            )
            ends = f"the {length} bytes of constant bank {bank}" if bank else "the kernel's parameters"
            address &= (1 << shadow.BANK_SHIFT) - 1
            sentence = f"an access outside {ends}"
            return Finding(DEFECTS[defect], sentence, position, "constant", address, size, at, None, "", count)
        shared = address < _SHARED_BELOW and not self._of_pointer(defect, stamp, address, size)
        detail, sentence = "", SENTENCES.get(defect, "")
        if shared:
            detail = self.in_cluster(block, address, other)
            address = self._place(address)
        else:
            detail = describe_address(self.launch.args, address, self.program)
        if shared and other >> shadow.KIND_SHIFT & shadow.KIND_MASK == shadow.BULK_WRITE and other_with:
            detail = "; ".join(filter(None, (detail, self._phase_of(other_with))))
            sentence = UNSEEN if defect == shadow.UNWAITED else sentence
        if defect == shadow.BETWEEN_BLOCKS:
            block_of_other = self.position((other >> shadow.CLOCK_SHIFT) - 1)
            detail = f"{detail or 'memory of the module'}; the other block is {_shown(block_of_other)}"
        if defect == shadow.OUTSIDE:
            ends = f"the {self._own_bytes} bytes of shared memory of the block" if shared else "every array argument"
            null = not shared and address < _NULL_BELOW
            sentence = "an access through a null pointer" if null else f"an access outside {ends}"
        if defect == shadow.MISPLACED:
            sentence = f"an access of {size} bytes at an address that is not a multiple of {size}"
        return Finding(
            DEFECTS[defect],
            sentence,
            position,
            "shared" if shared else "global",
            address,
            size,
            at,
            theirs,
            detail,
            count,
        )

    def _of_pointer(self, defect: int, stamp: int, address: int, size: int) -> bool:
        """Whether an address that looks like one of shared memory is a pointer's: in shared memory it would be fine."""
        instruction = self.program.instructions[stamp & shadow.INSTRUCTION_MASK]
        memory = row_of(instruction).memory
        if defect not in (shadow.OUTSIDE, shadow.MISPLACED) or instruction.opcode.startswith(
            ("UTMA", "UBLK", "LDGSTS")
        ):
            return False
        space = memory.space if memory else ""
        fits = self._own_bytes == 0 or address + size <= self._own_bytes
        return space == "global" or (space == "generic" and defect == shadow.OUTSIDE and fits)

    def _place(self, address: int) -> int:
        """Return where an address of the cluster's window is in its block's own shared memory."""
        return (address & ((1 << words.RANK_SHIFT) - 1)) - self.program.reserved_shared_bytes

    def in_cluster(self, block: int, address: int, other: int) -> str:
        """Say whose shared memory it is, and who made the earlier access, where these are not `block`."""
        if self.clusters.blocks == 1:
            return ""
        number, own = (int(found[0]) for found in self.clusters.places(np.array([block])))
        members = self.clusters.members(np.array([number]))[0].tolist()
        memory, earlier = address >> words.RANK_SHIFT, other >> shadow.RANK_SHIFT & shadow.RANK_MASK
        said = [f"in the shared memory of block {_shown(self.position(members[memory]))}"] * (memory != own)
        if other and earlier != own:
            said.append(f"the other thread is of block {_shown(self.position(members[earlier]))}")
        return "; ".join(said)

    def _phase_of(self, stamp_with: int) -> str:
        """Say to which mbarrier and phase the bytes of a bulk copy come, from the word beside its stamp."""
        place = self._place(stamp_with >> shadow.WITH_ADDRESS_SHIFT)
        return f"its bytes come to the mbarrier at byte {place}, phase {(stamp_with & shadow.WITH_MASK) - 1}"

    def _at_mbarrier(self, row: list[int], block: int) -> Finding:
        """Make a finding about the use of an mbarrier."""
        defect, count, stamp, other, address, size, _ = row
        does, other_does = AT_MBARRIERS[defect]
        detail, sentence = self.in_cluster(block, address, other), SENTENCES.get(defect, "")
        if defect == shadow.BYTES_DIFFER:
            more = f"{size} bytes more are expected than have come" if size > 0 else ""
            sentence = f"at an mbarrier {more or f'{-size} bytes more have come than are expected'}"
            if stamp >> shadow.KIND_SHIFT & shadow.KIND_MASK != shadow.BULK_WRITE:
                does, other_does = other_does, does
        elif defect in (shadow.PHASE_UNSEEN, shadow.PHASE_PASSED):
            missed = f"{size} phases are complete that its warp has not seen" if size > 1 else ""
            detail = "; ".join(filter(None, (missed, detail)))
        return Finding(
            DEFECTS[defect],
            sentence,
            self.position(block),
            "shared",
            self._place(address),
            8,
            self.site_of(stamp, does),
            self.site_of(other, other_does) if other else None,
            detail,
            count,
        )


def _shown(position: tuple[int, int, int]) -> str:
    return f"({','.join(map(str, position))})"


def _granule_shift(code: NDArray[np.uint32], spaces: tuple[int, ...]) -> int:
    """Return log2 of a granule's bytes.

    They are the bytes of the program's narrowest access to memory of these spaces, or 16 where it has no such access.
    """
    how = code[np.isin(code[:, micro.OP], (CONTROL_NUMBER["access"], CONTROL_NUMBER["move_matrix"])), micro.ACCESS]
    space = (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    sizes = how[np.isin(space, spaces)] & micro.SIZE_MASK
    return int(sizes.min()).bit_length() - 1 if len(sizes) else 4
