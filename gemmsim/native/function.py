"""A function of ours that runs as machine code."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gemmsim.native import code_store
from gemmsim.native.arguments import RESULTS, ArgumentType, c_types, c_values, describe

_RETURNED = (0, -2)  # numba's statuses: a value, or None


class NativeFunction:
    """Called as the Python function is, with numbers, arrays, and dataclasses of these. Compiled for each set of types.

    module    of the function; imported only to compile it
    function  its name there; with `variant`, the name of what makes it, called with those
    sources   files that the machine code depends on
    """

    def __init__(self, module: str, function: str, sources: Sequence[Path], variant: tuple[int, ...] = ()) -> None:
        self._module, self._function, self._sources, self._variant = module, function, sources, variant
        self._calls: dict[tuple[ArgumentType, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        signature = tuple(map(describe, arguments))
        call = self._calls.get(signature)
        if call is None:
            call = self._calls[signature] = self._load(signature)
        return call(arguments)

    def _load(self, signature: tuple[ArgumentType, ...]) -> Callable[[Sequence[Any]], Any]:
        from gemmsim.native.loader import Loaded, cpu  # only now: many a run needs no engine

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

        def call(arguments: Sequence[Any], keep: Loaded = loaded) -> Any:
            result, raised = result_type(), ctypes.c_void_p()
            status = function(ctypes.addressof(result), ctypes.addressof(raised), *c_values(arguments))
            if status not in _RETURNED:
                raise RuntimeError(f"{self._module}.{self._function} raised an exception (status {status})")
            return None if nothing else result.value

        return call
