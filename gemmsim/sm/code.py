"""What the issue stage must know of each static instruction, worked out once: the inner loop only unpacks tuples."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Instruction, OperandKind, Program
from gemmsim.sm.pipes import matrix_latency_cycles, memory_opcode, pipe_slots, port_of, port_pipes
from gemmsim.sm.registers import (
    NO_OPERANDS,
    SECOND_PASS_CYCLES,
    UNIFORM_WINDOW_CYCLES,
    Operands,
    operands_of,
    two_passes,
    uniform_rows,
    window_cycles,
)
from gemmsim.sm.types import STALL_REASONS
from gemmsim.sm.write_ports import NONE, Writes, results_of, returns_of
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace.types import WARP_LANES

Reason = IntEnum("Reason", {name.upper(): index for index, name in enumerate(STALL_REASONS)})  # type: ignore[misc]

SCOREBOARDS = 6


# Ports that warps of a block take turns with (own microbenchmark on an H200: six of eight warps of a sub-partition that
# keep the tensor cores busy advance alike).
ROTATING = ("tensor",)
# Ports whose instructions issue while their warp waits at a barrier (BAR.SYNC): what fails to is the first that needs
# memory, branches, reads constants or special registers. Found in an H200's samples of where warps of the ladder wait
# for barriers: 17 instructions passed in blocktile_1d, 28 HMMA and more in tensorcore_double_buffered; UMOV did not.
# Taken to be alike on other GPUs.
PASSING = ("fma", "fmaheavy", "alu", "fp16", "fp64", "tensor", "uniform")
_NOT_PASSING = ("UMOV", "ULDC")


class Kind(IntEnum):
    """What happens when an instruction issues."""

    PLAIN = 0
    MEMORY = 1  # goes through the MIO queue and the SM's data stage
    BARRIER = 2  # waits for the other warps of the block
    COPY_FENCE = 3  # LDGDEPBAR: its scoreboard is released when the warp's earlier LDGSTS have arrived


# Cycles from issue until the sources of a memory instruction are read, 32-, 64- and 128-bit, on an idle SM: the
# write-after-read distances with regular registers of Huerta et al., MICRO'25, table 2 (Ampere).
_SOURCES_READ = {
    "global load": (11, 11, 11),
    "global store": (14, 16, 20),
    "shared load": (9, 9, 9),
    "shared store": (12, 14, 18),
    "copy": (13, 13, 13),
}


class Access(NamedTuple):
    """A memory instruction.

    load, copy       whether it writes registers; whether it copies from global to shared memory (LDGSTS)
    latency          load to use, where it hits L1 or is in shared memory, cycles
    narrow_latency   of a 32-bit load from shared memory that takes one wavefront; 0 of others
    sources_read     cycles from issue until its registers may be overwritten
    base_wavefronts  of a conflict-free access of its width: `latency` contains them
    shared_load      whether it passes the address unit at a shared load's rate
    """

    load: bool
    copy: bool
    latency: float
    narrow_latency: float
    sources_read: int
    base_wavefronts: int
    shared_load: bool


NO_ACCESS = Access(False, False, 0.0, 0.0, 0, 0, False)


class Issue(NamedTuple):
    """One static instruction.

    delay, taken_delay  cycles to the warp's next issue, if it continues below or elsewhere
    waits               scoreboards that must be free before it issues
    drain_to            (scoreboard, n) of a DEPBAR: at most n operations may be outstanding on that scoreboard; None
    write, read         scoreboards it holds until its result arrives and until its sources are read; None
    latency             cycles to its result where it is not a memory instruction
    result_reason       stall reason of a warp that waits for its result
    throttle_reason     stall reason of a warp that waits for its port
    access              of Kind.MEMORY, else NO_ACCESS
    barrier             of Kind.BARRIER: (barrier number, warps expected or 0 for the whole block, whether it waits)
    slots               issue intervals of its pipe that it occupies
    operands, windows   what it reads through the register ports, and within how many cycles: see `registers`
    rotates             whether warps take turns with it, instead of the youngest first
    results, returns    what it writes at a fixed time, and when what it loads is there: see `write_ports`
    passes_barrier      whether it may issue while the barrier that its warp has come to is not open yet
    """

    port: str
    kind: Kind
    delay: int
    taken_delay: int
    waits: tuple[int, ...]
    drain_to: tuple[int, int] | None
    write: int | None
    read: int | None
    latency: float
    result_reason: int
    throttle_reason: int
    access: Access
    barrier: tuple[int, int, bool]
    slots: float
    operands: Operands
    windows: tuple[int, int]
    rotates: bool
    passes_barrier: bool
    results: Writes
    returns: Writes


@cached_by_identity(4)
def issue_table(
    program: Program, gpu: GpuSpec, register_ports: bool = True, math_behind_barriers: bool = True
) -> tuple[Issue, ...]:
    """One row an instruction. Raises GemmsimError for an opcode without a pipe, or a pipe that the GPU lacks."""
    rows = tuple(_issue(instruction, program.arch, gpu) for instruction in program.instructions)
    if not register_ports:
        rows = tuple(row._replace(operands=NO_OPERANDS, results=NONE, returns=NONE) for row in rows)
    return rows if math_behind_barriers else tuple(row._replace(passes_barrier=False) for row in rows)


def _issue(instruction: Instruction, arch: str, gpu: GpuSpec) -> Issue:
    opcode, control = instruction.opcode, instruction.control
    port = port_of(opcode, arch)
    memory = memory_opcode(opcode)
    on_memory = memory is not None and memory.space != "shared"
    # A stall count of 0 is not a second issue in the same cycle; the yield hint keeps the warp from issuing in the next
    # cycle, whether or not another one can (Huerta et al., MICRO'25, section 4).
    delay = max(control.stall_cycles, 2 if control.yield_hint else 1)
    if two_passes(instruction):
        delay += SECOND_PASS_CYCLES
    kind = Kind.PLAIN
    if port == "lsu":
        kind = Kind.MEMORY
    elif opcode == "BAR":
        kind = Kind.BARRIER
    elif opcode == "LDGDEPBAR":
        kind = Kind.COPY_FENCE
    throttle = "LG_THROTTLE" if on_memory else "MIO_THROTTLE" if port == "lsu" else "MATH_PIPE_THROTTLE"
    return Issue(
        port=port,
        kind=kind,
        delay=delay,
        taken_delay=max(delay, round(_pipe_latency("cbu", gpu))),
        waits=_waits(instruction),
        drain_to=_drain_to(instruction) if opcode == "DEPBAR" else None,
        write=control.write_barrier,
        read=control.read_barrier,
        latency=matrix_latency_cycles(opcode, instruction.modifiers, gpu)
        if port == "tensor"
        else _pipe_latency(port, gpu),
        result_reason=Reason["LONG_SCOREBOARD"] if on_memory or kind == Kind.COPY_FENCE else Reason["SHORT_SCOREBOARD"],
        throttle_reason=Reason[throttle],
        access=_access(instruction, gpu) if kind == Kind.MEMORY else NO_ACCESS,
        barrier=_barrier(instruction) if kind == Kind.BARRIER else (0, 0, False),
        slots=_slots(instruction, port, gpu),
        operands=operands_of(instruction, port),
        windows=window_cycles(instruction, port),
        rotates=port in ROTATING,
        passes_barrier=port in PASSING and opcode not in _NOT_PASSING,
        results=results_of(instruction, port),
        returns=returns_of(instruction),
    )


def _slots(instruction: Instruction, port: str, gpu: GpuSpec) -> float:
    slots = pipe_slots(instruction.opcode, instruction.modifiers, gpu)
    # UIMAD UR29, UR4, UR15, UR8 with USEL takes 5 cycles: the datapath waits for its third row (own microbenchmark,
    # H200).
    return max(slots, uniform_rows(instruction) / UNIFORM_WINDOW_CYCLES) if port == "uniform" else slots


def _pipe_latency(port: str, gpu: GpuSpec) -> float:
    if port == "":
        return 1.0
    return gpu.pipes[port_pipes(port, gpu.pipes)[0]].latency_cycles


def _access(instruction: Instruction, gpu: GpuSpec) -> Access:
    memory = memory_opcode(instruction.opcode)
    if memory is None:  # SHFL and CCTL use the path but have no addresses; their latency is taken to be a shared load's
        latency = gpu.shared.load_latency_cycles[0]
        return Access(True, False, latency, latency, _SOURCES_READ["shared load"][0], 1, True)
    modifiers = instruction.modifiers
    if instruction.opcode in ("LDSM", "STSM"):  # number of 8x8 matrices: 1, 2 or 4
        width = 2 if "4" in modifiers else 1 if "2" in modifiers else 0
    else:
        width = 2 if "128" in modifiers else 1 if "64" in modifiers else 0
    shared = memory.space == "shared"
    latency = (gpu.shared.load_latency_cycles if shared else gpu.l1.hit_latency_cycles)[width]
    row = "copy" if memory.copy else f"{'shared' if shared else 'global'} {'load' if memory.load else 'store'}"
    narrow = gpu.shared.load_latency_cycles[0] if shared and memory.load else 0.0
    sources_read = _SOURCES_READ[row][width]
    return Access(memory.load, memory.copy, latency, narrow, sources_read, 1 << width, shared and memory.load)


def _waits(instruction: Instruction) -> tuple[int, ...]:
    mask = instruction.control.wait_mask
    if instruction.opcode == "DEPBAR":  # DEPBAR.LE SB0, 0x1, {2,1} waits for scoreboards 1 and 2 too
        for operand in instruction.operands:
            mask |= operand.value if operand.name == "set" else 0
    return tuple(s for s in range(SCOREBOARDS) if mask >> s & 1)


def _drain_to(instruction: Instruction) -> tuple[int, int] | None:
    """(0, 1) of `DEPBAR.LE SB0, 0x1`."""
    scoreboard, bound = None, 0
    for operand in instruction.operands:
        if operand.kind == OperandKind.SPECIAL and operand.name.startswith("SB"):
            scoreboard = int(operand.name[2:])
        elif operand.kind == OperandKind.IMMEDIATE and operand.name != "set":
            bound = operand.value
    return None if scoreboard is None else (scoreboard, bound)


def _barrier(instruction: Instruction) -> tuple[int, int, bool]:
    numbers = [o.value for o in instruction.operands if o.kind == OperandKind.IMMEDIATE]
    if not numbers:
        at = f"'{instruction.text}' at {instruction.offset:#x}"
        raise GemmsimError(f"barrier numbers in registers are not modelled: {at}")
    warps = -(-numbers[1] // WARP_LANES) if len(numbers) > 1 else 0
    return numbers[0], warps, "ARV" not in instruction.modifiers
