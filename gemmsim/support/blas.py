"""Limits the threads in which NumPy multiplies matrices."""

from __future__ import annotations

import os


def use_one_thread() -> None:
    """Let NumPy multiply in one thread, unless the environment says otherwise. Call it before NumPy is imported.

    What is multiplied here takes a tenth of a second or so. With more threads each of OpenBLAS's waits by asking again
    and again, which takes most of their time where other work uses the same processors. The sum of a long vector's
    products would also depend on how many processors there are, in its last digits.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
