"""Chooses the variant of the compiled executor that a kernel needs.

A variant has or lacks the operations across lanes, and has or lacks the sanitizer's checks. Each is compiled by itself.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmsim.native.function import NativeFunction
from gemmsim.trace.lower.context import CONTROL_NUMBER

# Micro-operations that `executor_for(across_lanes=False)` lacks
ACROSS_LANES = tuple(
    CONTROL_NUMBER[name] for name in ("exchange", "move_matrix", "multiply_matrix", "multiply_warpgroup")
)


@cache
def executor_for(across_lanes: bool, sanitizing: bool = False, relating: bool = False) -> NativeFunction:
    """Return `run_block` of one variant as a compiled function.

    across_lanes  whether it has the operations that look across lanes (shuffles, matrices). Most kernels do not use
                  them, and they take seconds to compile the first time.
    sanitizing    whether it has the checks of `gemmsim.trace.sanitizer`; without it the code has none of them
    relating      whether it follows how other blocks differ (`gemmsim.trace.engine.differences`); not when sanitizing
    """
    return NativeFunction(
        "gemmsim.trace.engine.run_block", "run_block_for", _sources(), (across_lanes, sanitizing, relating)
    )


@cache
def residents_executor_for(sanitizing: bool = False) -> NativeFunction:
    """Return `run_residents`, with or without the sanitizer's checks, as a compiled function.

    It always has the operations across lanes, because most kernels whose blocks wait for each other use them.
    """
    return NativeFunction("gemmsim.trace.engine.run_residents", "run_residents_for", _sources(), (sanitizing,))


@cache
def _sources() -> tuple[Path, ...]:
    """Return all files that may be compiled into `run_block`; its machine code is kept until one of them changes."""
    package = Path(__file__).resolve().parents[2]
    return tuple(path for part in ("isa", "native", "trace") for path in sorted((package / part).rglob("*.py")))
