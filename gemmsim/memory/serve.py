"""Works out the memory traffic of a trace: requests, sectors, wavefronts, hits; in total, by instruction, by record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.counters import counters_of
from gemmsim.memory.hierarchy import CacheResults, simulate_caches
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES, SECTORS_PER_LINE
from gemmsim.memory.requests.shapes import Shapes, shapes_of
from gemmsim.memory.requests.tags import look_up
from gemmsim.memory.types import InstructionTraffic, RecordCost, Traffic
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch, WarpTrace

_WRITES = ("st", "atom", "red")


def serve(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    gpu: GpuSpec,
    l1_bytes: int,
    resident_blocks_per_sm: int,
    warm_caches: bool = False,
) -> Traffic:
    """Replay the memory records of `trace` through coalescer, banks, L1, L2 and DRAM.

    l1_bytes                L1 cache of one SM: what the shared-memory carve-out leaves
    resident_blocks_per_sm  blocks that an SM holds at once
    warm_caches             L2 begins as an identical launch just before has left it; else it is empty, as L1 always is

    Raises GemmsimError where the GPU's lines or sectors are not of 128 and 32 bytes.
    """
    _check(gpu, resident_blocks_per_sm)
    accesses = _accesses(program, trace)
    shapes = shapes_of(trace, accesses)
    caches = simulate_caches(trace, launch, shapes, accesses, gpu, l1_bytes, resident_blocks_per_sm, warm_caches)
    of_record = shapes.of_record
    counted = slice(int(trace.record_start[trace.counted_blocks * trace.warps_per_block]))
    tags, missing = np.zeros((2, len(of_record)), np.int64)
    tags[counted], missing[counted] = look_up(trace.record_base[counted], of_record[counted], shapes.lanes, gpu.l1)
    wavefronts = np.where(caches.l2 > 0, missing, shapes.lanes.wavefronts[of_record])
    partial_lines = _partial_lines(accesses, shapes)[of_record]
    wavefronts[counted.stop :] = partial_lines[counted.stop :] = 0
    rows = _rows(trace, accesses, shapes, caches, tags, wavefronts)
    weight = trace.weight[: trace.counted_blocks]
    counters = counters_of(
        program,
        executed=weight @ trace.executed[: len(weight)],
        threads_executed=weight @ trace.threads_executed[: len(weight)],
        rows=rows,
        l2_requests=caches.l2_requests,
        dram=caches.traffic,
    )
    cost = RecordCost(
        wavefronts=wavefronts.astype(np.uint16),
        tag_cycles=tags.astype(np.uint16),
        l2_sectors=caches.l2,
        dram_sectors=caches.dram,
        in_flight=caches.in_flight,
        partial_lines=partial_lines,
    )
    return Traffic(counters.value, counters.provenance, rows, cost, shapes, caches.notes)


def _check(gpu: GpuSpec, resident_blocks_per_sm: int) -> None:
    for name, cache in (("l1", gpu.l1), ("l2", gpu.l2)):
        if (cache.line_bytes, cache.sector_bytes) != (LINE_BYTES, SECTOR_BYTES):
            raise GemmsimError(
                f"{gpu.name}: {name}.line and {name}.sector must be {LINE_BYTES} and {SECTOR_BYTES} bytes, "
                f"as on every NVIDIA GPU since Volta; they are {cache.line_bytes} and {cache.sector_bytes}"
            )
    if resident_blocks_per_sm < 1:
        raise GemmsimError(f"no block fits on an SM of {gpu.name}: resident blocks must be at least 1")


def _accesses(program: Program, trace: WarpTrace) -> dict[int, Access]:
    """Return how each executed memory instruction accesses memory, by its static index."""
    executed = np.flatnonzero(trace.executed.any(axis=0)).tolist()
    found = {index: access_of(program.instructions[index]) for index in executed}
    return {index: access for index, access in found.items() if access is not None}


def _partial_lines(accesses: dict[int, Access], shapes: Shapes) -> NDArray[np.uint8]:
    """Return in how many lines a request of each shape writes sectors in part: uint8 [shapes], 0 for shared memory."""
    coalesced = shapes.coalesced
    shape = np.repeat(np.arange(len(shapes.pc)), coalesced.sectors)
    line = coalesced.sector_offset // SECTORS_PER_LINE
    writes = np.isin(
        shapes.pc, [i for i, access in accesses.items() if access.space != "shared" and access.op in _WRITES]
    )
    partial = writes[shape] & ~coalesced.sector_whole
    lines = np.unique(np.stack([shape[partial], line[partial]]), axis=1)[0]
    return np.bincount(lines, minlength=len(shapes.pc)).astype(np.uint8)


def _rows(
    trace: WarpTrace,
    accesses: dict[int, Access],
    shapes: Shapes,
    caches: CacheResults,
    tags: NDArray[np.int64],
    wavefronts: NDArray[np.int64],
) -> tuple[InstructionTraffic, ...]:
    """Return the traffic of each executed memory instruction.

    tags        int64 [records] cycles of L1's tag stage
    wavefronts  int64 [records] cycles of its data stage
    """
    instructions = trace.executed.shape[1]
    weight = np.repeat(trace.weight, np.diff(trace.record_start[:: trace.warps_per_block]))
    of_shape = np.bincount(shapes.of_record, weight, minlength=len(shapes.pc))

    def by_shape(each: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(shapes.pc, of_shape * each, minlength=instructions).astype(np.float64)

    def by_record(each: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(trace.record_pc, weight * each, minlength=instructions).astype(np.float64)

    coalesced = shapes.coalesced
    columns = {
        "requests": by_shape(np.ones_like(shapes.pc)),
        "sectors": by_shape(coalesced.sectors),
        "tag_lookups": by_shape(coalesced.lines),
        "wavefronts": by_record(wavefronts),
        "conflicts": by_record(np.maximum(wavefronts - shapes.least[shapes.of_record], 0)),
        "ideal_sectors": by_shape(coalesced.ideal_sectors),
        "used_bytes": by_shape(coalesced.used_bytes),
        "tag_wavefronts": by_record(tags),
        "l1_hit_sectors": caches.l1_hit_sectors,
        "l2_sectors": caches.l2_sectors,
        "dram_sectors": caches.dram_sectors,
        "merged_sectors": caches.merged_sectors,
    }
    columns["l2_hit_sectors"] = columns["l2_sectors"] - columns["dram_sectors"]
    rows = []
    for index, access in accesses.items():
        values = {name: float(column[index]) for name, column in columns.items()}
        if access.space == "shared":
            values |= dict.fromkeys(("sectors", "tag_lookups", "ideal_sectors"), 0.0)
        rows.append(InstructionTraffic(index, access.space, access.op, access.width_bytes, **values))
    return tuple(rows)
