"""How much data moves between kernel, L1, shared memory, L2 and DRAM: the arrows of a memory chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmsim.analysis.evidence import Evidence
from gemmsim.memory.types import InstructionTraffic

KERNEL, L1, SHARED, L2, DRAM = "kernel", "l1", "shared", "l2", "dram"
_READS = ("ld", "ldgsts", "atom")  # atomics return what they found
_WRITES = ("st", "atom", "red")


@dataclass(frozen=True, slots=True)
class Flow:
    """Data that moved one way between two neighbours, over the whole launch.

    source, target  "kernel", "l1", "shared", "l2" or "dram"
    what            "global", "local" or "shared" for the kernel's own accesses, else ""
    requests        warp instructions; 0 between the caches and DRAM
    moved_bytes     sectors times their size; for shared memory the distinct bytes asked for
    wavefronts      of shared memory, 0 elsewhere
    """

    source: str
    target: str
    what: str
    requests: float
    moved_bytes: float
    wavefronts: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryFlow:
    """All flows of a launch.

    flows                   those that moved data
    l1_hit_pct, l2_hit_pct  percent of the sectors asked for, None where the cache was not asked
    conflicts               wavefronts of shared memory beyond those that it would take without bank conflicts
    """

    flows: tuple[Flow, ...]
    l1_hit_pct: float | None
    l2_hit_pct: float | None
    conflicts: float


def memory_flow(evidence: Evidence) -> MemoryFlow:
    """The flows of the whole launch."""
    sector_bytes, rows = evidence.gpu.l1.sector_bytes, evidence.traffic
    flows: list[Flow] = []
    for space in ("global", "local"):
        some = [row for row in rows if row.space == space]
        for source, target, ops in ((L1, KERNEL, _READS), (KERNEL, L1, _WRITES)):
            mine = [row for row in some if row.op in ops]
            flows.append(Flow(source, target, space, _sum(mine, "requests"), sector_bytes * _sum(mine, "sectors")))
    some = [row for row in rows if row.space == SHARED]
    for source, target, ops in ((SHARED, KERNEL, _READS), (KERNEL, SHARED, _WRITES)):
        mine = [row for row in some if row.op in ops]
        requests, used, waves = (_sum(mine, name) for name in ("requests", "used_bytes", "wavefronts"))
        flows.append(Flow(source, target, SHARED, requests, used, waves))
    through = [row for row in rows if row.space != SHARED]
    for source, target, ops in ((L2, L1, _READS), (L1, L2, _WRITES)):
        mine = [row for row in through if row.op in ops]
        flows.append(Flow(source, target, "", 0.0, sector_bytes * _sum(mine, "l2_sectors")))
    counters = evidence.counters
    flows.append(Flow(DRAM, L2, "", 0.0, counters.get("dram__bytes_read.sum", 0.0)))
    flows.append(Flow(L2, DRAM, "", 0.0, counters.get("dram__bytes_write.sum", 0.0)))
    return MemoryFlow(
        flows=tuple(flow for flow in flows if flow.requests or flow.moved_bytes),
        l1_hit_pct=_pct(_sum(through, "l1_hit_sectors"), _sum(through, "sectors")),
        l2_hit_pct=_pct(_sum(through, "l2_hit_sectors"), _sum(through, "l2_sectors")),
        conflicts=_sum(some, "conflicts"),
    )


def _sum(rows: Iterable[InstructionTraffic], field: str) -> float:
    return float(sum(getattr(row, field) for row in rows))


def _pct(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None
