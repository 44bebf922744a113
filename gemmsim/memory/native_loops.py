"""The compiled loops of this package, each in a module of its own beside the one that calls it."""

from __future__ import annotations

from pathlib import Path

from gemmsim.native.function import NativeFunction

_FOLDER = Path(__file__).resolve().parent


def native_loop(module: str, function: str, *uses: str) -> NativeFunction:
    """`function` of the module "grid/footprint_loop"; uses: other modules, named alike, that are compiled into it."""
    sources = [_FOLDER / f"{name}.py" for name in (module, *uses)]
    return NativeFunction(f"gemmsim.memory.{module.replace('/', '.')}", function, sources)
