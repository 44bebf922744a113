"""Holds the constant banks of one launch, as the compiled executor reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.launch_data.constant_bank import constant_bank
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.launch_data.grid_workspace import WORKSPACE, place_workspace
from gemmsim.trace.launch_data.module_data import constant_banks, place_globals
from gemmsim.trace.launch_data.parameter_window import place_window
from gemmsim.trace.types import Argument, Launch

_BEYOND = 16  # bytes behind each bank that may be read


class ConstantBanks:
    """The content of all constant banks of a launch.

    symbols  {name of a variable: what it holds, in place of what the source gives it}
    table    uint64 [banks, 2]: the address in this process and the size in bytes of each bank
    """

    def __init__(self, program: Program, launch: Launch, symbols: Mapping[str, Argument], memory: DeviceMemory) -> None:
        self._kernel = program.name
        first = constant_bank(program, launch, tuple(memory.pointers))
        if WORKSPACE in memory.hidden:
            place_workspace(first, program, memory.hidden[WORKSPACE])
        parameters = first.view(np.uint8)
        place_globals(parameters, program, 0, memory.globals_address)
        place_window(first, program, memory)
        self._banks = constant_banks(program, symbols, memory.globals_address, memory.pointers)
        self._banks[0] = parameters.tobytes()
        self._kept = {
            number: np.frombuffer(content + bytes(_BEYOND), np.uint8) for number, content in self._banks.items()
        }
        self.table = np.zeros((max(self._banks) + 1, 2), np.uint64)
        for number, array in self._kept.items():
            self.table[number] = array.ctypes.data, array.nbytes - _BEYOND

    def word(self, bank: int, offset: int) -> int:
        """Return the 32-bit word at a byte offset of a bank. Raises GemmsimError where the bank ends before."""
        data = self._banks.get(bank, b"")
        if offset + 4 > len(data):
            raise GemmsimError(
                f"kernel '{self._kernel}' reads constant bank {bank} at {offset:#x}, "
                f"but the cubin holds {len(data)} bytes of it"
            )
        return int.from_bytes(data[offset : offset + 4], "little")
