"""One access of each memory instruction, lane by lane, and one block's way through its arrays; chosen from a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.accesses.block_records import (
    Arrays,
    BlockRecords,
    arrays_of,
    block_records,
    global_records,
    heaviest,
)
from gemmsim.analysis.accesses.phases import phases_of
from gemmsim.analysis.accesses.types import (
    AccessSample,
    BlockView,
    ThreadAccess,
    WarpAccess,
)
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.code.source_lines import line_text, source_line
from gemmsim.isa.program import Program
from gemmsim.launch.request import GemmCheck
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.memory.requests.lane_wavefronts import lane_banks, lane_wavefronts
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import Launch, WarpTrace, active_lanes

# (pattern, access) -> bank and wavefront of each lane
_Served = dict[tuple[int, Access], tuple[tuple[int, ...], tuple[int, ...]]]


def sample_accesses(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    shapes: Shapes,
    pointers: Sequence[int | None],
    check: GemmCheck | None = None,
    sizes: tuple[int, int, int] | None = None,
) -> tuple[tuple[AccessSample, ...], BlockView]:
    """The samples, by instruction, and the block that they come from where it makes such an access.

    shapes    of `trace`; pointers: device address of each argument's array, None for scalars
    check     which arguments are A, B and C, None where that is not known; sizes: M, N and K of the GEMM likewise
    """
    arrays = arrays_of(launch, pointers, check, sizes)
    served: _Served = {}
    accesses = {pc: found for pc in np.unique(shapes.pc).tolist() if (found := access_of(program.instructions[pc]))}
    chosen = heaviest(trace, launch.grid)
    block = block_records(trace, shapes, chosen)
    samples = tuple(
        _sample(program, trace, shapes, pc, access, block, arrays, served) for pc, access in accesses.items()
    )
    gx, gy, _ = launch.grid
    number = int(trace.blocks[chosen])
    loop = k_loop(program, (trace.weight @ trace.executed).tolist())
    iterations = math.ceil(trace.executed[chosen, loop.stop - 1] / trace.warps_per_block) if loop else 0
    phases = phases_of(
        global_records(program, block, accesses, arrays),
        trace.patterns,
        arrays.arguments,
        range(loop.start, loop.stop) if loop else None,
        iterations,
    )
    threads = tuple(_thread_access(trace, block, pc, arrays) for pc, a in accesses.items() if a.space != "local")
    view = BlockView(
        block=number,
        place=(number % gx, number // gx % gy, number // (gx * gy)),
        arrays=arrays.arguments,
        threads=tuple(access for access in threads if access.accesses.any()),
        phases=phases,
        iterations=iterations,
    )
    return samples, view


def _sample(
    program: Program,
    trace: WarpTrace,
    shapes: Shapes,
    pc: int,
    access: Access,
    block: BlockRecords,
    arrays: Arrays,
    served: _Served,
) -> AccessSample:
    of_pc = np.flatnonzero(shapes.pc == pc)
    cost = shapes.lanes.wavefronts if access.space == "shared" else shapes.coalesced.sectors
    usual, share = _most_frequent(block, pc)
    if usual is None:  # this block never made the access
        usual = int(of_pc[0])
    worst = int(of_pc[np.argmax(cost[of_pc])])
    if cost[worst] <= cost[usual]:
        worst = usual
    representative = _warp_access(trace, shapes, usual, access, block, arrays, served)
    instruction = program.instructions[pc]
    line = source_line(program, instruction)
    return AccessSample(
        index=pc,
        mnemonic=instruction.mnemonic,
        line=line,
        text=line_text(program, line),
        space=access.space,
        op=access.op,
        width_bytes=access.width_bytes,
        shapes=len(of_pc),
        representative=representative,
        share=share,
        worst=representative if worst == usual else _warp_access(trace, shapes, worst, access, block, arrays, served),
    )


def _most_frequent(block: BlockRecords, pc: int) -> tuple[int | None, float]:
    made = block.shape[block.pc == pc]
    if not len(made):
        return None, 0.0
    found, counts = np.unique(made, return_counts=True)
    most = int(np.argmax(counts))
    return int(found[most]), float(counts[most] / len(made))


def _warp_access(
    trace: WarpTrace, shapes: Shapes, shape: int, access: Access, block: BlockRecords, arrays: Arrays, served: _Served
) -> WarpAccess:
    """The first access of a shape: in the block shown, else in the trace."""
    here = np.flatnonzero(block.shape == shape)
    record = block.first + int(here[0]) if len(here) else int(np.argmax(shapes.of_record == shape))
    base, pattern = int(trace.record_base[record]), int(trace.record_pattern[record])
    warp = int(np.searchsorted(trace.record_start, record, side="right")) - 1
    before = trace.record_pc[trace.record_start[warp] : record]
    active = _active(trace, pattern)
    offsets = trace.patterns.offsets_bytes[pattern]
    addresses = tuple(base + at if on else None for at, on in zip(offsets.tolist(), active.tolist(), strict=True))
    argument, elements = _elements(addresses, arrays)
    shared = access.space == "shared"
    if (pattern, access) not in served:  # unrolled code repeats few patterns
        banks, waves = lane_banks(offsets[None], active[None]), lane_wavefronts(offsets[None], active[None], access)
        served[pattern, access] = tuple(banks[0].tolist()), tuple(waves[0].tolist())
    bank, wavefront = served[pattern, access]
    wavefronts = int(shapes.lanes.wavefronts[shape])
    start, stop = shapes.coalesced.sector_start[shape : shape + 2]
    distinct = np.zeros(0, np.int64) if shared else shapes.coalesced.sector_offset[start:stop] * SECTOR_BYTES
    sector = np.where(active, np.searchsorted(distinct, offsets // SECTOR_BYTES * SECTOR_BYTES), -1)
    return WarpAccess(
        block=int(trace.blocks[warp // trace.warps_per_block]),
        warp=warp % trace.warps_per_block,
        execution=int((before == trace.record_pc[record]).sum()),
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


def _elements(
    addresses: tuple[int | None, ...], arrays: Arrays
) -> tuple[int | None, tuple[tuple[int, ...] | None, ...]]:
    first = next(address for address in addresses if address is not None)
    held = arrays.holding(first)
    if held is None:
        return None, ()
    argument, start, stop = arrays.arguments[held], int(arrays.start[held]), int(arrays.stop[held])
    elements = tuple(
        argument.index((address - start) // argument.item_bytes)
        if address is not None and start <= address < stop
        else None
        for address in addresses
    )
    return argument.position, elements


def _active(trace: WarpTrace, pattern: int) -> NDArray[np.bool_]:
    return active_lanes(trace.patterns.active_mask[pattern])


def _lanes(trace: WarpTrace, pattern: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Offsets and active lanes of records, [n, 32] each."""
    return trace.patterns.offsets_bytes[pattern], active_lanes(trace.patterns.active_mask[pattern])


def _thread_access(trace: WarpTrace, block: BlockRecords, pc: int, arrays: Arrays) -> ThreadAccess:
    warps = trace.warps_per_block
    mine = np.flatnonzero(block.pc == pc)
    begin = mine[block.occurrence[mine] == 0]
    offsets, active = _lanes(trace, block.pattern[begin])
    address = block.base[begin][:, None] + offsets
    held = arrays.holding(int(address[active][0])) if len(begin) else None
    if held is not None:
        active &= (address >= arrays.start[held]) & (address < arrays.stop[held])
        address = (address - arrays.start[held]) // arrays.arguments[held].item_bytes
    first = np.full((warps, WARP_LANES), -1, np.int64)
    first[block.warp[begin]] = np.where(active, address, -1)
    accesses = np.bincount(block.warp[mine], minlength=warps)
    return ThreadAccess(pc, None if held is None else arrays.arguments[held].position, first, accesses)
