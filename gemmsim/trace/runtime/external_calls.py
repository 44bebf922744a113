"""Does the work of the functions that CUDA's device runtime adds to a kernel: printf, assert, and malloc in words.

A kernel calls them by their address, with arguments in registers from R4 on: such is the compiler's calling convention.
They cost no instructions here, although on a GPU they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import INSTRUCTION_BYTES, Program
from gemmsim.support.plurals import plural, verb
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.lower.control import FIRST_ARGUMENT, RETURN_ADDRESS
from gemmsim.trace.runtime.printf import BufferReader, format_printf
from gemmsim.trace.types import Launch

# CUDA keeps as much of what kernels print unless the host asks for more (cudaLimitPrintfFifoSize).
_PRINTED_LIMIT = 1 << 20
_TEXT_BYTES = 4096  # a longer text is cut
_NULL_FORMAT = 0xFFFFFFFF  # what vprintf returns for a null pointer: -1


@dataclass(frozen=True)
class WarpMemory:
    """The memory that the threads of one warp see under generic addresses.

    shared  uint32 [words] of the block
    local   uint32 [words, 32] of the warp's threads
    """

    device: DeviceMemory
    shared: NDArray[np.uint32]
    local: NDArray[np.uint32]

    def read(self, lane: int, address: int, size: int) -> bytes:
        """Return `size` bytes of what thread `lane` sees at an address; fewer where the memory ends before."""
        window, low = address >> 32, address & 0xFFFFFFFF
        if window == words.SHARED_WINDOW:
            return self.shared.tobytes()[low : low + size]
        if window == words.LOCAL_WINDOW:
            return np.ascontiguousarray(self.local[low // 4 : (low + size + 3) // 4, lane]).tobytes()[low % 4 :][:size]
        return self.device.read(address, size)

    def text(self, lane: int, address: int) -> str:
        """Return the text, up to its zero byte, that thread `lane` sees at an address."""
        return self.read(lane, address, _TEXT_BYTES).partition(b"\0")[0].decode("utf-8", "replace")


@dataclass(frozen=True)
class Call:
    """A warp that is about to execute function `name`.

    block   linear id of its block
    active  bit l is set where lane l calls
    rows    uint32 [rows, 32] the warp's registers, from R0 on; the result is written to them
    """

    name: str
    block: int
    warp: int
    active: int
    rows: NDArray[np.uint32]
    memory: WarpMemory

    @property
    def lanes(self) -> list[int]:
        return [lane for lane in range(WARP_LANES) if self.active >> lane & 1]

    def word(self, number: int, lane: int) -> int:
        """Return the 32-bit argument in the register `number` behind the first one."""
        return int(self.rows[FIRST_ARGUMENT + number, lane])

    def pair(self, number: int, lane: int) -> int:
        """Return the 64-bit argument in two registers, the first of which is `number` behind the first one."""
        return self.word(number, lane) | self.word(number + 1, lane) << 32


def call_of(program: Program, function: int, block: int, warp: int, state: BlockState, device: DeviceMemory) -> Call:
    """Make the call of number `function` of `Program.externals` that a warp of a block is about to execute."""
    memory = WarpMemory(device, state.shared, state.local[warp])
    active, rows = int(state.warps[warp, words.ACTIVE]), state.registers[warp].reshape(-1, WARP_LANES)
    return Call(program.externals[function], block, warp, active, rows, memory)


class ExternalCalls:
    """Does the work of one launch's calls.

    silent  whether nothing is printed, because the blocks run only to be compared
    """

    def __init__(self, program: Program, launch: Launch) -> None:
        self._program, self._launch = program, launch
        self.silent = False
        self.forget()

    def forget(self) -> None:
        """Forget what was printed."""
        self._lines: list[str] = []
        self._size, self._dropped, self._calls = 0, 0, 0

    @property
    def printed(self) -> str:
        """What the kernel printed; the last line says how many calls were left out, where any were."""
        calls = f"{self._dropped} more {verb(self._dropped, 'call of printf was', 'calls of printf were')}"
        note = f"[gemmsim: {calls} left out]\n" if self._dropped else ""
        return "".join(self._lines) + note

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the counters of a run in which the kernel called something."""
        if not self._calls:
            return ()
        return (
            f"printf was called {plural(self._calls, 'time')} by warps of the executed blocks: the instructions that "
            "it executes on a GPU are not counted and take no time",
        )

    def serve(self, call: Call) -> str:
        """Do the work of a call and write its result; returns the message with which the kernel stops, or ""."""
        if call.name == "vprintf":
            self._calls += 1
            for lane in call.lanes:
                call.rows[FIRST_ARGUMENT, lane] = self._print(call, lane)
            return ""
        if call.name == "__assertfail":
            return self._assertion(call)
        if call.name == "free" and not any(call.pair(0, lane) for lane in call.lanes):
            return ""
        where = self._where(call, call.lanes[0])
        if call.name in ("malloc", "free"):
            return (
                f"kernel '{self._program.name}' calls {call.name} ({where}): gemmsim has no heap for kernels; "
                "give the kernel an array as an argument instead"
            )
        return f"kernel '{self._program.name}' calls '{call.name}' ({where}), a function that is not in the cubin"

    def _print(self, call: Call, lane: int) -> int:
        at = call.pair(0, lane)
        if not at:
            return _NULL_FORMAT
        if self.silent:
            return 0
        memory, buffer = call.memory, call.pair(2, lane)
        reader = BufferReader(lambda offset, size: memory.read(lane, buffer + offset, size))
        text, count = format_printf(memory.text(lane, at), reader, lambda address: memory.text(lane, address))
        if self._size + len(text) > _PRINTED_LIMIT:
            self._dropped += 1
        else:
            self._lines.append(text)
            self._size += len(text)
        return count

    def _assertion(self, call: Call) -> str:
        """`__assertfail(message, file, line, function, character size)`: see CUDA's crt/device_functions.h."""
        lane = call.lanes[0]
        expression, file, function = (call.memory.text(lane, call.pair(number, lane)) for number in (0, 2, 6))
        others = f" and {plural(len(call.lanes) - 1, 'more thread')} of its warp" if len(call.lanes) > 1 else ""
        x, y, z = self._thread(call, lane)
        return (
            f"{file}:{call.word(4, lane)}: {function}: block {self._block(call.block)}, thread ({x},{y},{z})"
            f"{others}: assertion `{expression}` failed"
        )

    def _where(self, call: Call, lane: int) -> str:
        """Say which instruction calls, by the address to which the call will return."""
        number = int(call.rows[RETURN_ADDRESS, lane]) // INSTRUCTION_BYTES - 1
        known = 0 <= number < len(self._program.instructions)
        sources = self._program.instructions[number].sources if known else ()
        line = f"line {sources[0].line} of {sources[0].file}, " if sources else ""
        return f"{line}block {self._block(call.block)}, warp {call.warp}"

    def _thread(self, call: Call, lane: int) -> tuple[int, int, int]:
        x, y, _ = self._launch.block
        thread = call.warp * WARP_LANES + lane
        return thread % x, thread // x % y, thread // (x * y)

    def _block(self, block: int) -> str:
        x, y, _ = self._launch.grid
        return f"({block % x},{block // x % y},{block // (x * y)})"
