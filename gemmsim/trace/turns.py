"""Finds out whether the blocks of a program must run interleaved, and marks the accesses at which they take turns.

Blocks that depend on one another only through what earlier blocks have stored can run one after the other. Two kinds of
code need more. In a loop, a global atomic whose old value is used may hand out work (a counter of tiles) or wait (a
lock). In a loop, a strong load (`volatile`, `ld.acquire`, `ld.relaxed`) may wait for another block. A kernel that
synchronises the grid waits with such loads, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import Kind, MemoryAccess, row_of
from gemmsim.isa.program import INSTRUCTION_BYTES, ZERO, Instruction, Operand, OperandKind, Program
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.lower import MicroProgram, lower
from gemmsim.trace.lower.context import CONTROL_NUMBER

_SPACES = ("global", "generic")


@cached_by_identity(4)
def with_turns(program: Program, blocks_meet: bool = False) -> MicroProgram:
    """Return the lowered program, with TAKES_TURN and POLLS in the flags of the accesses that the module names.

    blocks_meet  whether blocks of a cluster reach each other's shared memory, so that any load of a loop that does
                 nothing but load and compare may wait for another block

    Where there are any, strong stores and all atomics on global memory get ANNOUNCES. A program that has none of them
    is returned as `lower` returns it.
    """
    lowered, loops = lower(program), _in_loops(program)
    flags = [micro.POLLS if waits else 0 for waits in (_waiting_loads(program) if blocks_meet else ())]
    flags = flags or [0] * len(program.instructions)
    for number, instruction in enumerate(program.instructions):
        memory = row_of(instruction).memory
        if memory is None or memory.space not in _SPACES or not loops[number]:
            continue
        if memory.operation == "atom" and _has_result(instruction):
            flags[number] = micro.TAKES_TURN
        elif memory.operation == "ld" and "STRONG" in instruction.modifiers:
            flags[number] = micro.POLLS
    if not any(flags):
        return lowered
    for number, instruction in enumerate(program.instructions):
        memory = row_of(instruction).memory
        if memory is not None and memory.space in _SPACES and _announces(memory, instruction):
            flags[number] |= micro.ANNOUNCES
    code = lowered.code.copy()
    accesses = code[:, micro.OP] == CONTROL_NUMBER["access"]
    marks = np.array(flags, np.uint32)[code[:, micro.INSTRUCTION]]
    code[:, micro.FLAGS] |= np.where(accesses, marks, np.uint32(0)).astype(np.uint32)
    return replace(lowered, code=code)


def takes_turns(lowered: MicroProgram) -> bool:
    """Whether `with_turns` has marked anything, so that blocks must run interleaved."""
    return bool((lowered.code[:, micro.FLAGS] & (micro.TAKES_TURN | micro.POLLS)).any())


def waiting_instructions(lowered: MicroProgram) -> NDArray[np.int64]:
    """Return the instructions that `with_turns` has marked because a block may wait or ask for work there."""
    marked = (lowered.code[:, micro.FLAGS] & (micro.TAKES_TURN | micro.POLLS)) != 0
    return np.unique(lowered.code[marked, micro.INSTRUCTION].astype(np.int64))


def _waiting_loads(program: Program) -> NDArray[np.bool_]:
    """Return bool [instructions]: whether each is a load, not from global memory alone, in a loop that only waits.

    Such a loop has no barrier and stores nothing, and the address of the load stays what it is.
    """
    found = np.zeros(len(program.instructions), np.bool_)
    for number, instruction in enumerate(program.instructions):
        targets = [o.value // INSTRUCTION_BYTES for o in instruction.operands if o.kind is OperandKind.TARGET]
        if row_of(instruction).kind is not Kind.BRANCH or not targets or targets[0] > number:
            continue
        body = range(targets[0], number + 1)
        rows = [row_of(program.instructions[n]) for n in body]
        if any(r.kind in (Kind.BARRIER, Kind.CALL) or r.name.startswith("UCGABAR") for r in rows):
            continue
        if any(r.memory is not None and r.memory.operation != "ld" for r in rows):
            continue
        written = {o for n in body for o in _written(program.instructions[n])}
        for n, row in zip(body, rows, strict=True):
            if row.memory is not None and row.memory.space in ("shared", "generic"):
                found[n] = not written & _address_registers(program.instructions[n])
    return found


def _written(instruction: Instruction) -> set[tuple[bool, int]]:
    """Return (whether it is uniform, number) of the registers that an instruction may write."""
    kinds = (OperandKind.REGISTER, OperandKind.UNIFORM_REGISTER)
    first = next((o for o in instruction.operands if o.kind in kinds and o.index != ZERO), None)
    if first is None:
        return set()
    wide = 4 if "128" in instruction.modifiers else 2 if {"64", "WIDE"} & {*instruction.modifiers} else 1
    return {(first.kind is OperandKind.UNIFORM_REGISTER, first.index + n) for n in range(wide)}


def _address_registers(instruction: Instruction) -> set[tuple[bool, int]]:
    found = set()
    for operand in instruction.operands:
        if operand.kind is OperandKind.ADDRESS:
            found |= {(False, operand.index + n) for n in range(2) if operand.index != ZERO}
            found |= {(True, operand.uniform + n) for n in range(2) if operand.uniform != ZERO}
    return found


def _announces(memory: MemoryAccess, instruction: Instruction) -> bool:
    return memory.operation in ("atom", "red") or (memory.operation == "st" and "STRONG" in instruction.modifiers)


def polls(lowered: MicroProgram) -> bool:
    """Whether the program has loads that `with_turns` has marked, which may wait for another block."""
    return bool((lowered.code[:, micro.FLAGS] & micro.POLLS).any())


def _has_result(instruction: Instruction) -> bool:
    return any(o.kind is OperandKind.REGISTER and o.index != ZERO for o in _before_address(instruction))


def _before_address(instruction: Instruction) -> Iterable[Operand]:
    return takewhile(lambda operand: operand.kind is not OperandKind.ADDRESS, instruction.operands)


def _in_loops(program: Program) -> NDArray[np.bool_]:
    """Return bool [instructions]: whether each instruction may be part of a loop.

    What lies between a branch and an earlier target counts as a loop, and so does a function that is called from one or
    calls itself. A function ends with the first return behind its beginning that no guard keeps from happening. Where a
    program branches or calls to where a register says, all of its code counts.
    """
    count = len(program.instructions)
    inside = np.zeros(count, np.bool_)
    calls: list[tuple[int, int, int]] = []  # the call, the first and the last instruction of what it calls
    returns = [n for n, i in enumerate(program.instructions) if row_of(i).kind is Kind.RETURN and i.predicate is None]
    for number, instruction in enumerate(program.instructions):
        kind = row_of(instruction).kind
        targets = [o.value // INSTRUCTION_BYTES for o in instruction.operands if o.kind is OperandKind.TARGET]
        if kind is Kind.INDEXED_BRANCH or (kind is Kind.CALL and not targets):
            return np.ones(count, np.bool_)
        for target in targets:
            if kind is Kind.CALL:
                calls.append((number, target, next((n for n in returns if n >= target), count - 1)))
            elif kind is not Kind.RETURN and target <= number:
                inside[target : number + 1] = True
    changed = True
    while changed:
        changed = False
        for call, first, last in calls:
            if (inside[call] or first <= call <= last) and not inside[first : last + 1].all():
                inside[first : last + 1] = changed = True
    return inside
