"""Bounds a launch's time by what DRAM reads and writes for it."""

from __future__ import annotations

from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.requests.sums import weighted_sums
from gemmsim.memory.types import RecordCost
from gemmsim.sm.instructions import InstructionTable
from gemmsim.sm.units.instruction import Bulk
from gemmsim.trace.types import WarpTrace


def dram_seconds(table: InstructionTable, trace: WarpTrace, cost: RecordCost, gpu: GpuSpec) -> float:
    """Return for how long DRAM is busy for the launch, with all that it reads and, sooner or later, writes.

    Stores do not wait for DRAM, so the SMs may be done sooner. Of launches in a row each one takes at least this long:
    what one leaves in L2 is written while the next one runs. As many sectors as are both read and written make DRAM
    turn round (`dram.turnaround`).
    """
    rows = table.rows
    loads = (rows["writes_registers"] > 0) | (rows["copies"] > 0) | (rows["bulk"] == int(Bulk.LOAD))
    # Weights are whole numbers, so that their sums are exact, in whatever order.
    sectors = weighted_sums(trace.record_pc, trace.record_weight, cost.dram_sectors, len(loads))
    read, written = float(sectors[loads].sum()), float(sectors[~loads].sum())
    moved = read + written + min(read, written) * gpu.dram.turnaround
    return moved * gpu.l2.sector_bytes / (gpu.dram.peak_bytes_per_s * gpu.dram.achievable_fraction)
