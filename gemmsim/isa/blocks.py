"""Divides a kernel into basic blocks, and finds which blocks a thread may enter after each."""

from __future__ import annotations

from gemmsim.isa.opcodes import OPCODES, Kind
from gemmsim.isa.program import INSTRUCTION_BYTES, BasicBlock, Instruction, OperandKind

_JUMPS = (Kind.BRANCH, Kind.INDEXED_BRANCH, Kind.CALL, Kind.RETURN, Kind.EXIT)


def basic_blocks(instructions: tuple[Instruction, ...]) -> tuple[BasicBlock, ...]:
    """Return the basic blocks in the order of their addresses.

    After a call, its target or the instruction behind the call may run; after a return, the instruction behind any
    call; after an indexed branch without listed targets, any block. BSSY only names the place where threads meet again:
    it ends no block, but the place that it names begins one.
    """
    if not instructions:
        return ()
    leaders = {0}
    for index, instruction in enumerate(instructions):
        leaders.update(_targets(instruction))
        if _leaves(instruction):
            leaders.add(index + 1)
    starts = sorted(leader for leader in leaders if leader < len(instructions))
    number = {start: block for block, start in enumerate(starts)}
    stops = [*starts[1:], len(instructions)]
    after_call = tuple(i + 1 for i, one in enumerate(instructions) if _kind(one) is Kind.CALL and i + 1 in number)
    return tuple(
        BasicBlock(start, stop, tuple(sorted({
            number[target] for target in _successors(instructions[stop - 1], stop, after_call, starts)
            if target in number
        })))
        for start, stop in zip(starts, stops, strict=True)
    )  # fmt: skip


def _kind(instruction: Instruction) -> Kind:
    """Return the `Kind` of an instruction: PLAIN for an opcode that the table lacks (code that is only decoded may have
    one)."""
    row = OPCODES.get(instruction.opcode)
    return Kind.PLAIN if row is None else row.kind


def _targets(instruction: Instruction) -> list[int]:
    return [o.value // INSTRUCTION_BYTES for o in instruction.operands if o.kind is OperandKind.TARGET]


def _leaves(instruction: Instruction) -> bool:
    kind = _kind(instruction)
    return kind in _JUMPS or (kind is Kind.WARP_SYNC and bool(_targets(instruction)))


def _successors(last: Instruction, following: int, after_call: tuple[int, ...], starts: list[int]) -> set[int]:
    """Return the indices of the instructions that may run after `last`, the last instruction of a block.

    following   index of the instruction behind `last`
    after_call  indices of the instructions behind a call, to which a return may go
    starts      indices of the blocks' first instructions, to which an indexed branch may go
    """
    if not _leaves(last):
        return {following}
    kind = _kind(last)
    conditional = last.predicate is not None or kind in (Kind.CALL, Kind.WARP_SYNC) or "DIV" in last.modifiers
    # `@!P0 BRA P1, target` and `BRA.U !UP0, target` have further conditions as operands.
    conditional |= any(o.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE) for o in last.operands)
    onward = {following} if conditional else set()
    if kind is Kind.EXIT:
        return onward
    if kind is Kind.RETURN:
        return onward | set(after_call)
    targets = _targets(last)
    if kind is Kind.INDEXED_BRANCH and not targets:
        return onward | set(starts)
    return onward | set(targets)
