"""Makes the message for an execution that failed: one line that names instruction, source line, block and warp."""

from __future__ import annotations

from numpy.typing import NDArray

from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.trace import words
from gemmsim.trace.launch_data.address_names import owner_of
from gemmsim.trace.launch_data.constant_bank import stack_bytes
from gemmsim.trace.launch_data.device_memory import DeviceMemory


def describe(
    status: int, counters: NDArray, program: Program, block: int, budget: int, memory: DeviceMemory, shared_bytes: int
) -> str:
    """Return the message for the status with which `run_block` stopped. `counters[FAULT_...]` say where it stopped."""
    at = words.FAULT_LANE if status == words.LOST else words.FAULT_INSTRUCTION
    instruction = program.instructions[int(counters[at])]
    line = f", line {instruction.sources[0].line} of {instruction.sources[0].file}" if instruction.sources else ""
    warp = counters[words.FAULT_WARP]
    where = f"block {block}, warp {warp}, '{instruction.text}' at {instruction.offset:#06x}{line}"
    address = int(counters[words.FAULT_ADDRESS]) & 0xFFFFFFFFFFFFFFFF
    lane = int(counters[words.FAULT_LANE])
    if status == words.BUDGET:
        return (
            f"kernel '{program.name}' is still running after {budget} warp instructions ({where}): "
            "it may never end; raise --max-instructions if it should"
        )
    row = row_of(instruction)
    if status == words.OUT_OF_BOUNDS and row.memory is not None and row.memory.space == "local":
        return (
            f"lane {lane} leaves the {stack_bytes(program)} bytes of its stack (local memory): address {address:#x} "
            f"({where})"
        )
    messages = {
        words.OUT_OF_BOUNDS: f"out-of-bounds access by lane {lane}: address {address:#x} is "
        f"{owner_of(memory, program, address)}",
        words.MISALIGNED: f"misaligned access by lane {lane}: address {address:#x}",
        words.SHARED_RANGE: f"lane {lane} leaves the {shared_bytes} bytes of shared memory: address {address:#x}",
        words.DEADLOCK: "threads wait for each other forever (a barrier that not all of them reach)",
        words.TRAP: "the kernel traps (a failed assertion)",
        words.LOST: f"a call or return goes to address {address:#x}, where there is no function",
        words.PARTIAL_WARP: "all 32 lanes must execute a matrix instruction together, but some are inactive",
    }
    return f"{messages[status]} ({where})"
