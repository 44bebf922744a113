"""Makes readable kernel names from symbols: `sgemm` of `_Z5sgemmILi32EEvPKfPfi`, `tiled` of numba's
`_ZN7kernels5tiledB2v1B...`, and `void sgemm<32>(float const*, float*, int)` of the first."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from functools import lru_cache

_CAST = re.compile(r"\((?:unsigned )?(?:int|long|short|char)\)(?=-?\d)")
_LENGTH = re.compile(r"\d+")
_IN_FUNCTION = re.compile(r"E(\d+)")
_NUMBA_TAGS = re.compile(r"B\d+v\d+B\d+c\w")  # numba tags a name with a version counter and its target options


@lru_cache(maxsize=1 << 14)
def readable_name(symbol: str) -> str:
    """Return the last part of the function name in an Itanium-mangled symbol; any other symbol as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    if symbol.startswith("_ZZ"):  # a variable inside a function: its name comes last
        ends = (m for m in _IN_FUNCTION.finditer(symbol) if len(symbol) - m.end() == int(m[1]))
        return next((symbol[m.end() :] for m in ends), symbol)
    nested = symbol[2:3] == "N"
    position = 3 if nested else 2
    name = symbol
    while match := _LENGTH.match(symbol, position):
        position = match.end() + int(match[0])
        name = symbol[match.end() : position]
        if not nested:
            break
    return name


def cpp_name(symbol: str) -> str:
    """Return the whole name in C++ with template arguments and parameters, as c++filt prints it.

    Where that is not known, because the symbol is not C++'s or this machine has no C++ runtime library, it is what
    `readable_name` returns.
    """
    if not symbol.startswith("_Z") or is_numba_symbol(symbol):
        return readable_name(symbol)
    demangle = _demangler()
    return (demangle and demangle(symbol)) or _demangled_here(symbol) or readable_name(symbol)


def _demangled_here(symbol: str) -> str | None:
    """Demangle in Python, which is slower, but knows no limit: libstdc++ refuses CUTLASS's names of 1,024 and more
    characters. None where the library is not installed or does not know the symbol's form."""
    try:
        import itanium_demangler
    except ImportError:
        return None
    try:
        name = itanium_demangler.parse(symbol)
    except (NotImplementedError, AttributeError, IndexError, ValueError, RecursionError):
        return None
    if name is None:
        return None
    text = str(name).replace("_GLOBAL__N_1", "(anonymous namespace)")
    for old, new in (("(bool)1", "true"), ("(bool)0", "false")):
        text = text.replace(old, new)
    return _CAST.sub("", text)  # `f<(int)3>` is `f<3>` to c++filt


def parameter_types(symbol: str) -> tuple[str, ...]:
    """Return the types of a function's parameters in C++, as far as its symbol says them: none for `extern "C"`."""
    name = cpp_name(symbol)
    if not name.endswith(")"):
        return ()
    types, depth, end = [], 0, len(name) - 1
    for at in range(end, -1, -1):  # from the end, as names of functions may have brackets too
        depth += (name[at] in ")>]") - (name[at] in "(<[")
        if depth == 0 or (depth == 1 and name[at] == ","):
            types.append(name[at + 1 : end].strip())
            end = at
        if depth == 0:
            break
    return tuple(reversed(types)) if types != [""] else ()


@lru_cache(maxsize=1)
def _demangler() -> Callable[[str], str | None] | None:
    """Find the demangler of the C++ ABI in the runtime library, which llvmlite needs too; None where there is none."""
    try:
        library = ctypes.CDLL({"darwin": "libc++.1.dylib", "win32": ""}.get(sys.platform, "libstdc++.so.6"))
        function, free = library.__cxa_demangle, library.free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.argtypes = [ctypes.c_void_p]

    def demangle(symbol: str) -> str | None:
        status = ctypes.c_int()
        text = function(symbol.encode(), None, None, ctypes.byref(status))
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode(errors="replace")
        finally:
            free(text)

    return demangle


def is_numba_symbol(symbol: str) -> bool:
    """Whether numba named this kernel, so that its arrays are passed as structures, member by member."""
    return symbol.startswith("_ZN") and bool(_NUMBA_TAGS.search(symbol))
