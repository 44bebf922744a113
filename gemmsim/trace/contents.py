"""Says whether the trace of a program depends on what its arrays hold."""

from __future__ import annotations

import numpy as np

from gemmsim.isa.program import Program
from gemmsim.trace import micro
from gemmsim.trace.slicing.program_slice import program_slice
from gemmsim.trace.turns import with_turns


def trace_depends_on_contents(program: Program) -> bool:
    """Whether an address, a guard, a branch or a barrier of the program needs a value from global memory.

    The program slice that a trace needs tells: it still loads from global memory then. Where this function returns
    False, a launch leaves the same trace whatever its arrays hold.
    """
    code = program_slice(with_turns(program), True)
    assert code is not None
    how = code[:, micro.ACCESS]
    anywhere = np.isin(how >> micro.SPACE_SHIFT & micro.SPACE_MASK, (micro.GLOBAL, micro.GENERIC))
    loads = (how & micro.SIZE_MASK != 0) & (how >> micro.KIND_SHIFT != micro.STORE)
    return bool((anywhere & loads & (how & micro.UNMOVED_BIT == 0)).any())
