"""Works out Nsight Compute's memory and instruction counters, most of them sums over instructions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.matrix import WARPGROUP_WARPS, warpgroup_bytes
from gemmsim.isa.opcodes import OPCODES, Kind
from gemmsim.isa.program import Program
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES
from gemmsim.memory.types import DramTraffic, InstructionTraffic
from gemmsim.support.provenance import Provenance

EXACT, MODELLED = Provenance.EXACT, Provenance.MODELLED
_THROUGH_L1 = (
    *(("global", op) for op in ("ld", "st", "atom", "red")),
    *(("local", op) for op in ("ld", "st")),
)
_SHARED = ("ld", "st", "atom")
# Nsight Compute counts instructions here: HFMA2, which does two multiply-adds a thread, is one of the op "hfma2".
_ARITHMETIC = tuple(name for name, row in OPCODES.items() if row.operations)


class Counters:
    """The value and the provenance of each counter, by the name of Nsight Compute's metric."""

    def __init__(self) -> None:
        self.value: dict[str, float] = {}
        self.provenance: dict[str, Provenance] = {}

    def add(self, name: str, value: float, provenance: Provenance) -> None:
        self.value[name] = float(value)
        self.provenance[name] = provenance


def counters_of(
    program: Program,
    executed: NDArray[np.float64],
    threads_executed: NDArray[np.float64],
    rows: tuple[InstructionTraffic, ...],
    l2_requests: float,
    dram: DramTraffic,
) -> Counters:
    """Return all counters of a launch.

    executed          float64 [instructions] warp-level executions in the whole launch (weights applied)
    threads_executed  float64 [instructions] thread-level executions, likewise
    rows              the traffic of each executed memory instruction
    l2_requests       requests of the L1s to L2, of up to four sectors of a line each
    """
    out = Counters()
    _instructions(out, program, executed, threads_executed, rows)
    shuffles = float(executed[[OPCODES[i.opcode].kind is Kind.SHUFFLE for i in program.instructions]].sum())
    _l1(out, rows, shuffles)
    _shared(out, rows, shuffles)
    _distributed(out, rows)
    _multiplications(out, program, executed)
    _bulk(out, program, executed, rows)
    _l2(out, rows, l2_requests)
    _dram(out, dram)
    return out


def _instructions(
    out: Counters,
    program: Program,
    executed: NDArray[np.float64],
    threads: NDArray[np.float64],
    rows: tuple[InstructionTraffic, ...],
) -> None:
    total = executed.sum()
    out.add("smsp__inst_executed.sum", total, EXACT)
    out.add("smsp__thread_inst_executed_pred_on.sum", threads.sum(), EXACT)
    ratio = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
    out.add(ratio, _ratio(threads.sum(), total), EXACT)
    opcode = np.array([i.opcode for i in program.instructions])
    for name in _ARITHMETIC:
        metric = f"smsp__sass_thread_inst_executed_op_{name.lower()}_pred_on.sum"
        out.add(metric, threads[opcode == name].sum(), EXACT)
    kinds = [OPCODES[i.opcode].kind for i in program.instructions]
    # Matrix loads and stores have counters of their own.
    # Generic instructions, too: there they count by their opcode, whichever memory they reach.
    memories = [(index, OPCODES[i.opcode].memory) for index, i in enumerate(program.instructions)]
    generic = {index: memory.operation for index, memory in memories if memory and memory.space == "generic"}
    of_matrices = {index for index, kind in enumerate(kinds) if kind is Kind.MATRIX_ROWS}
    for space, op in (*_THROUGH_L1, *(("shared", op) for op in _SHARED)):
        some = {r.index for r in _of(rows, space, op)} - of_matrices - generic.keys()
        number = sum(executed[index] for index in some)
        out.add(f"smsp__inst_executed_op_{space}_{op}.sum", number, EXACT)
    for op in ("ld", "st") if generic else ():
        number = sum(executed[index] for index, its in generic.items() if its == op)
        out.add(f"smsp__inst_executed_op_generic_{op}.sum", number, EXACT)
    copies = sum(executed[index] for index in {r.index for r in rows if r.op in ("ldgsts", "zeros")})
    out.add("smsp__inst_executed_op_ldgsts.sum", copies, EXACT)
    out.add("smsp__inst_executed_op_ldsm.sum", executed[opcode == "LDSM"].sum(), EXACT)


def _l1(out: Counters, rows: tuple[InstructionTraffic, ...], shuffles: float) -> None:
    for space, op in _THROUGH_L1:
        some = _of(rows, space, op)
        if (space, op) == ("global", "ld"):
            some += _of(rows, "global", "ldgsts")  # in L1 they count as loads (H200)
        which = f"pipe_lsu_mem_{space}_op_{op}"
        requests, sectors, hits = _sum(some, "requests"), _sum(some, "sectors"), _sum(some, "l1_hit_sectors")
        out.add(f"l1tex__t_requests_{which}.sum", requests, EXACT)
        out.add(f"l1tex__t_sectors_{which}.sum", sectors, EXACT)
        out.add(f"l1tex__average_t_sectors_per_request_{which}.ratio", _ratio(sectors, requests), EXACT)
        out.add(f"l1tex__t_set_accesses_{which}.sum", _sum(some, "tag_lookups"), EXACT)
        # Modelled, because the bank of tags that a line is in depends on where the arrays lie.
        out.add(f"l1tex__t_output_wavefronts_{which}.sum", _sum(some, "tag_wavefronts"), MODELLED)
        out.add(f"l1tex__t_sectors_{which}_lookup_hit.sum", hits, MODELLED)
        out.add(f"l1tex__t_sectors_{which}_lookup_miss.sum", sectors - hits, MODELLED)
        out.add(f"l1tex__data_pipe_lsu_wavefronts_mem_{space}_op_{op}.sum", _sum(some, "wavefronts"), MODELLED)
        if op in ("ld", "st"):
            bytes_a_sector = _ratio(_sum(some, "used_bytes"), sectors)
            metric = f"smsp__sass_average_data_bytes_per_sector_mem_{space}_op_{op}"
            out.add(f"{metric}.ratio", bytes_a_sector, EXACT)
            out.add(f"{metric}.pct", 100 * bytes_a_sector / SECTOR_BYTES, EXACT)
    through = [r for r in rows if r.space != "shared" and not r.op.startswith("tma")]
    hit_rate = 100 * _ratio(_sum(through, "l1_hit_sectors"), _sum(through, "sectors"))
    out.add("l1tex__t_sector_hit_rate.pct", hit_rate, MODELLED)
    # A shuffle passes the data stage once, and is counted with shared memory (H200).
    out.add("l1tex__data_pipe_lsu_wavefronts.sum", _sum(rows, "wavefronts") + shuffles, MODELLED)
    through += [r for r in rows if r.op.startswith("tma")]
    returns = [r for r in through if r.op in ("ld", "ldgsts", "atom", "tma_ld")]
    received = sum(r.l2_sectors * r.receivers for r in returns)
    out.add("l1tex__m_xbar2l1tex_read_sectors.sum", received, MODELLED)
    writes = [r for r in through if r.op in ("st", "atom", "red", "tma_st", "tma_red")]
    out.add("l1tex__m_l1tex2xbar_write_sectors.sum", _sum(writes, "l2_sectors"), MODELLED)


def _shared(out: Counters, rows: tuple[InstructionTraffic, ...], shuffles: float) -> None:
    for op in _SHARED:
        some = _of(rows, "shared", op)
        out.add(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum", _sum(some, "wavefronts"), EXACT)
        out.add(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum", _sum(some, "conflicts"), EXACT)
    shared = [r for r in rows if r.space == "shared" and r.op != "zeros"]
    wavefronts = _sum(shared, "wavefronts")
    out.add("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", wavefronts + shuffles, EXACT)
    bytes_a_wavefront = _ratio(_sum(shared, "used_bytes"), wavefronts)
    out.add("smsp__sass_average_data_bytes_per_wavefront_mem_shared.ratio", bytes_a_wavefront, EXACT)
    out.add("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", 100 * bytes_a_wavefront / LINE_BYTES, EXACT)


def _distributed(out: Counters, rows: tuple[InstructionTraffic, ...]) -> None:
    """Count the accesses to shared memory of other blocks of a cluster. No counter was compared with a GPU's."""
    reached = [r for r in rows if r.space == "dshared"]
    if not reached:
        return
    for op in ("ld", "st"):
        requests = _sum(_of(reached, "dshared", op), "requests")
        out.add(f"l1tex__t_requests_pipe_lsu_mem_dshared_op_{op}.sum", requests, MODELLED)
    out.add("l1tex__t_bytes_pipe_lsu_mem_dshared.sum", _sum(reached, "used_bytes"), MODELLED)


def _multiplications(out: Counters, program: Program, executed: NDArray[np.float64]) -> None:
    """Add the wavefronts by which wgmma reads its operands, equal to an H200's in 30 launches profiled."""
    multiplies = [i for i in program.instructions if OPCODES[i.opcode].kind is Kind.WARPGROUP_MULTIPLY]
    if not multiplies:
        return
    read_bytes = sum(executed[i.index] / WARPGROUP_WARPS * sum(warpgroup_bytes(i)) for i in multiplies)
    wavefronts = read_bytes / LINE_BYTES  # a wavefront is as wide as a line
    out.add("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", wavefronts, EXACT)
    # Modelled, because fences for wgmma (FENCE.VIEW.ASYNC) take wavefronts on an H200 that nothing here counts.
    for metric in ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts.sum"):
        out.add(metric, out.value[metric] + wavefronts, MODELLED)


def _bulk(out: Counters, program: Program, executed: NDArray[np.float64], rows: tuple[InstructionTraffic, ...]) -> None:
    """Add the counters of bulk copies (TMA), where a program has such: equal to an H200's in four launches profiled.

    Nsight Compute counts reductions as stores, but not where it counts by machine code.
    """
    kinds = [OPCODES[i.opcode].kind for i in program.instructions]
    if Kind.BULK_COPY not in kinds:
        return
    in_pipe = [kind in (Kind.BULK_COPY, Kind.BULK_PREFETCH, Kind.BULK_GROUP) for kind in kinds]
    for metric in ("smsp__inst_executed_pipe_tma.sum", "l1tex__tmain_requests.sum"):
        out.add(metric, executed[in_pipe].sum(), EXACT)
    of = {op: _of(rows, "global", f"tma_{op}") for op in ("ld", "st", "red")}
    number = {op: float(sum(executed[r.index] for r in some)) for op, some in of.items()}
    out.add("smsp__inst_executed_op_tma_ld.sum", number["ld"], EXACT)
    out.add("smsp__inst_executed_op_tma_st.sum", number["st"] + number["red"], EXACT)
    for op in of:
        out.add(f"smsp__sass_inst_executed_op_tma_{op}.sum", number[op], EXACT)
    # What one block's multicast brings to others arrives at their SMs, too. That this counter has it was not compared.
    multicasts = any("MULTICAST" in i.modifiers for i in program.instructions)
    metric = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
    out.add(metric, sum(r.sectors * r.receivers for r in of["ld"]), MODELLED if multicasts else EXACT)
    for op in ("st", "red"):
        metric = f"l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_{op}.sum"
        out.add(metric, _sum(of[op], "sectors"), EXACT)


def _l2(out: Counters, rows: tuple[InstructionTraffic, ...], requests: float) -> None:
    def add(name: str, some: Iterable[InstructionTraffic]) -> tuple[float, float]:
        merged = _sum(some, "merged_sectors")  # they come with another SM's request: neither hits nor misses of L2
        sectors, hits = _sum(some, "l2_sectors") - merged, _sum(some, "l2_hit_sectors") - merged
        out.add(f"lts__t_sectors_srcunit_tex{name}.sum", sectors, MODELLED)
        out.add(f"lts__t_sectors_srcunit_tex{name}_lookup_hit.sum", hits, MODELLED)
        out.add(f"lts__t_sectors_srcunit_tex{name}_lookup_miss.sum", sectors - hits, MODELLED)
        return sectors, hits

    sectors, hits = add("", rows)
    reads, _ = add("_op_read", [r for r in rows if r.op in ("ld", "ldgsts", "tma_ld")])
    writes, _ = add("_op_write", [r for r in rows if r.op in ("st", "tma_st")])
    out.add("lts__t_requests_srcunit_tex.sum", requests, MODELLED)
    # Only requests of the L1s are modelled. The hardware also counts copies between its partitions and the requests of
    # the constant caches.
    out.add("lts__t_sectors.sum", sectors, MODELLED)
    out.add("lts__t_sectors_op_read.sum", reads, MODELLED)
    out.add("lts__t_sectors_op_write.sum", writes, MODELLED)
    out.add("lts__t_sector_hit_rate.pct", 100 * _ratio(hits, sectors), MODELLED)


def _dram(out: Counters, dram: DramTraffic) -> None:
    for op, sectors in (("read", dram.read_sectors), ("write", dram.write_sectors)):
        out.add(f"dram__sectors_{op}.sum", sectors, MODELLED)
        out.add(f"dram__bytes_{op}.sum", sectors * SECTOR_BYTES, MODELLED)


def _of(rows: Iterable[InstructionTraffic], space: str, op: str) -> list[InstructionTraffic]:
    return [r for r in rows if (r.space, r.op) == (space, op)]


def _sum(rows: Iterable[InstructionTraffic], field: str) -> float:
    return float(sum(getattr(r, field) for r in rows))


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b else 0.0
