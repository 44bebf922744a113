"""numba starts without scipy's BLAS, and finds it once a function wants it. In processes of their own: once is once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("scipy")


def printed(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


COMPILE = "import sys, numba, numpy as np\nnumba.njit(lambda x: x + 1)(1)\n"


def test_numba_alone_imports_it() -> None:
    """What this is about; should numba cease to do so, numba_start.py can go."""
    assert printed(COMPILE + "print('scipy.linalg' in sys.modules)") == "True"


def test_with_the_executor_nothing_does() -> None:
    assert printed("import gemmsim.native.numba_parts\n" + COMPILE + "print('scipy.linalg' in sys.modules)") == "False"


@pytest.mark.parametrize("call", ["np.dot(x, x)", "np.linalg.inv(x)", "np.cov(x)"])
def test_a_function_that_wants_it_gets_it(call: str) -> None:
    wants = f"x = np.array([[1.0, 2.0], [3.0, 4.0]])\nprint(np.allclose(numba.njit(lambda x: {call})(x), {call}))"
    assert printed("import gemmsim.native.numba_parts\n" + COMPILE + wants) == "True"
