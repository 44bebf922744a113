"""Provides `Context`, with which lowering functions allocate rows of a warp's state and emit micro-operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import OPCODES
from gemmsim.isa.program import ZERO, Instruction, Operand, OperandKind, Program
from gemmsim.isa.semantics.operations import load
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.gaps import UnsupportedError, unsupported

ALL = 0xFFFFFFFF
UNIFORM_REGISTERS = 64 + 192  # sm_100 and later address up to 255
TEMPORARIES = 16
CONVERGENCE_BARRIERS = 16
_SIGN = 0x80000000
# Offset in constant bank 0 of the number of SMs, and the first base of parameters of the layout that sm_100 introduced
_SMS_AT, _NEW_LAYOUT_FROM = {False: 0x10C, True: 0x2D0}, 0x380

OP_NUMBER = {name: number for number, name in enumerate(load())}
CONTROL_NUMBER = {name: len(OP_NUMBER) + number for number, name in enumerate(micro.CONTROL)}


@dataclass(frozen=True, slots=True)
class Constant:
    """A row of a warp's state that holds a word of a constant bank. It is filled in when the launch is known."""

    row: int
    bank: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A value that a micro-operation reads: (row & keep) ^ flip."""

    row: int
    keep: int = ALL
    flip: int = 0


@dataclass(frozen=True)
class MicroProgram:
    """A program as micro-operations (`gemmsim.trace.micro`).

    code        uint32 [micro-operations, micro.COLUMNS]
    start       int32 [instructions + 1]: the first micro-operation of each instruction; last, how many there are in all
    rows        number of rows of a warp's state; other fields name a row by its number
    ones        the row of all ones (PT)
    accesses    number of memory operations
    constants   rows to fill from constant banks at launch
    literals    (row, the word that fills it) of each immediate
    specials    {name of a special register: its row}
    warp_rows   rows that all paths of a warp share: uniform registers and uniform predicates
    path_rows   rows that decide where paths of a warp meet and go on
    """

    code: NDArray[np.uint32]
    start: NDArray[np.int32]
    rows: int
    ones: int
    accesses: int
    constants: tuple[Constant, ...]
    literals: tuple[tuple[int, int], ...]
    specials: dict[str, int]
    warp_rows: tuple[range, ...]
    path_rows: range


def _most_registers(program: Program) -> int:
    """Return the most registers that a thread of the program may have, which setmaxnreg can raise."""
    asked = [
        operand.value
        for instruction in program.instructions
        if instruction.opcode == "USETMAXREG"
        for operand in instruction.operands
        if operand.kind == OperandKind.IMMEDIATE
    ]
    return max(program.registers, 1, *asked)


class Context:
    """Allocates the rows of one program and collects its micro-operations.

    instruction  the instruction that is being lowered
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code: list[list[int]] = []  # rows of micro.COLUMNS words
        self.registers = _most_registers(program) + 8
        self.uniform_base = self.registers
        self.predicate_base = self.uniform_base + UNIFORM_REGISTERS
        self.uniform_predicate_base = self.predicate_base + 8
        self.zero = self.uniform_predicate_base + 8  # sixteen rows: a matrix fragment read from RZ is zero throughout
        self.ones = self.zero + 16
        self.sink = self.ones + 1  # eight rows that take what is written to RZ
        self.temporary = self.sink + 8  # rows that are used within one instruction
        self.barrier_base = self.temporary + TEMPORARIES
        self.resume = self.barrier_base + CONVERGENCE_BARRIERS  # where a thread goes on after a collective instruction
        self.next_row = self.resume + 1
        self.accesses = 0
        self.constants: dict[tuple[int, int, int], int] = {}
        self.literals: dict[tuple[int, ...], int] = {}
        self.specials: dict[str, int] = {}
        self.counters: dict[str, int] = {}
        self.instruction: Instruction = program.instructions[0]
        self._guard: Source | None = None  # replaces the instruction's own guard, see `guarded`

    def unsupported(self, what: str) -> UnsupportedError:
        return unsupported(what, self.instruction, self.program)

    def modifiers(self, *allowed: str) -> set[str]:
        """Return the instruction's modifiers. Raises UnsupportedError for one that is not among `allowed`."""
        modifiers = set(self.instruction.modifiers)
        if extra := modifiers - set(allowed):
            raise self.unsupported(f"modifier .{sorted(extra)[0]}")
        return modifiers

    @property
    def operation(self) -> str:
        """The name of the micro-operation called like the opcode without the U of a uniform form: "ffma" for UFFMA."""
        name = self.instruction.opcode
        return (name[1:] if OPCODES[name].port == "uniform" else name).lower()

    # Rows

    def _allocate(self, count: int) -> int:
        row = self.next_row
        self.next_row += count
        return row

    def constant(self, bank: int, offset: int, words: int) -> int:
        base = self.program.parameter_base
        if (bank, offset) == (0, _SMS_AT[self.program.usual_parameter_base >= _NEW_LAYOUT_FROM]) and offset < base:
            raise self.unsupported("the number of SMs (%nsmid), which is not known when a kernel is executed,")
        key = (bank, offset, words)
        if key not in self.constants:
            self.constants[key] = self._allocate(words)
        return self.constants[key]

    def literal(self, *words: int) -> int:
        if all(w == 0 for w in words):
            return self.zero
        key = tuple(w & ALL for w in words)
        if key not in self.literals:
            self.literals[key] = self._allocate(len(key))
        return self.literals[key]

    def special(self, name: str) -> int:
        if name not in self.specials:
            self.specials[name] = self._allocate(1)
        return self.specials[name]

    def counter(self, name: str) -> int:
        """Return the first of two rows that hold a 64-bit number of a warp, which starts at 0 in each block."""
        if name not in self.counters:
            self.counters[name] = self._allocate(2)
        return self.counters[name]

    def row(self, operand: Operand, words: int = 1) -> int:
        """Return the row that the operand reads, or the first row of an operand of several `words`."""
        kind = operand.kind
        if kind in (OperandKind.REGISTER, OperandKind.UNIFORM_REGISTER):
            if operand.index == ZERO:
                return self.zero
            return operand.index + (self.uniform_base if kind == OperandKind.UNIFORM_REGISTER else 0)
        if kind == OperandKind.BARRIER:
            return self.barrier_base + operand.index
        if kind == OperandKind.CONSTANT:
            if operand.index != ZERO or operand.uniform != ZERO:
                raise self.unsupported("indexed constant as an operand")
            return self.constant(operand.bank, operand.value, words)
        if kind == OperandKind.IMMEDIATE and operand.bank:  # half an address, which is known at launch
            if words != 1:
                raise self.unsupported("address")
            return self.constant(operand.bank, operand.value, words)
        if kind == OperandKind.IMMEDIATE:
            if words == 2:
                return self.literal(operand.value, operand.value >> 32)
            return self.literal(operand.value)
        if kind == OperandKind.SPECIAL and operand.name in ("SRZ", "PR"):
            return self.zero
        raise self.unsupported(f"operand kind {kind.value}")

    def result(self, operand: Operand) -> int:
        """Return the row to write for an operand that is a destination."""
        if operand.index == ZERO:
            return self.sink
        bases = {
            OperandKind.REGISTER: 0,
            OperandKind.UNIFORM_REGISTER: self.uniform_base,
            OperandKind.PREDICATE: self.predicate_base,
            OperandKind.UNIFORM_PREDICATE: self.uniform_predicate_base,
            OperandKind.BARRIER: self.barrier_base,
        }
        if operand.kind not in bases:
            raise self.unsupported(f"destination of kind {operand.kind.value}")
        return bases[operand.kind] + operand.index

    # Sources

    def bits(self, operand: Operand) -> Source:
        """Make a 32-bit integer source of an operand. A negated operand becomes its complement, see `negations`."""
        if operand.absolute or operand.suffix:
            raise self.unsupported(f"operand modifier '{operand.suffix or '|x|'}'")
        return Source(self.row(operand), ALL, ALL if operand.negate or operand.invert else 0)

    def wide(self, operand: Operand) -> Source:
        """Make a 64-bit integer source of an operand. A negated operand becomes its complement, see `negations`."""
        if operand.absolute or operand.suffix not in ("", "64"):
            raise self.unsupported(f"operand modifier '{operand.suffix or '|x|'}'")
        return Source(self.row(operand, 2), ALL, ALL if operand.negate or operand.invert else 0)

    def single(self, operand: Operand) -> Source:
        """Turn an operand into the float32 source of a micro-operation; its modifiers `-x` and `|x|` are applied."""
        if operand.suffix:
            raise self.unsupported(f"operand modifier '.{operand.suffix}'")
        return Source(self.row(operand), ~_SIGN & ALL if operand.absolute else ALL, _SIGN if operand.negate else 0)

    def double(self, operand: Operand) -> Source:
        if operand.suffix:
            raise self.unsupported(f"operand modifier '.{operand.suffix}'")
        if operand.kind == OperandKind.IMMEDIATE:  # the encoding holds a double's high word
            row = self.literal(0, operand.value)
        else:
            row = self.row(operand, 2)
        return Source(row, ~_SIGN & ALL if operand.absolute else ALL, _SIGN if operand.negate else 0)

    def predicate(self, operand: Operand) -> Source:
        if operand.kind not in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE):
            raise self.unsupported("predicate operand")
        row = self.ones if operand.index == ZERO else self.result(operand)
        return Source(row, ALL, ALL if operand.invert else 0)

    @property
    def true(self) -> Source:
        return Source(self.ones)

    @property
    def false(self) -> Source:
        return Source(self.zero)

    def scratch(self, number: int) -> Source:
        """Return the temporary register `number` as a source; an operation on 64-bit pairs also reads the next one."""
        return Source(self.temporary + number)

    # Emission

    def write(self, d: Operand, op: str, sources: tuple[Source, ...], immediates: tuple[int, ...] = ()) -> None:
        """Append a micro-operation whose only result goes to the operand `d`."""
        self.emit(op, (self.result(d),), sources, immediates, uniform=is_uniform(d))

    def compute(self, number: int, op: str, sources: tuple[Source, ...], immediates: tuple[int, ...] = ()) -> Source:
        """Append a micro-operation that writes temporary row `number` in all lanes; return that row as a source."""
        self.emit(op, (self.temporary + number,), sources, immediates, uniform=True)
        return self.scratch(number)

    @contextmanager
    def guarded(self, guard: Source) -> Iterator[None]:
        """Predicate what is lowered within this context manager on `guard`, and not on the instruction's own guard."""
        self._guard = guard
        yield
        self._guard = None

    def emit(
        self,
        op: str,
        results: tuple[int, ...] = (),
        sources: tuple[Source, ...] = (),
        immediates: tuple[int, ...] = (),
        *,
        uniform: bool = False,
        access: int = 0,
        detail: int = 0,
    ) -> None:
        """Append one micro-operation, guarded as the instruction is.

        uniform         the results are written for all lanes, whichever are active
        access, detail  the words for the columns ACCESS and DETAIL, see `gemmsim.trace.micro`
        """
        row = [0] * micro.COLUMNS
        row[micro.OP] = OP_NUMBER[op] if op in OP_NUMBER else CONTROL_NUMBER[op]
        flags, guard = micro.UNIFORM if uniform else 0, self._guard
        if guard is None and self.instruction.predicate is not None:
            guard = self.predicate(self.instruction.predicate)
        if guard is None:
            row[micro.GUARD], flags = self.ones * WARP_LANES, flags | micro.UNGUARDED
        else:
            row[micro.GUARD], row[micro.GUARD_XOR] = guard.row * WARP_LANES, guard.flip
        row[micro.RESULT : micro.RESULT + 3] = (self.sink * WARP_LANES,) * 3
        for at, result in enumerate(results, micro.RESULT):
            row[at] = result * WARP_LANES
        at = micro.SOURCE
        for s in sources:
            row[at : at + 3] = s.row * WARP_LANES, s.keep & ALL, s.flip & ALL
            at += micro.SOURCE_COLUMNS
        for at, value in enumerate(immediates, micro.IMMEDIATE):
            row[at] = value & ALL
        row[micro.INSTRUCTION], row[micro.FLAGS] = self.instruction.index, flags
        row[micro.ACCESS], row[micro.DETAIL] = access, detail
        if op in ("access", "move_matrix", "copy_in_bulk"):
            row[micro.SLOT] = self.accesses
            self.accesses += 1
        self.code.append(row)


def negations(*operands: Operand) -> int:
    """Count the operands whose complement stands for their negative: for each, 1 must still be added to the sum."""
    return sum(operand.negate for operand in operands)


def is_uniform(operand: Operand) -> bool:
    return operand.kind in (OperandKind.UNIFORM_REGISTER, OperandKind.UNIFORM_PREDICATE)


def is_predicate(operand: Operand) -> bool:
    return operand.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)
