"""SASS instructions to micro-operations: one small function an opcode, in a table.

`lower` refuses what it does not know, opcode or modifier: nothing is skipped and nothing guessed.
"""

from gemmsim.trace.lower.context import Constant, MicroProgram
from gemmsim.trace.lower.lowering import lower, supported_opcodes

__all__ = ["Constant", "MicroProgram", "lower", "supported_opcodes"]
