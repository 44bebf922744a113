"""Finds the types that a kernel's parameters are declared with: machine code itself knows only how long they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmsim.compile.declarations import declarations, device_macros, parameters_of
from gemmsim.compile.names import parameter_types
from gemmsim.compile.source import CudaKernel, KernelSource, PtxKernel

_INTEGER_WORDS = frozenset(("signed", "unsigned", "char", "short", "int", "long"))
_FIXED = {f"{'u' * unsigned}int{bits}_t": f"{'iu'[unsigned]}{bits}" for bits in (8, 16, 32, 64) for unsigned in (0, 1)}
_DTYPES = _FIXED | {
    "float": "f32",
    "double": "f64",
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2",
    "bool": "bool",
    "size_t": "u64",
}
# Of PTX only what a compiler writes for a number of that kind: .b32 may be anything.
_PTX_DTYPES = {f".{kind}{bits}": f"{'u' if kind == 'u' else 'i'}{bits}" for kind in "us" for bits in (8, 16, 32, 64)}
_PTX_DTYPES |= {".f32": "f32", ".f64": "f64"}
_PTX_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?(\.\w+)")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)


def declared_types(source: KernelSource, symbol: str, abi: str = "c") -> tuple[str, ...]:
    """Return the type of each parameter of a kernel as its source or symbol says it: "int", "float*", ".f32" in PTX.

    A mangled symbol has resolved all names of types. Source text is read only where the symbol says nothing, as that of
    `extern "C"`. Empty where no types are known, and for numba's kernels (`abi`), whose arrays are several parameters.
    """
    if abi == "numba":
        return ()
    if types := parameter_types(symbol):
        return types
    if isinstance(source, PtxKernel):
        return _in_ptx(source.text, symbol)
    return _in_source(source.text, symbol) if isinstance(source, CudaKernel) else ()


def dtype_of(declared: str) -> str | None:
    """Return the dtype of `support.dtypes` of a number that is declared so; None for pointers, structs and all else."""
    if declared.startswith("."):
        return _PTX_DTYPES.get(declared)
    words = _QUALIFIERS.sub(" ", declared).split()
    if words and _INTEGER_WORDS.issuperset(words):
        bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
        return f"{'u' if 'unsigned' in words else 'i'}{bits}"
    return _DTYPES.get(words[0].removeprefix("std::")) if len(words) == 1 else None


def _in_source(text: str, name: str) -> tuple[str, ...]:
    """Return the types of a kernel that the text declares; empty where declarations differ, as under `#if`."""
    found = set(parameters_of(text, declarations(text, device_macros([text])), name))
    macros = set(_MACRO.findall(text))
    return tuple(_without_name(one, macros) for one in found.pop()) if len(found) == 1 else ()


def _without_name(words: Sequence[str], macros: set[str]) -> str:
    """Return the type of a parameter, of which `words` are the tokens; "" where a macro may change it."""
    if macros.intersection(words):
        return ""
    words = [word for word in words if not _QUALIFIERS.fullmatch(word)]
    if "[" in words:
        return " ".join(words[: words.index("[") - 1]) + "*"
    # The last word is the parameter's name, but of `float` and `unsigned int` alone.
    last = words[-1] if words else ""
    named = len(words) > 1 and last not in _INTEGER_WORDS and last not in _DTYPES and last[0] not in "*&>"
    return " ".join(words[:-1] if named else words)


def _in_ptx(text: str, symbol: str) -> tuple[str, ...]:
    found = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(([^)]*)\)", text)
    return tuple(_PTX_PARAMETER.findall(found[1])) if found else ()
