"""Which of a GPU's pipes an instruction needs, and for how long: the table that says what competes with what.

The table of opcodes (`gemmsim/isa/opcodes.toml`) gives each opcode a port; `port_pipes` says which pipes serve a port.
The pipes have Nsight Compute's names (profiling guide, "Pipelines"); they are the keys of `GpuSpec.pipes`:

    fmaheavy  FP32 and integer multiply-add          fmalite   the second FP32 half (sm_86 and later)
    alu       integer add, logic, shifts, compares   fp64, fp16, tensor
    xu        transcendentals and conversions        uniform   the uniform datapath
    lsu       loads, stores, shuffles; its issue interval is the address unit's
    adu       special registers, constants by LDC, barriers (how long they wait: `Barrier` of the GPU)
              The port "warpgroup", of wgmma, is the tensor pipe behind a queue of its own; the port "tma", of bulk
              copies, the uniform datapath before the TMA unit
    cbu       branches; its latency is that from a taken branch to the next instruction

Both FP32 halves serve the port "fma", and an instruction of the port "half", of half precision, needs both. On Hopper
HFMA2.MMA has a pipe of its own, `fp16`; compilers take turns with it and HFMA2. On an H200 loops of either issue every
2 cycles, those of both every cycle; HFMA2 takes 3.6 cycles with one FFMA, 6.0 with three, and 4.0 with an IMAD
(tests/records/h200_half.json). Where there is no `fp16`, half precision runs in the halves alone (ncu-guide: so since
GA10x), and where there is no `fmalite`, in `fp16` alone (Turing and GA100).
"""

from __future__ import annotations

from collections.abc import Collection

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.matrix import warpgroup_columns
from gemmsim.isa.opcodes import MemoryAccess, Opcode, opcode_row
from gemmsim.isa.program import Instruction
from gemmsim.support.errors import GemmsimError

# Integers of other widths run at the times of int8. IMMA.16864 in int4 and BMMA.168256 read as many registers as
# IMMA.16832 in int8, and vendors' peaks are in proportion (a100-wp: 624, 1248 and 4992 TOP/s). QMMA runs at those of
# HMMA: vendors' peaks for fp8 are twice those for fp16 (ada-wp, blackwell-wp), as is the work of QMMA.16832.
_BY_INT8 = ("tensor_int8", "tensor_int4", "tensor_b1")
# The shape of a sparse instruction with half the work of that whose times `GpuSpec.mma` has.
_SPARSE_HALF_WORK = {
    "tensor_fp16": "16816",
    "tensor_bf16": "16816",
    "tensor_tf32": "1688",
    "tensor_int8": "16832",
    "tensor_int4": "16864",
}
_WIDE_DMMA = ("16x8x4", "16x8x8", "16x8x16")  # in the order of `GpuSpec.mma.dmma_wide_...`
# TMA's instructions issue like those of the uniform datapath, but wait for room in their unit.
_HALVES = ("fmalite", "fmaheavy")
_SHARED_PIPES = {"fma": _HALVES, "half": _HALVES, "warpgroup": ("tensor",), "tma": ("uniform",)}
NEEDS_ALL = ("half",)  # ports of which an instruction takes all pipes, and not one of them
_UNIFIED_INTEGER_FROM = 100  # from sm_100 on, integer multiply-adds run in both halves


def port_of(opcode: str, arch: str, modifiers: Collection[str] = ()) -> str:
    """Return the port that `opcode` with these modifiers issues to on `arch` ("sm_90").

    Raises GemmsimError for an opcode that the table lacks.
    """
    row = opcode_row(opcode, modifiers)
    if row.port_from_sm_100 and _number(arch) >= _UNIFIED_INTEGER_FROM:
        return row.port_from_sm_100
    return row.port


def _number(arch: str) -> int:
    digits = "".join(c for c in arch.removeprefix("sm_") if c.isdigit())  # 90 of "sm_90a"
    if not digits:
        raise GemmsimError(f"architecture '{arch}' is not of the form sm_90")
    return int(digits)


def pipe_slots(opcode: str, modifiers: Collection[str], gpu: GpuSpec) -> float:
    """Return for how many issue intervals an instruction occupies its pipe; see `GpuSpec.mma` for the tensor pipe."""
    row = opcode_row(opcode, modifiers)
    if row.port != "tensor":
        return row.slots
    interval = gpu.pipes["tensor"].issue_interval_cycles
    share = gpu.mma.half_work_share if _half_work(row, modifiers) else 1.0
    share *= gpu.mma.half_accumulator_share if "F16" in modifiers else 1.0
    if row.precision == "tensor_fp64":
        return _of_shape(modifiers, gpu.mma.dmma_wide_interval_cycles, gpu.mma.dmma_interval_cycles) / interval
    return share * gpu.mma.imma_interval_cycles / interval if row.precision in _BY_INT8 else share


def matrix_latency_cycles(opcode: str, modifiers: Collection[str], gpu: GpuSpec) -> float:
    """Return the cycles from the issue of a tensor-core instruction to its result."""
    row = opcode_row(opcode, modifiers)
    if row.precision == "tensor_fp64":
        return _of_shape(modifiers, gpu.mma.dmma_wide_latency_cycles, gpu.mma.dmma_latency_cycles)
    if _half_work(row, modifiers):
        return gpu.mma.half_work_latency_cycles
    return gpu.mma.imma_latency_cycles if row.precision in _BY_INT8 else gpu.pipes["tensor"].latency_cycles


def _of_shape(modifiers: Collection[str], wide: tuple[float, float, float], narrow: float) -> float:
    """Return the number of a DMMA's shape: one of `wide`, in the order of _WIDE_DMMA, or that of DMMA.884."""
    return next((cycles for shape, cycles in zip(_WIDE_DMMA, wide, strict=True) if shape in modifiers), narrow)


def _half_work(row: Opcode, modifiers: Collection[str]) -> bool:
    """Return whether the instruction has half the multiply-adds of the one on whose times its own are based.

    A sparse one takes as long as a dense one of half its depth (vendors' peaks for sparse matrices are twice as high).
    """
    if "SP" in modifiers:
        return _SPARSE_HALF_WORK.get(row.precision, "") in modifiers
    return any(modifier in row.half_work for modifier in modifiers)


def multiply_cycles(instruction: Instruction, gpu: GpuSpec) -> float:
    """Return for how many cycles each tensor pipe works on a wgmma, as Nsight Compute counts them."""
    return warpgroup_columns(instruction) / gpu.warpgroup.columns_per_cycle


def memory_opcode(opcode: str) -> MemoryAccess | None:
    """Return how `opcode` accesses memory through L1 or shared memory; None where it does not."""
    return opcode_row(opcode).memory


def port_pipes(port: str, pipes: Collection[str]) -> tuple[str, ...]:
    """Return which of a GPU's `pipes` serve `port`, the preferred one first: none where `port` is "".

    Raises GemmsimError where the GPU lacks a pipe that the port needs.
    """
    if port == "":
        return ()
    if port == "fp16" and "fp16" not in pipes:
        port = "half"
    elif port == "half" and "fmalite" not in pipes and "fp16" in pipes:
        port = "fp16"
    # fmalite first: FP32 work that leaves the heavy half to the integer multiplies loses nothing.
    wanted = _SHARED_PIPES.get(port, (port,))
    found = tuple(name for name in wanted if name in pipes)
    if not found:
        raise GemmsimError(f"the GPU description has no pipe '{port}'; it has {', '.join(sorted(pipes))}")
    return found
