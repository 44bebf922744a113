"""The numbers of a GPU that say what power its work takes, a part of `GpuSpec`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Power:
    """Power of the board, and the energy that work takes, at `energy_clock_hz`. All are 0 where they are not known.

    At another clock energies change by its `energy_exponent`-th power, as the voltage does; DRAM's does not.
    """

    limit_watts: float  # to which the board brings its power within a tenth of a second
    burst_limit_watts: float  # to which the SM clock is lowered at once
    busy_watts: float  # of the board while warps run on all SMs, whatever they do
    energy_clock_hz: float
    energy_exponent: float
    cycle_joules: float  # of a cycle of an SM that has blocks, whatever they do; 0 where `busy_watts` holds it
    instruction_joules: float  # of a warp instruction that no field below has
    matrix_instruction_joules: float  # of a warp's mma.sync, beside its operations: it reads and writes registers
    fp32_joules: float  # of an operation, as those below; a fused multiply-add is two
    fp64_joules: float
    fp16_joules: float
    tensor_fp16_joules: float
    tensor_bf16_joules: float
    tensor_tf32_joules: float
    tensor_fp64_joules: float
    tensor_fp8_joules: float
    tensor_int8_joules: float
    wavefront_joules: float  # of a wavefront of the data stage, which moves up to 128 bytes
    l2_byte_joules: float  # of a byte that L2 reads or takes, once where several SMs get it by one request
    sm_byte_joules: float  # of a byte from L2 that arrives at an SM, or leaves it, beside that
    dram_read_byte_joules: float  # of a byte from DRAM, beside its way from L2 on
    dram_write_byte_joules: float
