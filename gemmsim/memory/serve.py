"""Works out the memory traffic of a trace: requests, sectors, wavefronts, hits; in total, by instruction, by record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.caches.l2 import L2Start
from gemmsim.memory.counters import counters_of
from gemmsim.memory.grid.placement import place
from gemmsim.memory.grid.stacks import with_stacks
from gemmsim.memory.hierarchy import CacheResults, simulate_caches
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES, SECTORS_PER_LINE
from gemmsim.memory.requests.generic import Split, is_remote, split_by_space
from gemmsim.memory.requests.multicast import receivers
from gemmsim.memory.requests.shapes import Shapes, shapes_of
from gemmsim.memory.requests.sums import weighted_sums
from gemmsim.memory.requests.tags import look_up
from gemmsim.memory.requests.tiles import reach_beyond
from gemmsim.memory.types import InstructionTraffic, RecordCost, Traffic
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace.copies import Copies
from gemmsim.trace.launch_data.clusters import clusters_of
from gemmsim.trace.launch_data.constant_bank import stack_bytes
from gemmsim.trace.types import Launch, WarpTrace

_WRITES = ("st", "atom", "red")
_NO_LOOKUPS = ("sectors", "tag_lookups", "ideal_sectors")  # columns of an access that touches no sectors
_THREADS = "thread_inst_executed"  # part of the names of counters of threads
_TILES_ARRIVE = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
_BEYOND = "tiles reach beyond their arrays: the zeros that TMA reads from L2 for the rest are in no counter"
_DATA_DECIDES = (
    "numbers of threads: the content of arrays decides which threads execute some instructions; blocks that were not "
    "executed are taken to have as many as the executed ones"
)


def serve(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    gpu: GpuSpec,
    l1_bytes: int,
    resident_blocks_per_sm: int,
    begins: L2Start = False,
) -> Traffic:
    """Replay the memory records of `trace` through coalescer, banks, L1, L2 and DRAM.

    l1_bytes                L1 cache of one SM: what the shared-memory carve-out leaves
    resident_blocks_per_sm  blocks that an SM holds at once
    begins                  how L2 begins; L1 is always empty

    Raises GemmsimError where the GPU's lines or sectors are not of 128 and 32 bytes.
    """
    _check(gpu, resident_blocks_per_sm)
    split = split_by_space(program, trace)
    placement = place(clusters_of(program, launch), gpu.sm, resident_blocks_per_sm)
    whole, accesses = trace, split.accesses
    trace = with_stacks(split.trace, accesses, placement, stack_bytes(program))
    split = replace(split, trace=trace)
    shapes = shapes_of(trace, accesses)
    caches = simulate_caches(trace, launch, placement, shapes, accesses, gpu, l1_bytes, begins)
    of_record = shapes.of_record
    tags, missing = look_up(trace.record_base, of_record, shapes.lanes, gpu.l1)
    wavefronts = np.where(caches.l2 > 0, missing, shapes.lanes.wavefronts.astype(np.int32)[of_record])
    if trace.copies is not None:
        wavefronts = wavefronts + trace.copies.conflicts
    bulk = np.isin(trace.record_pc, [index for index, access in accesses.items() if access.bulk])
    tags, wavefronts = np.where(bulk, 0, tags), np.where(bulk, 0, wavefronts)  # bulk copies go past L1's stages
    partial_lines = _partial_lines(accesses, shapes)[of_record]
    if caches.joined is not None:
        partial_lines = np.where(caches.joined.joins, caches.joined.partial_lines, partial_lines)
    rows = _rows(split, shapes, caches, tags, wavefronts)
    relation = trace.relation
    counters = counters_of(
        program,
        executed=whole.weight @ whole.executed,
        threads_executed=relation.threads.astype(np.float64) if relation else whole.weight @ whole.threads_executed,
        rows=rows,
        l2_requests=caches.l2_requests,
        dram=caches.traffic,
    )
    cost = RecordCost(
        wavefronts=(wavefronts + shapes.longer.astype(np.int32)[of_record]).astype(np.uint16),
        tag_cycles=_tag_cycles(tags, caches.l2, accesses, shapes, trace.copies, gpu).astype(np.uint16),
        l2_sectors=caches.l2,
        dram_sectors=caches.dram,
        dram_shared=caches.dram_shared,
        runs=_part_missed(caches.l2, shapes, shapes.coalesced.runs),
        lines=_part_missed(caches.l2, shapes, shapes.coalesced.lines),
        partial_lines=partial_lines,
        remote=is_remote(trace.record_base),
        merged_share=(caches.may_merge / np.maximum(caches.l2_sectors, 1)).astype(np.float32)[trace.record_pc],
        atomic_us=caches.atomic_us,
    )
    provenance, notes = counters.provenance, caches.notes
    if any(i.opcode == "SYNCS" and "PHASECHK" in i.modifiers for i in program.instructions):
        # A wait at an mbarrier is one instruction here. On hardware it is repeated when its time limit is over.
        repeated = ("smsp__inst_executed.sum", *(name for name in counters.value if _THREADS in name))
        # Wavefronts of operations on mbarriers are among these, those of waits as loads.
        repeated += tuple(f"l1tex__data_pipe_lsu_wavefronts_mem_shared{of}.sum" for of in ("", "_op_ld"))
        provenance = provenance | dict.fromkeys(repeated, Provenance.MODELLED)
    copies = np.isin(np.arange(trace.executed.shape[1]), [index for index, access in accesses.items() if access.bulk])
    if reach_beyond(trace, copies, shapes.coalesced.sectors, of_record):
        provenance = provenance | {_TILES_ARRIVE: Provenance.MODELLED}
        notes = (*notes, _BEYOND)
    if shapes.again.any():
        names = [name for name in counters.value if "_sectors_pipe_lsu_mem_global_op_" in name]
        again = [name for name in names if name.split("_op_")[1].startswith(("red", "atom"))]
        provenance = provenance | dict.fromkeys(again, Provenance.MODELLED)
    if relation and relation.data_decides:
        provenance = {name: Provenance.MODELLED if _THREADS in name else how for name, how in provenance.items()}
        notes = (*notes, _DATA_DECIDES)
    return Traffic(counters.value, provenance, rows, cost, shapes, notes, caches.l2_after)


def _check(gpu: GpuSpec, resident_blocks_per_sm: int) -> None:
    for name, cache in (("l1", gpu.l1), ("l2", gpu.l2)):
        if (cache.line_bytes, cache.sector_bytes) != (LINE_BYTES, SECTOR_BYTES):
            raise GemmsimError(
                f"{gpu.name}: {name}.line and {name}.sector must be {LINE_BYTES} and {SECTOR_BYTES} bytes, "
                f"as on every NVIDIA GPU since Volta; they are {cache.line_bytes} and {cache.sector_bytes}"
            )
    if resident_blocks_per_sm < 1:
        raise GemmsimError(f"no block fits on an SM of {gpu.name}: resident blocks must be at least 1")


def _tag_cycles(
    tags: NDArray[np.int32],
    l2_sectors: NDArray[np.uint16],
    accesses: dict[int, Access],
    shapes: Shapes,
    copies: Copies | None,
    gpu: GpuSpec,
) -> NDArray[np.int32]:
    """Return for how long each record holds the tag stage: int32 [records]. A load that misses asks L2 for its lines
    one after another (own microbenchmark on an H200, tests/records/h200_load_bursts.json), which takes longer than its
    passes.

    tags  int32 [records] passes of the tag stage, 0 for what does not go through it
    """
    stores = np.isin(shapes.pc, [i for i, access in accesses.items() if access.op in _WRITES])
    asked = np.where(stores, 0, shapes.coalesced.lines).astype(np.int32)[shapes.of_record]
    if copies is not None:
        asked = np.maximum(asked, copies.asked)
    cycles = -(-asked // gpu.l1.miss_lines_per_cycle)
    return np.maximum(tags, cycles, out=tags.copy(), where=(l2_sectors > 0) & (tags > 0))


def _part_missed(l2_sectors: NDArray[np.uint16], shapes: Shapes, touched: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return from how many runs of memory, or lines, each record's sectors come: as large a share of those that its
    shape has `touched` as of its sectors, rounded up.
    """
    # There may be millions of records, and few shapes with few numbers of sectors.
    sectors = np.maximum(shapes.coalesced.sectors, 1).astype(np.int32)[:, None]
    asked = np.arange(int(l2_sectors.max(initial=0)) + 1, dtype=np.int32)
    parts = -(-touched.astype(np.int32)[:, None] * np.minimum(asked, sectors) // sectors)
    return parts.astype(np.uint8).reshape(-1)[shapes.of_record * np.int32(len(asked)) + l2_sectors]


def _partial_lines(accesses: dict[int, Access], shapes: Shapes) -> NDArray[np.uint8]:
    """Return in how many lines a request of each shape writes sectors in part: uint8 [shapes], 0 for shared memory."""
    coalesced = shapes.coalesced
    shape = np.repeat(np.arange(len(shapes.pc)), coalesced.sectors)
    line = coalesced.sector_offset // SECTORS_PER_LINE
    writes = np.isin(shapes.pc, [i for i, access in accesses.items() if not access.on_chip and access.op == "st"])
    partial = writes[shape] & ~coalesced.sector_whole
    lines = np.unique(np.stack([shape[partial], line[partial]]), axis=1)[0]
    return np.bincount(lines, minlength=len(shapes.pc)).astype(np.uint8)


def _rows(
    split: Split,
    shapes: Shapes,
    caches: CacheResults,
    tags: NDArray[np.int32],
    wavefronts: NDArray[np.int32],
) -> tuple[InstructionTraffic, ...]:
    """Return the traffic of each executed memory instruction in each space.

    tags        int32 [records] cycles of L1's tag stage
    wavefronts  int32 [records] cycles of its data stage
    """
    trace, accesses = split.trace, split.accesses
    instructions = trace.executed.shape[1]
    weight = trace.record_weight
    of_shape = np.bincount(shapes.of_record, weight, minlength=len(shapes.pc))

    def by_shape(each: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(shapes.pc, of_shape * each, minlength=instructions).astype(np.float64)

    def by_record(each: NDArray) -> NDArray[np.float64]:
        return weighted_sums(trace.record_pc, weight, each, instructions)

    coalesced, copies = shapes.coalesced, trace.copies
    columns = {
        "requests": by_shape(np.ones_like(shapes.pc)),
        "sectors": by_shape(coalesced.sectors + shapes.again) + (0 if copies is None else by_record(copies.counted)),
        "tag_lookups": by_shape(coalesced.lines),
        "wavefronts": by_record(wavefronts),
        "conflicts": by_record(np.maximum(wavefronts - shapes.least.astype(np.int32)[shapes.of_record], 0)),
        "ideal_sectors": by_shape(coalesced.ideal_sectors),
        "used_bytes": by_shape(coalesced.used_bytes),
        "tag_wavefronts": by_record(tags),
        "l1_hit_sectors": caches.l1_hit_sectors,
        "l2_sectors": caches.l2_sectors,
        "dram_sectors": caches.dram_sectors,
        "merged_sectors": caches.merged_sectors,
        "atomic_us": by_record(caches.atomic_us),
    }
    gets = receivers(trace)
    columns["l2_hit_sectors"] = columns["l2_sectors"] - columns["dram_sectors"]
    rows = []
    for index, access in accesses.items():
        values = {name: float(column[index]) for name, column in columns.items()}
        if access.on_chip:
            values |= dict.fromkeys(_NO_LOOKUPS, 0.0)
        instruction = int(split.instruction[index])
        if access.bulk:
            values |= {"requests": float(trace.weight @ trace.executed[:, index]), "tag_lookups": 0.0}
            values["receivers"] = float(gets[index]) if access.op == "tma_ld" else 1.0
        rows.append(InstructionTraffic(instruction, access.space, access.op, access.width_bytes, **values))
    return tuple(rows)
