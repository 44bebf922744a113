"""Starts numba without importing scipy.

When numba first compiles or loads a function, it looks whether scipy's BLAS is there. That imports scipy.linalg, which
takes longer than the executor does for a small GEMM, and nothing here needs it. A user's compiled function that calls
np.dot looks for it again when it is compiled, so nothing is lost.
"""

from __future__ import annotations

from importlib.util import find_spec


def postpone_blas() -> None:
    """Let numba assume that scipy's BLAS is there, where scipy is installed, until a function calls it."""
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
