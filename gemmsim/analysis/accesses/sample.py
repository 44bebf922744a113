"""Chooses which accesses of a trace the drawings of a report show.

They are example accesses of each memory instruction, lane by lane, and the parts of arrays that one block touches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gemmsim.analysis.accesses.block_records import (
    Arrays,
    BlockRecords,
    array_records,
    arrays_of,
    block_records,
    heaviest,
)
from gemmsim.analysis.accesses.phases import phases_of
from gemmsim.analysis.accesses.types import AccessSample, BlockView, ThreadAccess, WarpAccess
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.code.source_lines import line_text, source_line
from gemmsim.isa.program import Program
from gemmsim.launch.spec import GemmCheck
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES
from gemmsim.memory.requests.generic import Split, split_by_space
from gemmsim.memory.requests.lane_wavefronts import lane_banks, lane_wavefronts
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import Launch, PlacedVariable, WarpTrace, active_lanes

# (pattern, access) -> bank and wavefront of each lane
_BanksAndWavefronts = dict[tuple[int, Access], tuple[tuple[int, ...], tuple[int, ...]]]


def sample_accesses(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    shapes: Shapes,
    pointers: Sequence[int | None],
    check: GemmCheck | None = None,
    sizes: tuple[int, int, int] | None = None,
    variables: Sequence[PlacedVariable] = (),
) -> tuple[tuple[AccessSample, ...], BlockView]:
    """Return (an `AccessSample` for each memory instruction that was executed, the `BlockView` of one block).

    The samples come from that block. Where it never executes an instruction, the sample comes from another block.

    shapes    the distinct access shapes of `trace`
    pointers  device address of each argument's array, None for scalars
    check     says which arguments are A, B and C; None where that is not known
    sizes     M, N and K of the GEMM, None where the launch is not known to be one
    variables  variables of the kernel's module; those that were accessed are named like arrays
    """
    split = split_by_space(program, trace)
    trace, found = split.trace, {pc: split.accesses[pc] for pc in np.unique(shapes.pc).tolist()}
    accesses = {
        pc: access for pc, access in found.items() if access.space != "dshared" and access.op != "zeros"
    }  # no array holds what these reach
    chosen = heaviest(trace, launch.grid)
    base = np.unique(trace.record_base).astype(np.int64)  # rounded down to a line
    touched = [v for v in variables if ((base > v.address - LINE_BYTES) & (base < v.address + v.size_bytes)).any()]
    arrays = arrays_of(launch, pointers, check, sizes, touched)
    source = _Source(program, split, shapes, block_records(trace, shapes, chosen), arrays)
    loop = k_loop(program, (trace.weight @ trace.executed)[: len(program.instructions)].tolist())
    iterations = math.ceil(trace.executed[chosen, loop.stop - 1] / trace.warps_per_block) if loop else 0
    phases = phases_of(
        array_records(source.block, accesses, arrays),
        trace.patterns,
        arrays.arguments,
        range(loop.start, loop.stop) if loop else None,
        iterations,
    )
    threads = tuple(source.thread_access(pc) for pc, access in accesses.items() if access.space != "local")
    gx, gy, _ = launch.grid
    number = int(trace.blocks[chosen])
    view = BlockView(
        block=number,
        place=(number % gx, number // gx % gy, number // (gx * gy)),
        arrays=arrays.arguments,
        threads=tuple(access for access in threads if access.accesses.any()),
        phases=phases,
        iterations=iterations,
    )
    return tuple(source.sample(pc, access) for pc, access in accesses.items()), view


@dataclass(frozen=True)
class _Source:
    """Builds samples from the trace and from the records of the block that drawings show, which is `block`."""

    program: Program
    split: Split
    shapes: Shapes
    block: BlockRecords
    arrays: Arrays
    known: _BanksAndWavefronts = field(default_factory=dict)  # worked out before: unrolled code repeats patterns

    @property
    def trace(self) -> WarpTrace:
        return self.split.trace

    def sample(self, pc: int, access: Access) -> AccessSample:
        shapes = self.shapes
        of_pc = np.flatnonzero(shapes.pc == pc)
        cost = shapes.lanes.wavefronts if access.space == "shared" else shapes.coalesced.sectors
        usual, share = self._most_frequent(pc)
        if usual is None:  # the block shown never executed the instruction
            usual = int(of_pc[0])
        worst = int(of_pc[np.argmax(cost[of_pc])])
        representative = self._warp_access(usual, access)
        index = int(self.split.instruction[pc])
        instruction = self.program.instructions[index]
        line = source_line(self.program, instruction)
        return AccessSample(
            index=index,
            mnemonic=instruction.mnemonic,
            line=line,
            text=line_text(self.program, line),
            space=access.space,
            op=access.op,
            width_bytes=access.width_bytes,
            shapes=len(of_pc),
            representative=representative,
            share=share,
            worst=self._warp_access(worst, access) if cost[worst] > cost[usual] else representative,
        )

    def _most_frequent(self, pc: int) -> tuple[int | None, float]:
        """Return (the access shape most frequent in the block's accesses by an instruction, its share of them, 0 to 1).

        The result is (None, 0.0) where the block never executes the instruction.
        """
        made = self.block.shape[self.block.pc == pc]
        if not len(made):
            return None, 0.0
        found, counts = np.unique(made, return_counts=True)
        most = int(np.argmax(counts))
        return int(found[most]), float(counts[most] / len(made))

    def _warp_access(self, shape: int, access: Access) -> WarpAccess:
        """Return the first access of a shape in the block shown or, where that makes none, in the whole trace."""
        trace, shapes = self.trace, self.shapes
        here = np.flatnonzero(self.block.shape == shape)
        record = self.block.first + int(here[0]) if len(here) else int(np.argmax(shapes.of_record == shape))
        base, pattern = int(trace.record_base[record]), int(trace.record_pattern[record])
        warp = int(np.searchsorted(trace.record_start, record, side="right")) - 1
        earlier = slice(int(trace.record_start[warp]), record)
        before = trace.record_pc[earlier] == trace.record_pc[record]
        times = 1 if trace.repeats is None else trace.repeats.of_record[earlier]
        active, offsets = active_lanes(trace.patterns.active_mask[pattern]), trace.patterns.offsets_bytes[pattern]
        addresses = tuple(base + at if on else None for at, on in zip(offsets.tolist(), active.tolist(), strict=True))
        argument, elements = self._elements(addresses)
        shared = access.space == "shared"
        if (pattern, access) not in self.known:
            banks, waves = lane_banks(offsets[None], active[None]), lane_wavefronts(offsets[None], active[None], access)
            self.known[pattern, access] = tuple(banks[0].tolist()), tuple(waves[0].tolist())
        bank, wavefront = self.known[pattern, access]
        wavefronts = int(shapes.lanes.wavefronts[shape])
        start, stop = shapes.coalesced.sector_start[shape : shape + 2]
        distinct = np.zeros(0, np.int64) if shared else shapes.coalesced.sector_offset[start:stop] * SECTOR_BYTES
        sector = np.where(active, np.searchsorted(distinct, offsets // SECTOR_BYTES * SECTOR_BYTES), -1)
        return WarpAccess(
            block=int(trace.blocks[warp // trace.warps_per_block]),
            warp=warp % trace.warps_per_block,
            execution=int((before * times).sum()),
            addresses=addresses,
            sectors=len(distinct),
            ideal_sectors=0 if shared else int(shapes.coalesced.ideal_sectors[shape]),
            wavefronts=wavefronts,
            conflicts=max(0, wavefronts - int(shapes.least[shape])),
            sector_addresses=tuple((base + distinct).tolist()),
            sector=(-1,) * WARP_LANES if shared else tuple(sector.tolist()),
            bank=bank,
            wavefront=wavefront,
            argument=argument,
            elements=elements,
        )

    def _elements(self, addresses: tuple[int | None, ...]) -> tuple[int | None, tuple[tuple[int, ...] | None, ...]]:
        """Return a `WarpAccess`'s (`argument`, `elements`). The first active lane decides which array it is."""
        arrays = self.arrays
        found = arrays.holding(next(address for address in addresses if address is not None))
        if found is None:
            return None, ()
        argument, start, stop = arrays.arguments[found], int(arrays.start[found]), int(arrays.stop[found])
        elements = tuple(
            argument.index((address - start) // argument.item_bytes)
            if address is not None and start <= address < stop
            else None
            for address in addresses
        )
        return argument.position, elements

    def thread_access(self, pc: int) -> ThreadAccess:
        block, arrays, patterns, warps = self.block, self.arrays, self.trace.patterns, self.trace.warps_per_block
        mine = np.flatnonzero(block.pc == pc)
        begin = mine[block.occurrence[mine] == 0]
        active = active_lanes(patterns.active_mask[block.pattern[begin]])
        address = block.base[begin][:, None] + patterns.offsets_bytes[block.pattern[begin]]
        found = arrays.holding(int(address[active][0])) if len(begin) else None
        if found is not None:
            active &= (address >= arrays.start[found]) & (address < arrays.stop[found])
            address = (address - arrays.start[found]) // arrays.arguments[found].item_bytes
        first = np.full((warps, WARP_LANES), -1, np.int64)
        first[block.warp[begin]] = np.where(active, address, -1)
        accesses = np.bincount(block.warp[mine], minlength=warps)
        return ThreadAccess(
            int(self.split.instruction[pc]),
            None if found is None else arrays.arguments[found].position,
            first,
            accesses,
        )
