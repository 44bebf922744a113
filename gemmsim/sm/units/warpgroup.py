"""A warpgroup's asynchronous multiplications (wgmma), as one sub-partition sees them.

Each of the warpgroup's four warps issues the instruction in its own sub-partition and goes on. The sub-partition does
its multiplications in the order of their issue. First A is read from shared memory, then B, of which all four
sub-partitions read the same columns together; the tensor pipe multiplies while B comes. Meanwhile the operands of the
next multiplication are read. They are wavefronts of the data stage, a quarter of them for each of the four warps; what
else passes there waits for them, and they for nothing.
"""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.data_stage import pass_data_stage
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.issue_queue import hold_entry
from gemmsim.sm.units.machine import Sm, SubPartition
from gemmsim.sm.units.pipes import block_users


def multiply(sm: Sm, part: SubPartition, row: Instruction, now: int) -> int:
    """Begin a multiplication that issues in cycle `now`; return the cycle in which a warp that waits goes on."""
    spec = sm.spec
    port = part.pipes.ports[row.port]
    pipe = part.pipes.pipes[port.first]
    read = max(float(now), part.operands_free)
    if row.operand_cycles > 0:
        pass_data_stage(sm, read, row.operand_cycles / spec.sub_partitions, now)
        part.operands_free = read + row.operand_cycles
    begin = max(read + spec.multiply_start_cycles + row.first_operand_cycles, pipe.free)
    pipe.issued += row.pipe_slots
    pipe.free = begin + row.multiply_cycles
    block_users(part.pipes, port.first, row.port, now)
    hold_entry(part.multiplications, spec.multiply_queue_entries, port, ceil(begin), now)
    return ceil(pipe.free + spec.multiply_finish_cycles)
