"""Functions of this package that run as machine code."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gemmsim.native import code_store
from gemmsim.native.arguments import RESULTS, ArgumentType, c_types, c_values, describe
from gemmsim.native.records import Record

Call = Callable[..., Any]
_RETURNED = (0, -2)  # numba's statuses: a value, or None


class NativeFunction:
    """A compiled function. It is called as the Python function is, with numbers, arrays, records, and dataclasses of
    numbers and arrays, and is compiled once for each set of argument types.

    module    the function's module, which is imported only to compile it
    function  the function's name there; or, where there is a `variant`, the name of a function that makes it
    sources   files that the machine code depends on
    variant   the arguments of the function that makes it
    """

    def __init__(self, module: str, function: str, sources: Sequence[Path], variant: tuple[int, ...] = ()) -> None:
        self._module, self._function, self._sources, self._variant = module, function, sources, variant
        self._makers: dict[tuple[ArgumentType, ...], Callable[..., Call]] = {}

    def __call__(self, *arguments: Any) -> Any:
        return self._maker(arguments)(*c_values(arguments))()

    def bound(self, record: Record, *integers: int) -> Call:
        """Return a function of integers, as many as `integers`, that calls this one with `record` and them.

        It is quicker to call, and may be called by one thread at a time.
        """
        return self._maker((record, *integers))(record.address)

    def _maker(self, arguments: Sequence[Any]) -> Callable[..., Call]:
        signature = tuple(map(describe, arguments))
        if signature not in self._makers:
            self._makers[signature] = self._load(signature)
        return self._makers[signature]

    def _load(self, signature: tuple[ArgumentType, ...]) -> Callable[..., Call]:
        """Load the machine code for a signature, and return a function that binds its first arguments.

        The bound function is called with the other arguments. It has a place in memory of its own for the result.
        """
        from gemmsim.native.loader import Loaded, cpu  # imported here because many runs need no machine code

        place = code_store.folder()
        key = code_store.key_of(f"{self._module}.{self._function} {self._variant} {signature}", self._sources, cpu())
        code = code_store.load(key, place)
        if code is None:
            from gemmsim.native.build import build

            made = getattr(importlib.import_module(self._module), self._function)
            code = build(made(*self._variant) if self._variant else made, signature)
            code_store.save(key, place, code)
        loaded = Loaded(code)
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *c_types(signature))(loaded.address)
        result_type, nothing = RESULTS[code.returns], code.returns == "none"

        def make(*first: Any) -> Call:
            result, raised = result_type(), ctypes.c_void_p()
            places = ctypes.addressof(result), ctypes.addressof(raised), *first

            def call(*values: Any, keep: Any = (loaded, raised)) -> Any:
                status = function(*places, *values)
                if status not in _RETURNED:
                    raise RuntimeError(f"{self._module}.{self._function} raised an exception (status {status})")
                return None if nothing else result.value

            return call

        return make
