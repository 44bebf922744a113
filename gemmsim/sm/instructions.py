"""Works out what the units of the SM must know of each static instruction of a program: rows of `Instruction`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec, SourcesRead
from gemmsim.isa.matrix import WARPGROUP_WARPS, warpgroup_bytes
from gemmsim.isa.opcodes import Kind as OpcodeKind
from gemmsim.isa.opcodes import Opcode, row_of
from gemmsim.isa.program import Instruction as Decoded
from gemmsim.isa.program import OperandKind, Program
from gemmsim.native.records import dtype_of, fields_of
from gemmsim.sm.operands import (
    NO_READS,
    NO_WRITES,
    bank_cycles,
    late_reads,
    reads,
    results_of,
    returns_of,
    two_passes,
    uniform_rows,
    windows,
)
from gemmsim.sm.pipes import matrix_latency_cycles, memory_opcode, multiply_cycles, pipe_slots, port_of, port_pipes
from gemmsim.sm.spec import WARPGROUPS
from gemmsim.sm.units.instruction import GROUPS, SCOREBOARDS, Bulk, Fence, Instruction, Kind, Reason
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.support.warp import WARP_LANES

_NARROW = {"U8", "S8", "U16", "S16"}  # widths of a load below a word
_KINDS = {
    OpcodeKind.BARRIER: Kind.BARRIER,
    OpcodeKind.WARPGROUP_MEET: Kind.BARRIER,
    OpcodeKind.COPY_GROUP: Kind.COPY_FENCE,
    OpcodeKind.WARPGROUP_MULTIPLY: Kind.MULTIPLY,
    OpcodeKind.BULK_COPY: Kind.BULK,
    OpcodeKind.BULK_GROUP: Kind.BULK,
    OpcodeKind.SPECIAL_REGISTER: Kind.SPECIAL,
}  # for instructions that do not go to memory; those of any other kind are PLAIN
_DRAINING = (OpcodeKind.SCOREBOARD_WAIT, OpcodeKind.WARPGROUP_WAIT)
_GROUP_ENDS = "gsb0"
_BULKS = {"tma_ld": Bulk.LOAD, "tma_st": Bulk.STORE, "tma_red": Bulk.REDUCTION}


@dataclass(frozen=True, slots=True, eq=False)
class InstructionTable:
    """The static instructions of a program, as the units of the SM see them.

    rows   [instructions] one record `units.instruction.Instruction` each
    ports  names of the ports: the `port` of a row is an index into these
    """

    rows: NDArray[np.void]
    ports: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def makes_maps(self) -> bool:
        """Whether the kernel makes tensor maps: it drops them from their cache then."""
        return bool(self.rows["drops_map"].any())

    @property
    def blocks_take_turns(self) -> bool:
        """Whether warps meet at barriers and multiply by themselves. Turns of blocks with wgmma were not measured."""
        kinds = set(self.rows["kind"].tolist())
        return Kind.BARRIER in kinds and Kind.MULTIPLY not in kinds


@cached_by_identity(4)
def instruction_table(
    program: Program, gpu: GpuSpec, register_ports: bool = True, math_behind_barriers: bool = True
) -> InstructionTable:
    """Work out the table of a program. Raises GemmsimError for an opcode without a pipe, or a pipe that the GPU lacks.

    register_ports        False: operands and results do not compete for the ports of the register file
    math_behind_barriers  False: a warp that waits at a barrier issues nothing
    """
    names = [port_of(one.opcode, program.arch, one.modifiers) for one in program.instructions]
    ports = ("lsu", *sorted(set(names) - {"lsu"}))  # "lsu" comes first: its number is MEMORY_PORT
    number = {name: i for i, name in enumerate(ports)}
    nothing: dict[str, float] = dict.fromkeys(fields_of(Instruction), 0)
    rows = []
    for instruction, port in zip(program.instructions, names, strict=True):
        fields = nothing | {"port": number[port]} | _issue(instruction, port, gpu)
        if register_ports:
            fields |= _register_file(instruction, port, gpu)
        else:
            fields |= NO_READS
        fields["passes_barrier"] = math_behind_barriers and _passes_barrier(row_of(instruction), port, gpu)
        rows.append(tuple(fields.values()))
    return InstructionTable(np.array(rows, dtype_of(Instruction)), ports)


def _issue(instruction: Decoded, port: str, gpu: GpuSpec) -> dict[str, float]:
    opcode, control = row_of(instruction), instruction.control
    on_memory = opcode.memory is not None and opcode.memory.space != "shared"
    kind = Kind.MEMORY if port == "lsu" else _KINDS.get(opcode.kind, Kind.PLAIN)
    # A stall count of 0 is not a second issue in the same cycle; the yield hint keeps the warp from issuing in the next
    # cycle, whether or not another one can (Huerta et al., MICRO'25, section 4).
    delay = max(control.stall_cycles, 2 if control.yield_hint else 1)
    if two_passes(instruction):
        delay += gpu.register_file.second_pass_cycles
    latency = _pipe_latency(port, gpu)
    if port == "tensor":
        latency = matrix_latency_cycles(opcode.name, instruction.modifiers, gpu)
    throttle = "LG_THROTTLE" if on_memory else "MIO_THROTTLE" if port == "lsu" else "MATH_PIPE_THROTTLE"
    waits = _wait_mask(instruction)
    scoreboard, most = _drain(instruction) if opcode.kind in _DRAINING else (-1, 0)
    fields: dict[str, float] = {
        "kind": kind,
        "delay": delay,
        "taken_delay": max(delay, round(_pipe_latency("cbu", gpu))),
        "wait_mask": waits,
        "drain_scoreboard": scoreboard,
        "drain_most": most,
        "reads_scoreboards": waits > 0 or scoreboard >= 0,
        "write_scoreboard": -1 if control.write_barrier is None else control.write_barrier,
        "read_scoreboard": -1 if control.read_barrier is None else control.read_barrier,
        "latency_cycles": round(latency),
        "result_reason": Reason["LONG_SCOREBOARD" if on_memory or kind == Kind.COPY_FENCE else "SHORT_SCOREBOARD"],
        "throttle_reason": Reason[throttle],
        "pipe_slots": _slots(instruction, port, gpu),
        "math": port in ("alu", "fmaheavy"),
        "takes_turns": any(gpu.pipes[pipe].warps_take_turns for pipe in port_pipes(port, gpu.pipes)),
    }
    if kind == Kind.MEMORY:
        fields |= _access(instruction, gpu)
    if kind == Kind.BARRIER:
        fields |= _barrier(instruction, gpu)
    if kind == Kind.MULTIPLY:
        fields |= _multiplication(instruction, gpu)
    if kind == Kind.BULK and opcode.memory is not None:
        fields["bulk"] = _BULKS[opcode.memory.operation]
    if opcode.kind == OpcodeKind.MEMORY_FENCE:
        fields |= _fence(instruction, gpu)
    fields["drops_map"] = opcode.kind == OpcodeKind.MAP_CACHE and "PF" not in instruction.modifiers
    if opcode.kind == OpcodeKind.MBARRIER:
        fields["after_copies"] = opcode.name == "ARRIVES"
        fields["result_reason"] = Reason["LONG_SCOREBOARD"]
    return fields | {"syncs": has_syncs(instruction), "lowers_clock": lowers_clock(instruction)}


def lowers_clock(instruction: Decoded) -> bool:
    """Return whether the GPU lowers the SM clock while such instructions execute: matrix instructions, but not FP64's.

    Found on H200s (own microbenchmarks, tests/records/h200_clock.json): HMMA and IMMA run at one clock within 4 %,
    however often they issue and whatever loads stand beside them, DMMA at that of kernels without matrix instructions.
    """
    precision = row_of(instruction).precision
    return precision.startswith("tensor_") and precision != "tensor_fp64"


def has_syncs(instruction: Decoded) -> bool:
    """Return whether a trace tells what each execution of an instruction does: at phases of mbarriers, at a barrier of
    the block whose number or count registers hold, or in bulk; and whether a thread executes a memory fence.
    """
    kind, modifiers = row_of(instruction).kind, instruction.modifiers
    if kind == OpcodeKind.BARRIER:
        operands = [o for o in instruction.operands if o.kind not in (OperandKind.PREDICATE, OperandKind.IMMEDIATE)]
        return instruction.opcode == "BAR" and bool(operands)
    if kind == OpcodeKind.MBARRIER:
        return instruction.opcode == "ARRIVES" or "ARRIVE" in modifiers or "PHASECHK" in modifiers
    return kind in (OpcodeKind.BULK_COPY, OpcodeKind.MEMORY_FENCE)


def _multiplication(instruction: Decoded, gpu: GpuSpec) -> dict[str, float]:
    unit, (of_a, of_b) = gpu.warpgroup, warpgroup_bytes(instruction)
    cycles = multiply_cycles(instruction, gpu)
    fields: dict[str, float] = {
        "operand_cycles": (of_a + of_b) / unit.operand_bytes_per_cycle,
        "first_operand_cycles": of_a / unit.operand_bytes_per_cycle,
        "multiply_cycles": max(unit.least_cycles, cycles) if cycles else 0.0,
        "result_reason": Reason["GMMA"],
    }
    if any(operand.name == _GROUP_ENDS for operand in instruction.operands):
        if instruction.control.write_barrier is not None:
            raise GemmsimError(f"'{instruction.text}' at {instruction.offset:#x}: a group's end with a scoreboard")
        fields["write_scoreboard"] = GROUPS
    return fields


def _register_file(instruction: Decoded, port: str, gpu: GpuSpec) -> dict[str, float]:
    fields: dict[str, float] = dict(reads(instruction, port, gpu.register_file))
    fields["window"], fields["uniform_window"] = windows(instruction, port, gpu.register_file)
    if port == "tensor":
        taken = bank_cycles(instruction, _slots(instruction, port, gpu) * gpu.pipes["tensor"].issue_interval_cycles)
        fields |= {"reads_registers": int(taken > 0), "bank_cycles": taken, "window": max(taken, fields["window"])}
    fields["second_pass"] = gpu.register_file.second_pass_cycles if two_passes(instruction) else 0
    fields |= late_reads(instruction, port)
    for time, writes in (("results", results_of(instruction, port)), ("returns", returns_of(instruction))):
        if writes != NO_WRITES:
            fields |= {f"even_{time}": writes.even, f"odd_{time}": writes.odd, f"pair_{time}": writes.pairs}
    return fields


def _passes_barrier(opcode: Opcode, port: str, gpu: GpuSpec) -> bool:
    pipes = port_pipes(port, gpu.pipes)
    return bool(pipes) and opcode.passes_barrier and all(gpu.pipes[pipe].passes_barrier for pipe in pipes)


def _slots(instruction: Decoded, port: str, gpu: GpuSpec) -> float:
    if port == "warpgroup":
        return multiply_cycles(instruction, gpu) / gpu.pipes["tensor"].issue_interval_cycles
    slots = pipe_slots(instruction.opcode, instruction.modifiers, gpu)
    if port != "uniform":
        return slots
    # UIMAD UR29, UR4, UR15, UR8 with USEL takes 5 cycles: the datapath waits for its third row (own microbenchmark,
    # H200).
    rows = uniform_rows(instruction, gpu.register_file)
    return max(slots, rows / gpu.register_file.uniform_read_window_cycles)


def _pipe_latency(port: str, gpu: GpuSpec) -> float:
    if port == "":
        return 1.0
    return gpu.pipes[port_pipes(port, gpu.pipes)[0]].latency_cycles


def _access(instruction: Decoded, gpu: GpuSpec) -> dict[str, float]:
    """Work out the fields of `Instruction` that describe the access of a memory instruction."""
    memory = memory_opcode(instruction.opcode)
    if memory is None:  # SHFL and CCTL use the path but have no addresses; their latency is much like a shared load's
        shuffles = row_of(instruction).kind == OpcodeKind.SHUFFLE
        latency = gpu.shared.load_latency_cycles[0] + (gpu.shared.shuffle_longer_cycles if shuffles else 0.0)
        return {
            "writes_registers": 1,
            "hit_latency_cycles": latency,
            "narrow_latency_cycles": latency,
            "sources_read_cycles": gpu.sources_read.shared_load_cycles[0],
            "lane_groups": 1,
            "shared_load": 1,
        }
    modifiers = instruction.modifiers
    if row_of(instruction).kind == OpcodeKind.MATRIX_ROWS:  # number of 8x8 matrices: 1, 2 or 4
        width = 2 if "4" in modifiers else 1 if "2" in modifiers else 0
    else:
        width = 2 if "128" in modifiers else 1 if "64" in modifiers else 0
    shared = memory.space == "shared"
    fields: dict[str, float] = {}
    if memory.space == "generic":  # what the addresses reach is known at each access only
        fields = {
            "generic": 1,
            "shared_latency_cycles": gpu.shared.load_latency_cycles[width],
            "shared_narrow_cycles": gpu.shared.load_latency_cycles[0],
            "shared_sources_cycles": _sources_read(gpu.sources_read, True, memory.load, memory.copy)[width],
        }
    return fields | {
        "writes_registers": memory.load,
        "copies": memory.copy,
        "past_l1": memory.copy and "BYPASS" in modifiers,
        "fill_cycles": gpu.l1.narrow_fill_cycles if memory.load and _NARROW & set(modifiers) else 0.0,
        "copy_cycles": gpu.l1.copy_cycles[width] if memory.copy else 0,
        "hit_latency_cycles": (gpu.shared.load_latency_cycles if shared else gpu.l1.hit_latency_cycles)[width],
        "narrow_latency_cycles": gpu.shared.load_latency_cycles[0] if shared and memory.load else 0.0,
        "sources_read_cycles": _sources_read(gpu.sources_read, shared, memory.load, memory.copy)[width],
        "lane_groups": 1 if row_of(instruction).kind == OpcodeKind.MATRIX_ROWS else 1 << width,
        "shared_load": shared and memory.load,
    }


def _sources_read(cycles: SourcesRead, shared: bool, load: bool, copy: bool) -> tuple[int, int, int]:
    if copy:
        return cycles.copy_cycles
    if shared:
        return cycles.shared_load_cycles if load else cycles.shared_store_cycles
    return cycles.global_load_cycles if load else cycles.global_store_cycles


def _wait_mask(instruction: Decoded) -> int:
    mask = instruction.control.wait_mask
    if (
        row_of(instruction).kind == OpcodeKind.SCOREBOARD_WAIT
    ):  # DEPBAR.LE SB0, 0x1, {2,1} waits for scoreboards 1 and 2 too
        for operand in instruction.operands:
            mask |= operand.value if operand.name == "set" else 0
    return mask & ((1 << SCOREBOARDS) - 1)


def _drain(instruction: Decoded) -> tuple[int, int]:
    """Return the scoreboard that a DEPBAR drains (-1: it names none), and how many operations may stay outstanding.

    For `DEPBAR.LE SB0, 0x1` that is (0, 1), for `WARPGROUP.DEPBAR.LE gsb0, 0x1` (GROUPS, 1).
    """
    scoreboard, most = -1, 0
    for operand in instruction.operands:
        if operand.name == _GROUP_ENDS:
            scoreboard = GROUPS
        elif operand.kind == OperandKind.SPECIAL and operand.name.startswith("SB"):
            scoreboard = int(operand.name[2:])
        elif operand.kind == OperandKind.IMMEDIATE and operand.name != "set":
            most = operand.value
    return scoreboard, most


def _fence(instruction: Decoded, gpu: GpuSpec) -> dict[str, float]:
    if "CTA" in instruction.modifiers:
        return {"fence": Fence.BLOCK, "fence_cycles": gpu.memory_fence.block_cycles}
    if "SYS" in instruction.modifiers:
        return {"fence": Fence.SYSTEM, "fence_cycles": gpu.memory_fence.system_cycles}
    return {"fence": Fence.GPU, "fence_cycles": gpu.memory_fence.gpu_cycles}


def _barrier(instruction: Decoded, gpu: GpuSpec) -> dict[str, float]:
    """Work out the fields of a barrier. That of a cluster is timed as one more of the block; that whose number or
    threads are in a register cannot be timed. Each warpgroup has one of its own."""
    if instruction.opcode == "UCGABAR_WAIT":
        return {"barrier": gpu.sm.max_barriers_per_block + WARPGROUPS, "barrier_warps": 0, "barrier_waits": True}
    if row_of(instruction).kind == OpcodeKind.WARPGROUP_MEET:
        named, warps = gpu.sm.max_barriers_per_block, WARPGROUP_WARPS
        return {"barrier": named, "barrier_warps": warps, "barrier_waits": True, "of_warpgroup": True}
    numbers = [o.value for o in instruction.operands if o.kind == OperandKind.IMMEDIATE]
    known = not has_syncs(instruction)  # else each execution says what its registers hold
    return {
        "barrier": numbers[0] if known else 0,
        "barrier_warps": -(-numbers[1] // WARP_LANES) if known and len(numbers) > 1 else 0,
        "barrier_waits": "ARV" not in instruction.modifiers,
    }
