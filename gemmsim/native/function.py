"""Functions of this package that run as machine code."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmsim.native import code_store
from gemmsim.native.arguments import RESULTS, ArgumentType, c_types, c_values, describe
from gemmsim.native.records import Record

if TYPE_CHECKING:
    from gemmsim.native.code_store import MachineCode
    from gemmsim.native.loader import Loaded

Call = Callable[..., Any]


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
        self._codes: dict[tuple[ArgumentType, ...], tuple[Loaded, MachineCode]] = {}
        self._makers: dict[tuple[ArgumentType, ...], Callable[..., Call]] = {}

    def __call__(self, *arguments: Any) -> Any:
        return self._maker(arguments)(*c_values(arguments))()

    def bound(self, record: Record, *integers: int) -> Call:
        """Return a function of integers, as many as `integers`, that calls this one with `record` and them.

        It is quicker to call, and may be called by one thread at a time.
        """
        return self._maker((record, *integers))(record.address)

    def address(self, signature: tuple[ArgumentType, ...]) -> int:
        """Return the address of the machine code for arguments of these types (`arguments.describe`, or "uint32").

        Other machine code can call it. It is valid as long as this object lives.
        """
        if signature not in self._codes:
            self._codes[signature] = self._load(signature)
        return self._codes[signature][0].addresses[0]

    def _maker(self, arguments: Sequence[Any]) -> Callable[..., Call]:
        signature = tuple(map(describe, arguments))
        if signature not in self._makers:
            self._makers[signature] = self._bind(signature)
        return self._makers[signature]

    def _load(self, signature: tuple[ArgumentType, ...]) -> tuple[Loaded, MachineCode]:
        """Load the machine code for a signature; compile it where there is none."""
        from gemmsim.native.loader import Loaded, cpu  # imported here because many runs need no machine code

        def make() -> MachineCode:
            from gemmsim.native.build import build

            made = getattr(importlib.import_module(self._module), self._function)
            return build(made(*self._variant) if self._variant else made, signature)

        name = f"{self._module}.{self._function} {self._variant} {signature}"
        code = code_store.stored(name, self._sources, cpu(), make)
        return Loaded([code]), code

    def _bind(self, signature: tuple[ArgumentType, ...]) -> Callable[..., Call]:
        """Return a function that binds the first arguments of the machine code for a signature.

        The bound function is called with the other arguments. It has a place in memory of its own for the result.
        """
        address = self.address(signature)
        loaded, code = self._codes[signature]
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *c_types(signature))(address)
        result_type, nothing = RESULTS[code.returns], code.returns == "none"

        def make(*first: Any) -> Call:
            result = result_type()
            places = ctypes.addressof(result), *first

            def call(*values: Any, keep: Any = loaded) -> Any:
                if function(*places, *values) != 0:
                    raise ZeroDivisionError(f"{self._module}.{self._function} divided by zero")
                return None if nothing else result.value

            return call

        return make
