"""Register file write ports: what loads return is written when no instruction writes.

Each of a sub-partition's two banks, even and odd registers, takes one register a cycle. Instructions of fixed latency
come first: what a load returns waits for cycles in which its bank is free, one a register, or one a pair for loads of
64 and 128 bits, which write both banks at once. What has waited too long holds up the issue for a few cycles.

Found on an H200 (own microbenchmark, tests/records/h200_write_ports.json): FFMAs that issue every cycle lose one
issue slot where one instruction in 8 or 16 is an LDS.128 and three where one in 32 is; they lose none to LDS and
LDS.64, and none to LDSM of four matrices, which writes single registers, where their results go to both banks in
turn. How long is waited and how long held were chosen to fit those loops, and are taken to be alike on other GPUs.
Not explained by it: where all results go to one bank, an LDSM.x4 in 8 instructions costs two slots and not one, and
an LDS in 32 three and not none.
"""

from __future__ import annotations

from typing import NamedTuple

from gemmsim.isa.program import Instruction, OperandKind
from gemmsim.sm.pipes import memory_opcode
from gemmsim.sm.registers import two_passes

WRITE_CYCLES = 4  # from issue to the write of a result: the latency of FFMA and of integer arithmetic
RETURN_CYCLES = 3  # from the write of what was loaded to the first issue that may use it: no measurement known
MOST_WAIT_CYCLES = 24  # fitted to the loops named above
HELD_CYCLES = 3  # likewise
_WRITING = ("fma", "fmaheavy", "alu", "fp16", "fp64")


class Writes(NamedTuple):
    """Registers that are written: at a fixed time by an instruction, or as a load returns them. even, odd: of one bank;
    pairs: of both banks at once."""

    even: int
    odd: int
    pairs: int


NONE = Writes(0, 0, 0)


def results_of(instruction: Instruction, port: str) -> Writes:
    """What it writes at a fixed time; NONE of tensor cores, whose results have not been looked at."""
    register = _destination(instruction)
    if port not in _WRITING or register < 0:
        return NONE
    wide = instruction.opcode == "CS2R" and "32" not in instruction.modifiers
    if wide or port == "fp64" or two_passes(instruction):
        return Writes(0, 0, 1)
    return Writes(1 - register % 2, register % 2, 0)


def returns_of(instruction: Instruction) -> Writes:
    """What it writes when its data is there."""
    register, modifiers = _destination(instruction), instruction.modifiers
    memory = memory_opcode(instruction.opcode)
    if memory is None or not memory.load or register < 0:
        return NONE
    if instruction.opcode == "LDSM":
        registers = 4 if "4" in modifiers else 2 if "2" in modifiers else 1
        first, second = (registers + 1) // 2, registers // 2
        return Writes(second, first, 0) if register % 2 else Writes(first, second, 0)
    if "128" in modifiers or "64" in modifiers:
        return Writes(0, 0, 2 if "128" in modifiers else 1)
    return Writes(1 - register % 2, register % 2, 0)


def _destination(instruction: Instruction) -> int:
    first = instruction.operands[:1]
    return first[0].index if first and first[0].kind == OperandKind.REGISTER else -1


class WritePorts:
    """Of one sub-partition."""

    __slots__ = ("_last", "_waiting")

    def __init__(self) -> None:
        self._last = 0  # cycle of the last write that was looked at
        self._waiting: list[list[int]] = []  # ready, even, odd, pairs of what loads still have to write, oldest first

    def expect(self, used: int, returns: Writes) -> None:
        """A load returns registers, the first use of which may issue in cycle `used`."""
        self._waiting.append([used - RETURN_CYCLES, *returns])

    def write(self, now: int, results: Writes) -> int:
        """An instruction issues in cycle `now` and writes `results`; cycles for which nothing may issue behind it."""
        at, cursor, waiting = now + WRITE_CYCLES, self._last + 1, self._waiting
        self._last = at
        if not waiting:
            return 0
        for entry in waiting:  # in the cycles in which nothing was written
            ready, even, odd, pairs = entry
            cursor = max(cursor, ready)
            room = at - cursor
            if room <= 0:
                break
            both = min(room, pairs)
            entry[1:] = max(0, even - (room - both)), max(0, odd - (room - both)), pairs - both
            cursor += min(room, max(even, odd) + pairs)
        even_free, odd_free = not (results.even or results.pairs), not (results.odd or results.pairs)
        for entry in waiting:  # beside what this one writes
            if entry[0] > at or not (even_free or odd_free):
                break
            if entry[3]:
                if even_free and odd_free:
                    entry[3] -= 1
                    even_free = odd_free = False
                continue
            if even_free and entry[1]:
                entry[1] -= 1
                even_free = False
            if odd_free and entry[2]:
                entry[2] -= 1
                odd_free = False
        while waiting and not any(waiting[0][1:]):
            waiting.pop(0)
        return HELD_CYCLES if waiting and at - waiting[0][0] >= MOST_WAIT_CYCLES else 0
