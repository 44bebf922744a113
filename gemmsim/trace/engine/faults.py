"""Makes the message for an execution that failed: one line that names instruction, source line, block and warp."""

from __future__ import annotations

from numpy.typing import NDArray

from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.support.plurals import plural
from gemmsim.trace import micro, words
from gemmsim.trace.launch_data.address_names import owner_of
from gemmsim.trace.launch_data.constant_bank import stack_bytes
from gemmsim.trace.launch_data.device_memory import DeviceMemory

_BAD_COPIES = {
    micro.NO_MAP: "there is no tensor map at {address:#x}, which is outside of all arrays and parameters",
    micro.OTHER_RANK: "the tensor map at {address:#x} does not have as many dimensions as the instruction copies",
    micro.INTERLEAVED: "the tensor map at {address:#x} has an interleaved layout, which gemmsim does not copy",
    micro.FILLED: "the tensor map at {address:#x} fills with NaN, whose bits are not known to gemmsim",
    micro.CONVERTED: "TMA converts to tf32 or flushes (f32.ftz) what is at {address:#x}, which changes it: not here",
    micro.BEYOND: "a bulk copy reaches address {address:#x}, which is {owner}",
    micro.UNALIGNED: "a bulk copy needs a multiple of 16 as address in global memory, not {address:#x}",
    micro.OUTSIDE_SHARED: "a bulk copy at address {address:#x} of shared memory is not aligned, or leaves its "
    "{shared_bytes} bytes",
    micro.ODD_PLACE: "a tile's innermost coordinate must be at a multiple of 16 bytes, and element {address} is not: "
    "the GPU stops there with an illegal instruction",
    micro.NEGATIVE_PLACE: "a store of a tile begins {address} elements before the array: an H200 stops there with an "
    "illegal instruction",
    micro.NO_BARRIER: "there can be no mbarrier at address {address:#x} of shared memory",
}


def describe(
    status: int, counters: NDArray, program: Program, block: int, budget: int, memory: DeviceMemory, shared_bytes: int
) -> str:
    """Return the message for the status with which `run_block` stopped. `counters[FAULT_...]` say where it stopped."""
    at = words.FAULT_LANE if status == words.LOST else words.FAULT_INSTRUCTION
    instruction = program.instructions[int(counters[at])]
    source = program.line_of(instruction)
    line = f", line {source.line} of {source.file}" if source else ""
    warp = counters[words.FAULT_WARP]
    where = f"block {block}, warp {warp}, '{instruction.text}' at {instruction.offset:#06x}{line}"
    address = int(counters[words.FAULT_ADDRESS]) & 0xFFFFFFFFFFFFFFFF
    lane = int(counters[words.FAULT_LANE])
    if status == words.BUDGET:
        executed = plural(budget, "warp instruction", str(budget))
        return (
            f"kernel '{program.name}' is still running after {executed} ({where}): "
            "it may never end; raise --max-instructions if it should"
        )
    row = row_of(instruction)
    if status == words.OUT_OF_BOUNDS and row.memory is not None and row.memory.space == "local":
        return (
            f"lane {lane} leaves the {stack_bytes(program)} bytes of its stack (local memory): address {address:#x} "
            f"({where})"
        )
    if status == words.BAD_COPY:
        owner = owner_of(memory, program, address)
        return f"{_BAD_COPIES[lane].format(address=address, owner=owner, shared_bytes=shared_bytes)} ({where})"
    messages = {
        words.OUT_OF_BOUNDS: f"out-of-bounds access by lane {lane}: address {address:#x} is "
        f"{owner_of(memory, program, address)}",
        words.MISALIGNED: f"misaligned access by lane {lane}: address {address:#x}",
        words.SHARED_RANGE: f"lane {lane} leaves the {shared_bytes} bytes of shared memory: address {address:#x}",
        words.ENDED_BLOCK: "an access to the shared memory of a block of the cluster that has ended",
        words.OUT_OF_TURN: "a thread arrives twice at the cluster's barrier without a wait between, or waits before it "
        "arrives",
        words.DEADLOCK: "threads wait for each other forever (a barrier that not all of them reach)",
        words.TRAP: "the kernel traps (__trap(), or where the compiler saw an access through a null pointer)",
        words.LOST: f"a call or return goes to address {address:#x}, where there is no function",
        words.PARTIAL_WARP: "all 32 lanes must execute a matrix instruction together, but some are inactive",
    }
    return f"{messages[status]} ({where})"
