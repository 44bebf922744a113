"""Lowers a program: a loop over its instructions calls the function that the table of opcodes names for each opcode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np

from gemmsim.isa.opcodes import OPCODES
from gemmsim.isa.program import INSTRUCTION_BYTES, OperandKind, Program
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.lower import control
from gemmsim.trace.lower.context import Constant, Context, MicroProgram
from gemmsim.trace.lower.families import described
from gemmsim.trace.lower.gaps import Gap, UnsupportedError, merged

_KEPT = 4  # programs
_FUNCTIONS = {
    f"{module}.{name}": function
    for module in sorted({row.lowering.partition(".")[0] for row in OPCODES.values() if row.lowering})
    for name, function in vars(import_module(f"gemmsim.trace.lower.{module}")).items()
}
# Opcode -> the function that lowers it, for the opcodes that execute.
LOWERING: dict[str, Callable[[Context], None]] = {
    name: _FUNCTIONS[row.lowering] for name, row in OPCODES.items() if row.lowering
}


@cached_by_identity(_KEPT)
def lower(program: Program) -> MicroProgram:
    """Lower every instruction to its micro-operations. Raises UnsupportedError, which names all that is missing."""
    if not program.instructions:
        raise GemmsimError(f"kernel '{program.name}' ({program.arch}) has no instructions")
    context = Context(program)
    start = np.zeros(len(program.instructions) + len(program.externals) + 1, np.int32)
    gaps: list[Gap] = []
    for number, instruction in enumerate(program.instructions):
        context.instruction = instruction
        start[number] = len(context.code)
        try:
            _lower_one(context)
        except UnsupportedError as error:
            gaps += error.gaps
            continue
        context.code[start[number]][micro.FLAGS] |= micro.FIRST
    if gaps:
        raise UnsupportedError(merged(gaps), program.name, program.arch)
    context.instruction = replace(program.instructions[-1], predicate=None)  # what follows stands behind it
    for number in range(len(program.externals)):
        start[len(program.instructions) + number] = len(context.code)
        control.external(context, number)
    start[-1] = len(context.code)
    control.nowhere(context)
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


def missing(program: Program) -> tuple[Gap, ...]:
    """Return what `program` needs and gemmsim has no semantics for; nothing where it can be executed.

    Raises GemmsimError where the program cannot be executed for another reason.
    """
    try:
        lower(program)
    except UnsupportedError as error:
        return error.gaps
    return ()


def _lower_one(context: Context) -> None:
    function = LOWERING.get(context.instruction.opcode)
    if function is None:
        raise context.unsupported(described(context.instruction.opcode))
    try:
        function(context)
    except ValueError:  # other operands than those that are known
        raise context.unsupported("operand form") from None


def _resolve_targets(context: Context, code: np.ndarray, start: np.ndarray) -> None:
    """Put the micro-operation at which each branch continues into its column TARGET."""
    for number, instruction in enumerate(context.program.instructions):
        for operand in instruction.operands:
            if operand.kind != OperandKind.TARGET:
                continue
            at = operand.value // INSTRUCTION_BYTES
            if not 0 <= at < len(start) - 1:
                context.instruction = instruction
                raise context.unsupported(f"branch target {operand.value:#x} outside the kernel")
            code[start[number] : start[number + 1], micro.TARGET] = start[at]
