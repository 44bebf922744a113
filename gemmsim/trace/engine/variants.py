"""The variants of the compiled executor."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmsim.native.function import NativeFunction
from gemmsim.trace.lower.context import CONTROL_NUMBER

# Micro-operations that `executor_for(everything=False)` lacks.
ACROSS_LANES = tuple(CONTROL_NUMBER[name] for name in ("exchange", "load_matrix", "multiply_matrix"))


@cache
def executor_for(everything: bool, watching: bool = False) -> NativeFunction:
    """The compiled `run_block`; without `everything` it lacks what looks across lanes (shuffles, matrices), which most
    kernels do not use and which takes seconds to compile the first time. `watching`: with the checks of
    `gemmsim.trace.sanitizer.checks`, of which the other variants hold nothing."""
    return NativeFunction("gemmsim.trace.engine.run_block", "run_block_for", _sources(), (everything, watching))


@cache
def _sources() -> tuple[Path, ...]:
    """All files that may be compiled into `run_block`."""
    package = Path(__file__).resolve().parents[2]
    return tuple(path for part in ("isa", "native", "trace") for path in sorted((package / part).rglob("*.py")))
