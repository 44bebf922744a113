"""Rows and emission: what the per-opcode lowering functions work with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import ZERO, Instruction, Operand, OperandKind, Program
from gemmsim.isa.semantics.registry import load
from gemmsim.support.errors import GemmsimError
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro

ALL = 0xFFFFFFFF
UNIFORM_REGISTERS = 64 + 192  # sm_100 and later address up to 255
TEMPORARIES = 16
CONVERGENCE_BARRIERS = 16
_SIGN = 0x80000000

OP_NUMBER = {name: number for number, name in enumerate(load())}
CONTROL_NUMBER = {name: len(OP_NUMBER) + number for number, name in enumerate(micro.CONTROL)}


@dataclass(frozen=True, slots=True)
class Constant:
    """A row that holds a word of a constant bank; filled in when the launch is known."""

    row: int
    bank: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """One source: (row & keep) ^ flip."""

    row: int
    keep: int = ALL
    flip: int = 0


@dataclass(frozen=True)
class MicroProgram:
    """A lowered program.

    code        uint32 [micro-operations, micro.COLUMNS]
    start       int32 [instructions] first micro-operation of each instruction
    rows        rows of a warp's state
    ones        the row of all ones (PT)
    constants   rows to fill from constant banks at launch
    literals    (row, word) for immediates
    accesses    memory operations
    specials    special register name -> row
    warp_rows   uniform registers and predicates: rows that all paths of a warp share
    path_rows   rows that decide where paths of a warp meet and go on
    """

    code: NDArray[np.uint32]
    start: NDArray[np.int32]
    rows: int
    ones: int
    accesses: int
    constants: tuple[Constant, ...]
    literals: tuple[tuple[int, int], ...]
    specials: dict[str, int] = field(default_factory=dict)
    warp_rows: tuple[range, ...] = ()
    path_rows: range = range(0)


class Context:
    """Allocates rows for one program and collects its micro-operations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code: list[list[int]] = []  # rows of micro.COLUMNS words
        self.registers = max(program.registers, 1) + 8
        self.uniform_base = self.registers
        self.predicate_base = self.uniform_base + UNIFORM_REGISTERS
        self.uniform_predicate_base = self.predicate_base + 8
        self.zero = self.uniform_predicate_base + 8  # sixteen rows, so that fragments read from RZ are zero throughout
        self.ones = self.zero + 16
        self.sink = self.ones + 1  # eight rows that take what is written to RZ
        self.temporary = self.sink + 8  # rows within one instruction
        self.barrier_base = self.temporary + TEMPORARIES
        self.resume = self.barrier_base + CONVERGENCE_BARRIERS  # where a thread goes on after a collective instruction
        self.next_row = self.resume + 1
        self.accesses = 0
        self.constants: dict[tuple[int, int, int], int] = {}
        self.literals: dict[tuple[int, ...], int] = {}
        self.specials: dict[str, int] = {}
        self.instruction: Instruction = program.instructions[0]

    def unsupported(self, what: str) -> GemmsimError:
        i, p = self.instruction, self.program
        return GemmsimError(
            f"{what} in '{i.text}' at {i.offset:#06x} of kernel '{p.name}' ({p.arch}): "
            "gemmsim has no semantics for it yet"
        )

    # Rows

    def _allocate(self, count: int) -> int:
        row = self.next_row
        self.next_row += count
        return row

    def constant(self, bank: int, offset: int, words: int) -> int:
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

    def row(self, operand: Operand, words: int = 1) -> int:
        """The row (the first of `words`) that the operand reads."""
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
        if kind == OperandKind.IMMEDIATE:
            if words == 2:
                return self.literal(operand.value, operand.value >> 32)
            return self.literal(operand.value)
        if kind == OperandKind.SPECIAL and operand.name in ("SRZ", "PR"):
            return self.zero
        raise self.unsupported(f"operand kind {kind.value}")

    def result(self, operand: Operand) -> int:
        """The row that the operand names as a destination."""
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
        """A 32-bit integer source; a minus arrives as a complement (see `negations`)."""
        if operand.absolute or operand.suffix:
            raise self.unsupported(f"operand modifier '{operand.suffix or '|x|'}'")
        return Source(self.row(operand), ALL, ALL if operand.negate or operand.invert else 0)

    def wide(self, operand: Operand) -> Source:
        """A 64-bit integer source."""
        if operand.absolute or operand.suffix not in ("", "64"):
            raise self.unsupported(f"operand modifier '{operand.suffix or '|x|'}'")
        return Source(self.row(operand, 2), ALL, ALL if operand.negate or operand.invert else 0)

    def single(self, operand: Operand) -> Source:
        """A float32 source with its sign and absolute value."""
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
        """A temporary row as a source (and the one behind it, where two are read)."""
        return Source(self.temporary + number)

    # Emission

    def emit(
        self,
        op: str,
        results: tuple[int, ...] = (),
        sources: tuple[Source, ...] = (),
        immediates: tuple[int, ...] = (),
        *,
        uniform: bool = False,
        target: int = 0,
        access: int = 0,
        detail: int = 0,
        only: Source | None = None,
    ) -> None:
        """Append one micro-operation, guarded as the instruction is, or by the row `only` instead."""
        row = [0] * micro.COLUMNS
        row[micro.OP] = OP_NUMBER[op] if op in OP_NUMBER else CONTROL_NUMBER[op]
        guard = self.instruction.predicate
        flags = micro.UNIFORM if uniform else 0
        if guard is None and only is None:
            row[micro.GUARD], flags = self.ones * WARP_LANES, flags | micro.UNGUARDED
        else:
            source = only or self.predicate(guard)  # type: ignore[arg-type]
            row[micro.GUARD], row[micro.GUARD_XOR] = source.row * WARP_LANES, source.flip
        row[micro.RESULT : micro.RESULT + 3] = (self.sink * WARP_LANES,) * 3
        for at, result in enumerate(results, micro.RESULT):
            row[at] = result * WARP_LANES
        at = micro.SOURCE
        for s in sources:
            row[at : at + 3] = s.row * WARP_LANES, s.keep & ALL, s.flip & ALL
            at += micro.SOURCE_COLUMNS
        for at, value in enumerate(immediates, micro.IMMEDIATE):
            row[at] = value & ALL
        row[micro.INSTRUCTION], row[micro.FLAGS], row[micro.TARGET] = self.instruction.index, flags, target
        row[micro.ACCESS], row[micro.DETAIL] = access, detail
        if op in ("access", "load_matrix"):
            row[micro.SLOT] = self.accesses
            self.accesses += 1
        self.code.append(row)


def negations(*operands: Operand) -> int:
    """How many ones the complements of these operands still lack to be negatives."""
    return sum(operand.negate for operand in operands)


def is_uniform(operand: Operand) -> bool:
    return operand.kind in (OperandKind.UNIFORM_REGISTER, OperandKind.UNIFORM_PREDICATE)


def is_predicate(operand: Operand) -> bool:
    return operand.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)
