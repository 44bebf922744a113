"""Lowers a program: a loop over its instructions calls the function that the table of opcodes names for each opcode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gemmsim.isa.opcodes import OPCODES
from gemmsim.isa.program import INSTRUCTION_BYTES, OperandKind, Program
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.lower import control, conversion, floating, half, integer, logic, memory, moves, tensor
from gemmsim.trace.lower.context import Constant, Context, MicroProgram

_KEPT = 4  # programs
_MODULES = (control, conversion, floating, half, integer, logic, memory, moves, tensor)
_FUNCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in _MODULES
    for name, function in vars(module).items()
}
# Opcode -> the function that lowers it, for the opcodes that execute.
LOWERING: dict[str, Callable[[Context], None]] = {
    name: _FUNCTIONS[row.lowering] for name, row in OPCODES.items() if row.lowering
}


@cached_by_identity(_KEPT)
def lower(program: Program) -> MicroProgram:
    """Lower every instruction to its micro-operations. Raises GemmsimError where one has no semantics."""
    if not program.instructions:
        raise GemmsimError(f"kernel '{program.name}' ({program.arch}) has no instructions")
    context = Context(program)
    start = np.zeros(len(program.instructions) + 1, np.int32)
    for number, instruction in enumerate(program.instructions):
        context.instruction = instruction
        start[number] = len(context.code)
        function = LOWERING.get(instruction.opcode)
        if function is None:
            hint = nearest(instruction.opcode, LOWERING)
            raise GemmsimError(str(context.unsupported(f"opcode {instruction.opcode}")) + hint)
        try:
            function(context)
        except ValueError:  # other operands than those that are known
            raise context.unsupported("operand form") from None
        context.code[start[number]][micro.FLAGS] |= micro.FIRST
    start[-1] = len(context.code)
    code = np.array(context.code, np.uint32)
    _resolve_targets(context, code, start)
    constants = tuple(
        Constant(row + word, bank, offset + 4 * word)
        for (bank, offset, words), row in context.constants.items()
        for word in range(words)
    )
    literals = tuple((row + i, word) for words, row in context.literals.items() for i, word in enumerate(words))
    uniform_registers = range(context.uniform_base, context.predicate_base)
    uniform_predicates = range(context.uniform_predicate_base, context.zero)
    return MicroProgram(
        code=code,
        start=start,
        rows=context.next_row,
        ones=context.ones,
        accesses=context.accesses,
        constants=constants,
        literals=literals,
        specials=dict(context.specials),
        warp_rows=(uniform_registers, uniform_predicates),
        path_rows=range(context.barrier_base, context.resume + 1),
    )


def _resolve_targets(context: Context, code: np.ndarray, start: np.ndarray) -> None:
    """Put the micro-operation at which each branch continues into its column TARGET."""
    for number, instruction in enumerate(context.program.instructions):
        for operand in instruction.operands:
            if operand.kind != OperandKind.TARGET:
                continue
            at = operand.value // INSTRUCTION_BYTES
            if not 0 <= at < len(context.program.instructions):
                context.instruction = instruction
                raise context.unsupported(f"branch target {operand.value:#x} outside the kernel")
            code[start[number] : start[number + 1], micro.TARGET] = start[at]
