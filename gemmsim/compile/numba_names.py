"""Makes numba's names of functions, which stand in the machine code, depend on nothing but what is compiled.

numba numbers the functions that it compiles in a process, and the number is part of a symbol ("B2v7"). So the same
kernel had other bytes where another one had been compiled before it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

# The numbers of a kernel and its device functions begin at a multiple of _SPACING, one of _STARTS: functions that
# numba keeps from one kernel to the next must not have the number of another one of the same name.
_SPACING, _STARTS = 1000, 10**6
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


@contextmanager
def numbered(function: Any, *rest: object) -> Iterator[None]:
    """Within this context manager, numba numbers functions from a number that follows from the kernel alone.

    function  the kernel, a Python function
    rest      what else decides its code: signature, architecture, options
    """
    from numba.cuda.core.bytecode import FunctionIdentity

    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    said = repr((_content(function.__code__), [one for one in cells if isinstance(one, _PLAIN)], rest))
    number = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little") % _STARTS + 1
    usual, FunctionIdentity._unique_ids = FunctionIdentity._unique_ids, itertools.count(_SPACING * number)
    try:
        yield
    finally:
        FunctionIdentity._unique_ids = usual


def _content(code: CodeType) -> tuple[object, ...]:
    """Return what a function does, without where it stands and without addresses."""
    constants = [
        _content(one) if isinstance(one, CodeType) else one if isinstance(one, _PLAIN) else type(one).__name__
        for one in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
