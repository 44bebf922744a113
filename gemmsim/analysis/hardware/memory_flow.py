"""Works out how much data moves between kernel, L1, shared memory, L2 and DRAM. A memory chart draws it as arrows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.hardware.utilisation import data_stage_pct, dram_pct, l2_pct
from gemmsim.memory.types import InstructionTraffic

KERNEL, L1, SHARED, L2, DRAM = "kernel", "l1", "shared", "l2", "dram"
_READS: tuple[str, ...] = ("ld", "atom")  # atomics return what they found
_WRITES: tuple[str, ...] = ("st", "atom", "red")
_COPIES: tuple[str, ...] = ("ldgsts",)  # go from L1 to shared memory
_BULK_READS, _BULK_WRITES = ("tma_ld",), ("tma_st", "tma_red")  # go between L2 and shared memory


@dataclass(frozen=True, slots=True)
class Flow:
    """The data that moved one way between two neighbours, over the whole launch.

    source, target  "kernel", "l1", "shared", "l2" or "dram"
    what            "global", "local" or "shared" for the kernel's own accesses, "cp.async" and "TMA" for copies to and
                    from shared memory, else ""
    requests        warp instructions; 0 between the caches and DRAM
    moved_bytes     sectors times their size; for shared memory the distinct bytes that each request asks for
    wavefronts      of shared memory, 0 elsewhere
    received_bytes  of TMA's loads, what arrives at all SMs: with multicast more than `moved_bytes`, as L2 sends once
                    what several SMs receive; 0 elsewhere
    merged_bytes    of `moved_bytes`, what L2 reads but once as another SM asks for it at about the same time
    share_pct       what it takes of the peak of the unit that moves it, over the kernel's time: for the kernel's own
                    accesses of the data stage's wavefronts, of the SMs with blocks; for L2 and DRAM of the bandwidth;
                    None for copies within an SM
    """

    source: str
    target: str
    what: str
    requests: float
    moved_bytes: float
    wavefronts: float = 0.0
    received_bytes: float = 0.0
    merged_bytes: float = 0.0
    share_pct: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryFlow:
    """All flows of a launch.

    flows                   those that moved data
    l1_hit_pct, l2_hit_pct  sectors found in the cache, in percent of the sectors asked of it; None where none was asked
    conflicts               wavefronts of shared memory that only bank conflicts cause
    """

    flows: tuple[Flow, ...]
    l1_hit_pct: float | None
    l2_hit_pct: float | None
    conflicts: float


def memory_flow(evidence: Evidence) -> MemoryFlow:
    """Work out the flows, hit rates and bank conflicts of the whole launch."""
    sector_bytes, counters = evidence.gpu.l1.sector_bytes, evidence.counters
    shared = [row for row in evidence.traffic if row.space == SHARED]
    cached = [row for row in evidence.traffic if row.space != SHARED]
    flows: list[Flow] = []
    for space, cache in (("global", L1), ("local", L1), (SHARED, SHARED)):
        for source, target, ops in ((cache, KERNEL, _READS), (KERNEL, cache, _WRITES)):
            rows = [row for row in evidence.traffic if row.space == space and row.op in ops]
            in_shared = space == SHARED
            moved_bytes = _sum(rows, "used_bytes") if in_shared else sector_bytes * _sum(rows, "sectors")
            every = _sum(rows, "wavefronts")
            flow = Flow(source, target, space, _sum(rows, "requests"), moved_bytes, every if in_shared else 0.0)
            flows.append(replace(flow, share_pct=data_stage_pct(evidence, every)))
    copies = [row for row in cached if row.op in _COPIES]
    flows.append(Flow(L1, SHARED, "cp.async", _sum(copies, "requests"), sector_bytes * _sum(copies, "sectors")))
    for source, target, ops in ((L2, L1, _READS + _COPIES), (L1, L2, _WRITES)):
        moved_bytes = sector_bytes * _sum([row for row in cached if row.op in ops], "l2_sectors")
        flows.append(Flow(source, target, "", 0.0, moved_bytes, share_pct=l2_pct(evidence, moved_bytes)))
    for source, target, ops in ((L2, SHARED, _BULK_READS), (SHARED, L2, _BULK_WRITES)):
        rows = [row for row in cached if row.op in ops]
        moved_bytes, merged = (sector_bytes * _sum(rows, field) for field in ("l2_sectors", "merged_sectors"))
        received = sector_bytes * sum(row.l2_sectors * row.receivers for row in rows if row.op in _BULK_READS)
        share = l2_pct(evidence, moved_bytes - merged)
        flows.append(Flow(source, target, "TMA", _sum(rows, "requests"), moved_bytes, 0.0, received, merged, share))
    for source, target, name in ((DRAM, L2, "dram__bytes_read.sum"), (L2, DRAM, "dram__bytes_write.sum")):
        moved_bytes = counters.get(name, 0.0)
        flows.append(Flow(source, target, "", 0.0, moved_bytes, share_pct=dram_pct(evidence, moved_bytes)))
    return MemoryFlow(
        flows=tuple(flow for flow in flows if flow.requests or flow.moved_bytes),
        l1_hit_pct=_pct(
            _sum(cached, "l1_hit_sectors"), _sum([row for row in cached if not row.op.startswith("tma")], "sectors")
        ),
        l2_hit_pct=_pct(_sum(cached, "l2_hit_sectors"), _sum(cached, "l2_sectors")),
        conflicts=_sum(shared, "conflicts"),
    )


def _sum(rows: Iterable[InstructionTraffic], field: str) -> float:
    return float(sum(getattr(row, field) for row in rows))


def _pct(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None
