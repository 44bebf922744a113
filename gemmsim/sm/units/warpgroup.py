"""A warpgroup's asynchronous multiplications (wgmma), as one sub-partition sees them.

Each of the warpgroup's four warps issues the instruction in its own sub-partition and goes on. The sub-partition does
its multiplications in the order of their issue. First A is read from shared memory, then B, of which all four
sub-partitions read the same columns together; the tensor pipe multiplies while B comes. Meanwhile the operands of the
next multiplication are read. They take the banks of shared memory, a quarter of their wavefronts for each of the four
warps; requests that need the banks wait for them, and they wait only for what asynchronous copies (LDGSTS) bring.
Beside copies of 16 bytes a lane, each multiplication takes 0.5 to 1.1 cycles longer for each copy that comes, however
many columns it has (own microbenchmark on an H200, tests/records/h200_copies.json). Here what came since the last
multiplication is added to the next.

While a sub-partition multiplies, its ALU and its integer multiplications take their pipes twice as long
(`Spec.math_interval`; own microbenchmarks on an H100 and an H200, of which the second is in
tests/records/h200_beside_multiplications.json). It is not known what they share with the tensor pipe.
"""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.issue_queue import hold_entry
from gemmsim.sm.units.machine import Sm, SubPartition
from gemmsim.sm.units.pipes import block_users
from gemmsim.sm.units.server import book


def multiply(sm: Sm, part: SubPartition, row: Instruction, now: int) -> int:
    """Begin a multiplication that issues in cycle `now`; return the cycle in which a warp that waits goes on."""
    spec = sm.spec
    port = part.pipes.ports[row.port]
    pipe = part.pipes.pipes[port.first]
    read = max(float(now), part.operands_free)
    if row.operand_cycles > 0:
        memory = sm.memory
        if part.operands_free > now:
            read += memory.copied_cycles - part.copied_cycles
        part.copied_cycles = memory.copied_cycles
        own = row.operand_cycles / spec.sub_partitions
        book(memory.banks, now, read, own)
        memory.operand_cycles += own
        part.operands_free = read + row.operand_cycles
    begin = max(read + spec.multiply_start_cycles + row.first_operand_cycles, pipe.free)
    pipe.issued += row.pipe_slots
    pipe.free = begin + row.multiply_cycles
    if begin > part.multiplies_until:
        part.multiplies_from = begin
    part.multiplies_until = pipe.free
    block_users(part.pipes, port.first, row.port, now)
    hold_entry(part.multiplications, spec.multiply_queue_entries, port, ceil(begin), now)
    return ceil(pipe.free + spec.multiply_finish_cycles)
