"""Makes readable kernel names from symbols: `sgemm` of `_Z5sgemmILi32EEvPKfPfi`, `tiled` of numba's
`_ZN7kernels5tiledB2v1B...`."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\d+")
_NUMBA_TAGS = re.compile(r"B\d+v\d+B\d+c\w")  # numba tags a name with a version counter and its target options


def readable_name(symbol: str) -> str:
    """Return the last part of the function name in an Itanium-mangled symbol; any other symbol as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    nested = symbol[2:3] == "N"
    position = 3 if nested else 2
    name = symbol
    while match := _LENGTH.match(symbol, position):
        position = match.end() + int(match[0])
        name = symbol[match.end() : position]
        if not nested:
            break
    return name


def is_numba_symbol(symbol: str) -> bool:
    """Whether numba named this kernel, so that its arrays are passed as structures, member by member."""
    return symbol.startswith("_ZN") and bool(_NUMBA_TAGS.search(symbol))
