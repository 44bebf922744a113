"""Starting numba without scipy.

numba tries whether scipy's BLAS is there when it first compiles or loads any function. That imports scipy.linalg, which
takes longer than the executor does for a small GEMM, and nothing here needs it. Code that does (np.dot in a compiled
function of the user's) asks again when it is compiled, so that all it loses is an early answer.
"""

from __future__ import annotations

from importlib.util import find_spec


def postpone_blas() -> None:
    """Let numba take scipy's BLAS as present, where scipy is installed, until a function calls it."""
    from numba.np import linalg

    asks = getattr(linalg, "ensure_blas", None)
    if asks is None or find_spec("scipy") is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = asks
    arraymath.ensure_blas = asks
