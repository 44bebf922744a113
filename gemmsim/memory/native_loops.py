"""Finds the compiled loops of this package. The loop of a module `X.py` is in a module `X_loop.py`."""

from __future__ import annotations

from pathlib import Path

from gemmsim.native.function import NativeFunction

_FOLDER = Path(__file__).resolve().parent


def native_loop(module: str, function: str, *uses: str) -> NativeFunction:
    """Return the compiled `function` of a module such as "grid/footprint_loop".

    `uses` names the other modules of this package whose functions are compiled into it.
    """
    sources = [_FOLDER / f"{name}.py" for name in (module, *uses)]
    return NativeFunction(f"gemmsim.memory.{module.replace('/', '.')}", function, sources)
