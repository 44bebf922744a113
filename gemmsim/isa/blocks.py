"""Basic blocks and their successors, as one thread may pass through them."""

from __future__ import annotations

from gemmsim.isa.opcodes import OPCODES, Kind
from gemmsim.isa.program import INSTRUCTION_BYTES, BasicBlock, Instruction, OperandKind

_JUMPS = (Kind.BRANCH, Kind.INDEXED_BRANCH, Kind.CALL, Kind.RETURN, Kind.EXIT)


def basic_blocks(instructions: tuple[Instruction, ...]) -> tuple[BasicBlock, ...]:
    """Blocks in address order.

    A call continues at its target and, conservatively, behind itself; a return at every place behind a call; an indexed
    branch without listed targets at every block. BSSY only names a place to meet again: it ends no block, but its
    target starts one.
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
    """PLAIN of an opcode that the table lacks: code that is only read may hold some."""
    row = OPCODES.get(instruction.opcode)
    return Kind.PLAIN if row is None else row.kind


def _targets(instruction: Instruction) -> list[int]:
    return [o.value // INSTRUCTION_BYTES for o in instruction.operands if o.kind is OperandKind.TARGET]


def _leaves(instruction: Instruction) -> bool:
    kind = _kind(instruction)
    return kind in _JUMPS or (kind is Kind.WARP_SYNC and bool(_targets(instruction)))


def _successors(last: Instruction, following: int, after_call: tuple[int, ...], starts: list[int]) -> set[int]:
    """Instruction indices that may run after `last`, which ends a block."""
    if not _leaves(last):
        return {following}
    kind = _kind(last)
    conditional = last.predicate is not None or kind in (Kind.CALL, Kind.WARP_SYNC) or "DIV" in last.modifiers
    # `@!P0 BRA P1, target` and `BRA.U !UP0, target` carry further conditions as operands
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
