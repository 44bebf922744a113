"""Finds the cost of local memory.

Local memory holds spilled registers, and arrays that the compiler could not keep in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice
from gemmsim.gpu.spec import GpuSpec
from gemmsim.support.plurals import plural
from gemmsim.trace.launch_data.constant_bank import stack_bytes

SPILL_SHARE = 0.02  # of warp instructions, L1 sectors or L2 sectors; below it there is no advice


@dataclass(frozen=True, slots=True)
class LocalTraffic:
    """Traffic of local memory over the whole launch, and its share of all traffic.

    bytes_a_thread     bytes of local memory that each thread has
    loads, stores      warp instructions (LDL, STL), each a request to L1
    sectors            32-byte sectors asked of L1
    l2_sectors         those of them that went on to L2
    instruction_share  share of loads and stores in all warp instructions, from 0 to 1
    l1_share           share of `sectors` in all sectors asked of L1, from 0 to 1
    l2_share           share of `l2_sectors` in all sectors sent to L2, from 0 to 1
    resident_bytes     what the threads that are resident at once have of it together: what caches would have to hold
    """

    bytes_a_thread: int
    loads: float
    stores: float
    sectors: float
    l2_sectors: float
    instruction_share: float
    l1_share: float
    l2_share: float
    resident_bytes: int


def local_traffic(evidence: Evidence) -> LocalTraffic | None:
    """Return the local memory traffic of a launch, None where no instruction used local memory."""
    rows = [row for row in evidence.traffic if row.space == "local" and row.requests]
    if not rows:
        return None
    loads = float(sum(row.requests for row in rows if row.op == "ld"))
    stores = float(sum(row.requests for row in rows if row.op != "ld"))
    sectors, l2_sectors = float(sum(row.sectors for row in rows)), float(sum(row.l2_sectors for row in rows))
    resident = min(evidence.blocks, evidence.occupancy.blocks_per_sm * evidence.gpu.sm.count)
    return LocalTraffic(
        bytes_a_thread=evidence.program.local_bytes,
        loads=loads,
        stores=stores,
        sectors=sectors,
        l2_sectors=l2_sectors,
        instruction_share=_share(loads + stores, evidence.warp_instructions),
        l1_share=_share(sectors, sum(row.sectors for row in evidence.traffic)),
        l2_share=_share(l2_sectors, evidence.l2_sectors),
        resident_bytes=stack_bytes(evidence.program) * evidence.threads_per_block * resident,
    )


def local_sentence(traffic: LocalTraffic, gpu: GpuSpec) -> str:
    """Say in one sentence how much traffic local memory causes, and how much of caches it would take."""
    moved, resident, l2 = (
        f"{count / 1e6:,.1f} MB"
        for count in (traffic.sectors * gpu.l1.sector_bytes, traffic.resident_bytes, gpu.l2.size_bytes)
    )
    return (
        f"{plural(traffic.loads, 'load')} and {plural(traffic.stores, 'store')} of local memory are "
        f"{100 * traffic.instruction_share:.0f}% of the warp instructions; their {traffic.sectors:,.0f} sectors "
        f"({moved}) are {100 * traffic.l1_share:.0f}% of those asked of L1, and "
        f"{traffic.l2_sectors:,.0f} ({100 * traffic.l2_share:.0f}%) of those sent to L2; all resident threads have "
        f"{resident} of it, beside an L2 of {l2}"
    )


def spills(evidence: Evidence) -> Advice | None:
    """Advise a change where local memory takes a part of the traffic or of the issue slots."""
    found = local_traffic(evidence)
    if found is None or max(found.instruction_share, found.l1_share, found.l2_share) < SPILL_SHARE:
        return None
    gpu, registers = evidence.gpu, evidence.program.registers
    total = evidence.warp_instructions
    l2_mb = evidence.l2_sectors * gpu.l2.sector_bytes / 1e6
    full = registers >= gpu.sm.max_registers_per_thread
    cause = "a thread has no register left" if full else "the register limit, or an array indexed at run time"
    return Advice(
        rule="spills",
        title=f"{found.bytes_a_thread:,} bytes a thread lie in local memory: {cause} ({registers} registers)",
        evidence=local_sentence(found, gpu),
        change="fewer results a thread, or a higher register limit; indices of local arrays known when compiling",
        gain=(
            f"without them {total:,.0f} warp instructions would be {total - found.loads - found.stores:,.0f}, and "
            f"{l2_mb:,.1f} MB to L2 {l2_mb * (1 - found.l2_share):,.1f} MB"
        ),
        cures=tuple((row.index, 0.0) for row in evidence.traffic if row.space == "local"),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
