"""SASS instructions to micro-operations: one small function for an opcode, named by its row in the table of opcodes.

`lower` refuses every opcode and modifier that it does not know: nothing is skipped and nothing guessed.
"""

from gemmsim.trace.lower.context import Constant, MicroProgram
from gemmsim.trace.lower.lowering import lower

__all__ = ["Constant", "MicroProgram", "lower"]
