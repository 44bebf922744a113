"""Memory traffic of a trace: requests, sectors, wavefronts, hits; in total, by instruction and by record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.access import Access, access_of
from gemmsim.memory.coalescer import LINE_BYTES, SECTOR_BYTES
from gemmsim.memory.counters import counters_of
from gemmsim.memory.dram import DramTraffic
from gemmsim.memory.l1 import replay_l1
from gemmsim.memory.l2 import replay_l2
from gemmsim.memory.shapes import Shapes, shapes_of
from gemmsim.memory.streams import READ, residents_of, streams_of
from gemmsim.memory.types import InstructionTraffic, RecordCost, Traffic
from gemmsim.trace.types import Launch, WarpTrace


@dataclass(frozen=True)
class _Caches:
    """What the caches did; uint16 [records] sectors of each record, 0 for shared memory.

    l1_hit   found in L1
    l2       sent to L2
    l2_miss  L2 fetched from DRAM for it
    """

    l1_hit: NDArray[np.uint16]
    l2: NDArray[np.uint16]
    l2_miss: NDArray[np.uint16]
    l2_requests: float
    dram: DramTraffic
    notes: tuple[str, ...]


def serve(
    program: Program, launch: Launch, trace: WarpTrace, gpu: GpuSpec, l1_bytes: int, resident_blocks_per_sm: int
) -> Traffic:
    """Replay the memory records of `trace` through coalescer, banks, L1, L2 and DRAM.

    l1_bytes                L1 cache of one SM: what the shared-memory carve-out leaves
    resident_blocks_per_sm  blocks that an SM holds at once

    Raises GemmsimError where the GPU's lines or sectors are not of 128 and 32 bytes.
    """
    _check(gpu, resident_blocks_per_sm)
    accesses = _accesses(program, trace)
    shapes = shapes_of(trace, accesses, gpu.l1.tag_lines_per_cycle)
    weight = np.repeat(trace.weight, np.diff(trace.record_start[:: trace.warps_per_block]))
    caches = _caches(trace, shapes, accesses, weight, gpu, l1_bytes, resident_blocks_per_sm)
    rows = _rows(trace, accesses, shapes, caches, weight)
    counters = counters_of(
        program,
        executed=trace.weight @ trace.executed,
        threads_executed=trace.weight @ trace.threads_executed,
        rows=rows,
        l2_requests=caches.l2_requests,
        dram=caches.dram,
    )
    cost = RecordCost(
        wavefronts=shapes.wavefronts.astype(np.uint16)[shapes.of_record],
        tag_cycles=shapes.tag_cycles.astype(np.uint16)[shapes.of_record],
        l2_sectors=caches.l2,
        dram_sectors=caches.l2_miss,
    )
    return Traffic(counters.value, counters.provenance, rows, cost, caches.notes)


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
    """The memory instructions that were executed, by index."""
    executed = np.flatnonzero(trace.executed.any(axis=0)).tolist()
    found = {index: access_of(program.instructions[index]) for index in executed}
    return {index: access for index, access in found.items() if access is not None}


def _caches(
    trace: WarpTrace,
    shapes: Shapes,
    accesses: dict[int, Access],
    weight: NDArray[np.float64],
    gpu: GpuSpec,
    l1_bytes: int,
    resident_blocks_per_sm: int,
) -> _Caches:
    streams = streams_of(trace, shapes, accesses)
    residents = residents_of(trace.blocks, gpu.sm.count, resident_blocks_per_sm)
    hits, to_l2 = replay_l1(streams, residents, shapes.coalesced, trace.warps_per_block, l1_bytes, gpu.l1.ways)
    l2 = replay_l2(to_l2, len(streams.record), gpu.l2.size_bytes, gpu.l2.ways)

    def by_record(values: NDArray[np.uint16]) -> NDArray[np.uint16]:
        out = np.zeros(len(trace.record_pc), np.uint16)
        out[streams.record] = values
        return out

    sectors = shapes.coalesced.sectors.astype(np.uint16)[streams.shape]
    return _Caches(
        l1_hit=by_record(hits),
        l2=by_record(np.where(streams.kind == READ, sectors - hits, sectors)),
        l2_miss=by_record(l2.missed),
        l2_requests=float(weight[streams.record[to_l2.access]].sum()),
        dram=DramTraffic(float((weight[streams.record] * l2.missed).sum()), float(l2.written_back)),
        notes=(),
    )


def _rows(
    trace: WarpTrace, accesses: dict[int, Access], shapes: Shapes, caches: _Caches, weight: NDArray[np.float64]
) -> tuple[InstructionTraffic, ...]:
    instructions = trace.executed.shape[1]
    of_shape = np.bincount(shapes.of_record, weight, minlength=len(shapes.pc))

    def by_shape(each: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(shapes.pc, of_shape * each, minlength=instructions).astype(np.float64)

    def by_record(each: NDArray[np.uint16]) -> NDArray[np.float64]:
        return np.bincount(trace.record_pc, weight * each, minlength=instructions).astype(np.float64)

    coalesced = shapes.coalesced
    columns = {
        "requests": by_shape(np.ones_like(shapes.pc)),
        "sectors": by_shape(coalesced.sectors),
        "tag_lookups": by_shape(coalesced.lines),
        "wavefronts": by_shape(shapes.wavefronts),
        "conflicts": by_shape(shapes.conflicts),
        "ideal_sectors": by_shape(coalesced.ideal_sectors),
        "used_bytes": by_shape(coalesced.used_bytes),
        "l1_hit_sectors": by_record(caches.l1_hit),
        "l2_sectors": by_record(caches.l2),
        "dram_sectors": by_record(caches.l2_miss),
    }
    columns["l2_hit_sectors"] = columns["l2_sectors"] - columns["dram_sectors"]
    rows = []
    for index, access in accesses.items():
        values = {name: float(column[index]) for name, column in columns.items()}
        if access.space == "shared":
            values |= dict.fromkeys(("sectors", "tag_lookups", "ideal_sectors"), 0.0)
        rows.append(InstructionTraffic(index, access.space, access.op, access.width_bytes, **values))
    return tuple(rows)
