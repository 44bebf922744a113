"""Readable kernel names: `sgemm` from `_Z5sgemmILi32EEvPKfPfi`, `tiled` from numba's `_ZN7kernels5tiledB2v1B...`."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\d+")


def readable_name(symbol: str) -> str:
    """The last name of the (nested) function name of an Itanium-mangled symbol; the symbol itself where it is not one."""
    if not symbol.startswith("_Z"):
        return symbol
    position = 3 if symbol[2:3] == "N" else 2
    name = ""
    while match := _LENGTH.match(symbol, position):
        name = symbol[match.end() : match.end() + int(match[0])]
        position = match.end() + int(match[0])
        if symbol[2:3] != "N":
            break
    return name or symbol
