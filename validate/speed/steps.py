"""Predicts one launch, and prints the CPU time of each step as JSON.

This runs as a process of its own, `python -m gemmsim_validate.speed.steps tiled 256 h200`, as a process imports each
module only once. An import that `main` times must not stand at the top of this file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

# The functions that `api.analyze` calls, by their names in that module, and the names of the steps.
CALLS = {
    "compile_kernel": "find the compiled kernel, decode it",
    "plan": "load the executor, execute probes and choose blocks",
    "serve": "count: coalescer, banks, L1, L2, DRAM",
    "schedule": "time: the SM model",
    "check_results": "compare C",
}


class Steps:
    """Collects the CPU seconds of each step. Where a step calls another one, the called step's time is its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = 0.0  # CPU time of the process at the last call of `done`: all before now belongs to the first step

    def done(self, name: str) -> None:
        """Count the CPU time since the last call of `done` for the step `name`."""
        now = time.process_time()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now

    def timed(self, name: str, before: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does what `call` does and counts its time for the step `name`.

        The CPU time from the last call of `done` until that function is called counts for the step `before`.
        """

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.done(before)
            try:
                return call(*args, **kwargs)
            finally:
                self.done(name)

        return timed


def main(kernel: str, size: int, gpu: str) -> None:
    """Predict a kernel of the ladder, and print the prediction's steps with their CPU seconds."""
    steps = Steps()
    steps.done("start Python")
    import numpy  # noqa: F401

    steps.done("import numpy")
    from llvmlite import binding  # noqa: F401

    steps.done("import llvmlite")
    from gemmsim import api
    from gemmsim.cli import analyze, main, requests  # noqa: F401
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.cases import LadderCase, ladder_launch
    from gemmsim.report.text import render
    from gemmsim.trace.execute import Executor

    steps.done("import gemmsim")
    request = ladder_launch(LadderCase(kernel, size, size, size), load_gpu(gpu))
    steps.done("random A, B and C")
    rest = "the rest"
    for name, text in CALLS.items():
        setattr(api, name, steps.timed(text, rest, getattr(api, name)))
    Executor.__init__ = steps.timed("lower, copy the matrices", rest, Executor.__init__)  # type: ignore[method-assign]
    Executor.run = steps.timed("execute the chosen blocks", rest, Executor.run)  # type: ignore[method-assign]
    render(api.analyze(request, accesses=False))
    steps.done(rest)
    print(json.dumps(list(steps.seconds.items())))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
