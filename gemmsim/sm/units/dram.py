"""What DRAM adds to a load: its latency, its queue, and this SM's share of its rate."""

from __future__ import annotations

from gemmsim.sm.spec import Spec
from gemmsim.sm.units.machine import MemoryPath
from gemmsim.sm.units.share import take
from gemmsim.sm.units.slowest_line import level_of

_MOST_USED = 0.98  # keeps a queue finite; above it the bandwidth itself is what is waited for
LINE_SECTORS = 4


def latency_beyond_l2(spec: Spec, shared: int, slowest: float) -> float:
    """Return what DRAM adds to the latency of a load, while nothing else is asked of it.

    Of two partitions of L2 each has a part of DRAM behind it, and a line from the far part comes later. But where SMs
    near to both ask for it, those that are near have it read for all, and all SMs wait alike (own microbenchmark on an
    H100, tests/records/h100_shared_lines.json).

    shared   above 0 where other SMs ask for the same
    slowest  how much longer than the mean its slowest line takes, in standard deviations
    """
    mean = spec.dram_shared_latency_cycles if shared > 0 else spec.dram_latency_cycles
    return max(mean - spec.l2_latency_cycles + spec.dram_deviation_cycles * slowest, 0.0)


def queue_cycles(cycles: float, busy_cycles: float, lines: int, latency_cycles: float, now: int) -> float:
    """Return for how long the slowest line of a load waits behind those of other SMs, which come at random. What this
    SM asks for too soon waits for its share.

    The more of the bandwidth has been used so far, the longer, as in a queue with one server; twice the lines wait for
    one more such time, as the latest of waits that are exponentially distributed does.

    cycles       what a line waits where half of the bandwidth is used
    busy_cycles  of the SM's share, until now
    """
    used = min(busy_cycles / max(float(now), latency_cycles), _MOST_USED)
    return cycles * (1 + level_of(lines)) * used / (1 - used)


def mixed_cycles(spec: Spec, memory: MemoryPath, now: int) -> float:
    """Return for how long a load waits because DRAM writes, too.

    It is asked to read and to write all the time, and does much of one before it turns to the other. On an H200, loads
    of warps that go through rows of memory and store what they read wait 206 cycles longer at 1.1 TB/s than those of
    one warp an SM, and 668 at 2.3 TB/s (own microbenchmark, tests/records/h200_row_streams.json). Reads alone wait
    10 to 85 cycles longer (h200_streams.json).
    """
    if memory.dram_written == 0:
        return 0.0
    used = min(memory.dram_share.asked / max(float(now), spec.dram_latency_cycles), 1.0)
    written = memory.dram_written / (memory.dram_read + memory.dram_written)
    return spec.dram_mixed_latency_cycles * written * used / (1 - spec.dram_mixed_crowding * used)


def _remember(spec: Spec, memory: MemoryPath) -> None:
    """Let what was read and written long ago count less."""
    if memory.dram_read + memory.dram_written > spec.dram_mixed_remembered_cycles:
        memory.dram_read = memory.dram_read / 2
        memory.dram_written = memory.dram_written / 2


def load(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> float:
    """Return the cycle before which sectors of an ordinary load have not all come from DRAM."""
    memory.turns += sectors
    memory.dram_read += sectors * spec.sector_dram_cycles
    _remember(spec, memory)
    return take(memory.dram_share, now, sectors * spec.sector_dram_cycles, spec.loads_in_step)


def read(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> float:
    """Return the cycle in which DRAM begins to read sectors of a tile for this SM, one tile after another."""
    return load(spec, memory, sectors, now) - sectors * spec.sector_dram_cycles


def write(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> None:
    """Book the write of sectors to DRAM. As many of them as were read in between make it turn round."""
    if sectors <= 0:
        return
    turning = min(sectors, memory.turns)
    memory.turns -= turning
    cycles = (sectors + turning * spec.dram_turnaround) * spec.sector_dram_cycles
    memory.dram_written += cycles
    _remember(spec, memory)
    take(memory.dram_share, now, cycles, spec.loads_in_step)
