"""Executing a launch for its results only stores what an execution with its trace does."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.api import compiled
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.trace.execute import Executor
from gemmsim.trace.finish import finish


@pytest.mark.parametrize("kernel", ["coalesced", "split_k"])
def test_results_are_those_of_an_execution_with_its_trace(kernel: str) -> None:
    spec = ladder_launch(LadderCase(kernel, 160, 160, 64), load_gpu("a100"))
    program, launch = compiled(spec), spec.launch_with_arrays()
    expected = Executor(program, launch).run(range(launch.blocks))
    executor = Executor(program, launch)
    finish(executor)
    for wanted, found in zip(expected.outputs, executor.memory.arrays(), strict=True):
        assert (wanted is None) == (found is None)
        assert wanted is None or np.array_equal(wanted, found, equal_nan=True)
    for wanted_marks, marks in zip(expected.written, executor.memory.stored(), strict=True):
        assert wanted_marks is None or np.array_equal(wanted_marks, marks)
    assert launch.blocks > 1
