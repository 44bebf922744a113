"""Predicts the power that a launch takes, and the SM clock to which a limit of the board's power brings it.

Source: our own. On an H200 (tests/records/h200_power.json) the board takes a constant power while its SMs are at work,
and an energy for each operation and each byte moved. Where that would be more than `Power.burst_limit_watts`, the SM
clock is lowered within microseconds, so that single GEMMs run at it; where it is more than `Power.limit_watts`, the
clock falls further after 30 to 60 ms of launches in a row. Other GPUs have its energies, scaled by what loops of
multiplications and loads were measured to take there (docs/model/power.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gemmsim.gpu.power import Power
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.memory.types import Traffic
from gemmsim.sm.types import PowerUse, Timing
from gemmsim.support.warp import WARP_LANES

# How often a launch is timed again at another clock, and how near to the clock sought one is near enough.
_MOST_TRIALS, _NEAR = 3, 0.005


@dataclass(frozen=True, slots=True)
class Energy:
    """What the work of one launch takes, without the power that the board takes anyway.

    sm_joules    of the SMs and L2, at `power.energy_clock_hz`
    dram_joules  of DRAM
    active_sms   how many SMs have blocks: what their cycles take comes on top
    """

    sm_joules: float
    dram_joules: float
    active_sms: int = 0


def energy_of(
    program: Program, executed: Sequence[float], traffic: Traffic, blocks: int, gpu: GpuSpec
) -> Energy | None:
    """Return the energy of a launch of so many blocks; None where the GPU file does not say what its work takes.

    executed  how many warps of the launch execute each instruction
    """
    power = gpu.power
    if not power.busy_watts:
        return None
    joules = 0.0
    for instruction, count in zip(program.instructions, executed, strict=True):
        row, matrices = row_of(instruction), matrix_multiply(instruction)
        if count and matrices is not None:
            of_operation = _of_operation(power, matrices.precision)
            if not of_operation:
                return None
            joules += count * matrices.operations * of_operation
            joules += 0.0 if row.kind is Kind.WARPGROUP_MULTIPLY else count * power.matrix_instruction_joules
        elif row.operations and row.precision:
            joules += count * WARP_LANES * row.operations * _of_operation(power, row.precision)
        elif row.memory is None:
            joules += count * power.instruction_joules
    sector_bytes = gpu.l2.sector_bytes
    rows, counters = traffic.instructions, traffic.counters
    joules += sum(row.wavefronts for row in rows) * power.wavefront_joules
    of_l2 = sum(row.l2_sectors - row.merged_sectors for row in rows)
    of_sms = sum(row.l2_sectors * row.receivers for row in rows)
    joules += sector_bytes * (of_l2 * power.l2_byte_joules + of_sms * power.sm_byte_joules)
    read, written = counters["dram__sectors_read.sum"], counters["dram__sectors_write.sum"]
    dram = read * power.dram_read_byte_joules + written * power.dram_write_byte_joules
    return Energy(joules, dram * sector_bytes, min(blocks, gpu.sm.count))


def _of_operation(power: Power, precision: str) -> float:
    """Return the joules of one operation; 0 where the GPU file has no number for this precision."""
    return float(getattr(power, f"{precision}_joules", 0.0))


def watts_at(energy: Energy, cycles: float, clock_hz: float, gpu: GpuSpec, apart_us: float = 0.0) -> float:
    """Return the power of the board while launches of so many cycles run at a clock, `apart_us` after one another."""
    power = gpu.power
    share = (clock_hz / power.energy_clock_hz) ** power.energy_exponent
    seconds = cycles / clock_hz + apart_us * 1e-6
    clocked_watts = energy.active_sms * power.cycle_joules * share * clock_hz
    return power.busy_watts + clocked_watts + (energy.sm_joules * share + energy.dram_joules) / seconds


def clock_within(
    limit_watts: float, energy: Energy, cycles: float, clock_hz: float, gpu: GpuSpec, apart_us: float = 0.0
) -> float:
    """Return the clock, at most `clock_hz`, at which the board takes at most `limit_watts`, if cycles stay as many.

    It is not below a tenth of `clock_hz`: the power that the board takes anyway may be more than the limit.
    """
    low, high = 0.1 * clock_hz, clock_hz
    if watts_at(energy, cycles, high, gpu, apart_us) <= limit_watts:
        return clock_hz
    while high - low > 1e-4 * clock_hz:
        middle = (low + high) / 2
        over = watts_at(energy, cycles, middle, gpu, apart_us) > limit_watts
        low, high = (low, middle) if over else (middle, high)
    return low


def timed_within(
    limit_watts: float | None, timed: Callable[[float | None], Timing], energy: Energy, gpu: GpuSpec
) -> Timing:
    """Time a launch at the clock to which a limit of the board's power brings it; None stands for no limit.

    timed  times the launch at a clock in Hz; None: at the one that its work allows

    At another clock a launch that waits for L2 or DRAM takes other cycles, so the clock is found by trials.
    The limit in the long run is one of launches in a row, between which the overhead of a launch passes.
    """
    timing, allowed, apart_us = timed(None), gpu.power.limit_watts, gpu.launch.overhead_us
    most_hz = timing.sm_clock_hz
    held_at = 0.0
    for _ in range(_MOST_TRIALS if limit_watts is not None else 0):
        pause_us = apart_us if limit_watts == allowed else 0.0
        held = clock_within(limit_watts or 0.0, energy, timing.cycles, most_hz, gpu, pause_us)
        if abs(held / timing.sm_clock_hz - 1) <= _NEAR:
            break
        timing, held_at = timed(held), limit_watts or 0.0
    cycles, clock_hz = timing.cycles, timing.sm_clock_hz
    sustained = clock_within(allowed, energy, cycles, clock_hz, gpu, apart_us)
    return replace(timing, power=PowerUse(watts_at(energy, cycles, clock_hz, gpu), allowed, sustained, held_at))
