"""What `compiled/` holds, ready to be called."""

from __future__ import annotations

from pathlib import Path

from gemmsim.native.function import NativeFunction

_FOLDER = Path(__file__).resolve().parent / "compiled"


def engine(module: str, function: str, *uses: str) -> NativeFunction:
    """`function` of compiled/`module`.py; uses: other files, by their paths from there, that are compiled into it."""
    sources = [_FOLDER / f"{name}.py" for name in (module, *uses)]
    return NativeFunction(f"gemmsim.memory.compiled.{module}", function, sources)
