"""Lowers SASS instructions to micro-operations, each opcode by a small function that the table of opcodes names.

`lower` refuses every opcode and modifier that it does not know: nothing is skipped and nothing guessed.
"""

from gemmsim.trace.lower.context import Constant, MicroProgram
from gemmsim.trace.lower.lowering import lower, missing

__all__ = ["Constant", "MicroProgram", "lower", "missing"]
