"""Functions of this package that are written in LLVM as they stand, and run as machine code."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmsim.native.code_store import MachineCode, stored

if TYPE_CHECKING:
    from gemmsim.native.loader import Loaded


class WrittenFunctions:
    """Functions that a module writes, each of which is compiled by itself and kept.

    module    the module, which is imported only to compile a function
    writer    the function there that takes a function's name and returns an LLVM module with a function of that name
    sources   files that the machine code depends on
    """

    def __init__(self, module: str, writer: str, sources: Sequence[Path]) -> None:
        self._module, self._writer, self._sources = module, writer, sources
        self._addresses: dict[str, int] = {}
        self._loaded: list[Loaded] = []

    def addresses(self, names: Sequence[str]) -> list[int]:
        """Return the addresses of functions. They are valid as long as this object lives."""
        missing = [name for name in names if name not in self._addresses]
        if missing:
            from gemmsim.native.loader import Loaded  # imported here because many runs need no machine code

            loaded = Loaded([self._code(name) for name in missing])
            self._loaded.append(loaded)
            self._addresses.update(zip(missing, loaded.addresses, strict=True))
        return [self._addresses[name] for name in names]

    def _code(self, name: str) -> MachineCode:
        from gemmsim.native.loader import compiled, cpu

        def make() -> MachineCode:
            module = getattr(importlib.import_module(self._module), self._writer)(name)
            return MachineCode(name, "none", compiled(str(module)))

        return stored(f"{self._module}.{self._writer} {name}", self._sources, cpu(), make)
