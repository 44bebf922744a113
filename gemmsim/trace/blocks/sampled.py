"""Executes the blocks of a plan. Where they are a sample with much to multiply, most of its products are left out, and
of all blocks where nobody wants their results.

What a block leaves in its trace does not depend on them. Results are there until the limit is reached; from then on the
blocks run as a slice of their program (`gemmsim.trace.slicing`), which stores nothing.
"""

from __future__ import annotations

from dataclasses import replace

from gemmsim.trace import words
from gemmsim.trace.blocks.choice import Plan
from gemmsim.trace.execute import Executor
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Execution

# Columns that the warps of warpgroups multiply, each with 16 rows and 32 bytes deep: about a second of one core.
MOST_COLUMNS = 6_000_000
_LEFT_OUT = (
    "results: the executed blocks have more to multiply than a second allows; what they stored from then on was not "
    "computed and is not checked (--full computes all)"
)


_CUT = (
    "results: iterations of loops that do the same each time, at addresses that move evenly, were counted and not "
    "executed; what the blocks stored that they belong to was not computed and is not checked (--full computes all)"
)


def execute_plan(executor: Executor, plan: Plan, results: bool = True) -> Execution:
    """Execute the blocks of `plan`, as `Executor.run` does.

    results  whether results are wanted of blocks that are no sample, whatever they have to multiply
    """
    if not plan.classes and results:
        return executor.run(plan.blocks, plan.weight, plan.streams)
    executor.columns = MOST_COLUMNS
    try:
        execution = executor.run(plan.blocks, plan.weight, plan.streams)
    except Stopped as stopped:
        if stopped.status != words.STALE:
            raise
        executor.columns = words.UNLIMITED  # the blocks read what they have stored
        executor.stale[:] = 0
        return executor.run(plan.blocks, plan.weight, plan.streams)
    finally:
        executor.columns = words.UNLIMITED
    if execution.left_out:
        execution = replace(execution, notes=(*execution.notes, _CUT))
    if int(executor.context[words.CODE_AT]) == executor.code.ctypes.data:
        return execution
    return replace(execution, notes=(*execution.notes, _LEFT_OUT))
