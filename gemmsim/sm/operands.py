"""Works out which registers an instruction reads and writes, in the terms of the register file's ports."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from gemmsim.gpu.spec import RegisterFile
from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Instruction, OperandKind
from gemmsim.sm.pipes import memory_opcode
from gemmsim.sm.units.instruction import ReadMode
from gemmsim.support.warp import WARP_LANES

FIXED_LATENCY = {"fma", "fmaheavy", "half", "alu", "fp16", "uniform", "fp64"}
LATE_READING = {"lsu", "xu"}
_WRITING = ("fma", "fmaheavy", "half", "alu", "fp16", "fp64")  # results of the tensor cores have not been looked at
_PREDICATES = (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)
# bits of an element of A and of B, of those whose reads are known
_ELEMENT_BITS = {"tensor_fp16": 16, "tensor_bf16": 16, "tensor_tf32": 32, "tensor_int8": 8, "tensor_int4": 4}
NO_READS: Mapping[str, int] = {"first": -1, "second": -1, "third": -1}


class Writes(NamedTuple):
    """How many registers are written: to the even bank, to the odd bank, and in pairs to both banks at once."""

    even: int
    odd: int
    pairs: int


NO_WRITES = Writes(0, 0, 0)


def two_passes(instruction: Instruction) -> bool:
    """Whether the multiplier takes `instruction` in two passes, as it does IMAD.WIDE.

    The stall count of IMAD.WIDE begins at its second pass: on an H200 (own microbenchmark) one warp takes 5 cycles for
    IMAD.WIDE with a stall count of 1 and SHF with one of 2, 8 for LEA.HI.X with 5 and IMAD.WIDE with 1.
    """
    return instruction.opcode == "IMAD" and "WIDE" in instruction.modifiers


def windows(instruction: Instruction, port: str, registers: RegisterFile) -> tuple[int, int]:
    """Return how many cycles `instruction` has to read its registers, and how many to read its uniform registers.

    A vector instruction has one cycle for its uniform operand: with two, one warp would be up to 6 % quicker through
    loops of the coalesced kernel than an H200 is (own microbenchmark, 32 instructions in a row; with one, 0 to 1 %).
    """
    if port == "uniform":
        return registers.uniform_read_window_cycles, registers.uniform_read_window_cycles
    more = registers.second_pass_cycles if two_passes(instruction) else 0
    return registers.read_window_cycles + more, registers.uniform_operand_window_cycles + more


def uniform_rows(instruction: Instruction, registers: RegisterFile) -> int:
    """Return how many rows of four uniform registers, such as UR4 to UR7, `instruction` reads."""
    sources = [o.index for o in instruction.operands[1:] if o.kind == OperandKind.UNIFORM_REGISTER and o.index >= 0]
    return len({index // registers.uniform_row_registers for index in sources})


def bank_cycles(instruction: Instruction, interval_cycles: float) -> int:
    """Return for how many cycles a matrix instruction (HMMA, IMMA) takes both banks of the register file; 0 for others.

    interval_cycles  from its issue to that of the next one, at least

    The pairs of A and of C that lie side by side come from both banks at once, B one register a cycle. So HMMA.16816
    and IMMA.16832 read for the 6 cycles that they take on an H200, HMMA.1688 for 4. Found on an H100 by our own
    microbenchmark: beside such a stream, instructions that read n registers get one in n / 2 cycles, and the stream
    is as much slower (tests/records/h200_beside_multiplications.json has the same from an H200). DMMA and sparse ones
    were not measured, and are taken to read beside others' reads.
    """
    shape = matrix_multiply(instruction)
    if shape is None or shape.precision not in _ELEMENT_BITS or shape.sparse:
        return 0
    bits = _ELEMENT_BITS[shape.precision]
    result_bits = 16 if "F16" in instruction.modifiers else 32
    of_a, of_b, of_c = (
        max(1, cells * size // (32 * WARP_LANES))
        for cells, size in (
            (shape.rows * shape.depth, bits),
            (shape.depth * shape.columns, bits),
            (shape.rows * shape.columns, result_bits),
        )
    )
    return min((of_a + 1) // 2 + of_b + (of_c + 1) // 2, floor(interval_cycles))


def reads(instruction: Instruction, port: str, registers: RegisterFile) -> Mapping[str, int]:
    """Return the fields of `units.instruction.Instruction` that say what `instruction` reads; NO_READS where it needs
    no port of the register file.
    """
    if port not in FIXED_LATENCY:
        return NO_READS
    slots = [-1, -1, -1]
    sources = [o for o in instruction.operands[1:] if o.kind not in _PREDICATES]
    for slot, operand in enumerate(sources[:3]):
        if operand.kind == OperandKind.REGISTER and operand.index >= 0:
            slots[slot] = operand.index
    rows = uniform_rows(instruction, registers)
    if max(slots) < 0 and not rows:
        return NO_READS
    mode = ReadMode.ONE_REGISTER
    if port == "fp64":
        mode = ReadMode.PAIR
    elif two_passes(instruction):
        mode = ReadMode.TWO_PASSES
    return {
        "reads_registers": 1,
        **dict(zip(NO_READS, slots, strict=True)),
        "reuse_mask": instruction.control.reuse_mask,
        "read_mode": int(mode),
        "uniform_rows": rows,
    }


def late_reads(instruction: Instruction, port: str) -> Mapping[str, int]:
    """Return the fields of `units.instruction.Instruction` that say what `instruction`, which goes to a queue, reads
    after its issue; none for others.

    A load and a copy begin with the last register of the address, in the cycle of their issue; the others in the next
    cycle (own microbenchmark on an H100: `units.register_ports`).
    """
    if port not in LATE_READING:
        return {}
    operands = [operand for operand in instruction.operands if operand.kind not in _PREDICATES]
    if operands and operands[0].kind == OperandKind.REGISTER:
        del operands[0]  # what it writes
    memory, modifiers = memory_opcode(instruction.opcode), instruction.modifiers
    width = 1 if memory is None else 4 if "128" in modifiers else 2 if "64" in modifiers else 1
    registers: list[int] = []
    for operand in operands:
        if operand.index >= 0 and operand.kind in (OperandKind.ADDRESS, OperandKind.REGISTER):
            count = width if operand.kind == OperandKind.REGISTER else 1 + operand.wide
            registers += range(operand.index, operand.index + count)
    at_once = memory is not None and memory.operation in ("ld", "ldgsts")
    if at_once:
        registers.reverse()
    banks = sum(register % 2 << place for place, register in enumerate(registers))
    return {"late_reads": len(registers), "late_banks": banks, "late_after": 0 if at_once else 1}


def results_of(instruction: Instruction, port: str) -> Writes:
    """Return what `instruction` writes at a fixed time after its issue."""
    register = _destination(instruction)
    if port not in _WRITING or register < 0:
        return NO_WRITES
    wide = instruction.opcode in ("CS2R", "CS2UR") and "32" not in instruction.modifiers
    if wide or port == "fp64" or two_passes(instruction):
        return Writes(0, 0, 1)
    return Writes(1 - register % 2, register % 2, 0)


def returns_of(instruction: Instruction) -> Writes:
    """Return what `instruction`, a load, writes when its data is there; NO_WRITES for any other."""
    register, modifiers = _destination(instruction), instruction.modifiers
    memory = memory_opcode(instruction.opcode)
    if memory is None or not memory.load or register < 0:
        return NO_WRITES
    if row_of(instruction).kind == Kind.MATRIX_ROWS:
        registers = 4 if "4" in modifiers else 2 if "2" in modifiers else 1
        first, second = (registers + 1) // 2, registers // 2
        return Writes(second, first, 0) if register % 2 else Writes(first, second, 0)
    if "128" in modifiers or "64" in modifiers:
        return Writes(0, 0, 2 if "128" in modifiers else 1)
    return Writes(1 - register % 2, register % 2, 0)


def _destination(instruction: Instruction) -> int:
    first = instruction.operands[:1]
    return first[0].index if first and first[0].kind == OperandKind.REGISTER else -1
