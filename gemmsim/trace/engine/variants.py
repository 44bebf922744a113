"""Chooses the variant of the compiled executor that a launch needs. Each is compiled by itself."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gemmsim.native.function import NativeFunction

_ROOT = Path(__file__).resolve().parents[3]
_IMPORT = re.compile(r"^from (gemmsim[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


@cache
def executor_for(sanitizing: bool = False, relating: bool = False) -> NativeFunction:
    """Return `run_block` of one variant as a compiled function.

    sanitizing  whether it has the checks of `gemmsim.trace.sanitizer`; without it the code has none of them
    relating    whether it follows how other blocks differ (`gemmsim.trace.engine.differences`); not when sanitizing
    """
    name = "gemmsim.trace.engine.run_block"
    return NativeFunction(name, "run_block_for", sources_of(name), (sanitizing, relating))


@cache
def residents_executor_for(sanitizing: bool = False) -> NativeFunction:
    """Return `run_residents`, with or without the sanitizer's checks, as a compiled function."""
    name = "gemmsim.trace.engine.run_residents"
    return NativeFunction(name, "run_residents_for", sources_of(name), (sanitizing,))


@cache
def sources_of(module: str) -> tuple[Path, ...]:
    """Return the files that may be compiled into a function of this module: its own, what it imports, and so on."""
    found: dict[Path, None] = {}
    if file := _file_of(module):
        _add_sources(file, found)
    return tuple(sorted(found))


def _add_sources(file: Path, found: dict[Path, None]) -> None:
    if file not in found:
        found[file] = None
        for imported in _imports(file):
            _add_sources(imported, found)


@cache
def _imports(file: Path) -> tuple[Path, ...]:
    """Return the files of this package that a file imports."""
    found: list[Path | None] = []
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        found.append(its_file := _file_of(module))
        if its_file is None or its_file.name == "__init__.py":
            found += [_file_of(f"{module}.{name}") for name in re.findall(r"\w+", names)]
    return tuple(path for path in found if path)


def _file_of(module: str) -> Path | None:
    """Return the file of a module or package, None where there is none of this name."""
    place = _ROOT / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)
