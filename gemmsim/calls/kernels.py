"""Makes a kernel source of what Python code gives as one: a numba function, CUDA C++ text, a file, a rung's name."""

from __future__ import annotations

import hashlib
import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from gemmsim.cli.compiling import CompileOptions
from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource
from gemmsim.launch.cases import signature
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

_SUFFIXES = (".cu", ".ptx", ".cubin", ".fatbin", ".so", ".o")
_compiled: WeakKeyDictionary[Any, dict[tuple[object, ...], bytes]] = WeakKeyDictionary()


def is_text(kernel: object) -> bool:
    """Return whether a kernel is given as CUDA C++ text, and not as a name."""
    return isinstance(kernel, str) and ("__global__" in kernel or "\n" in kernel)


def is_function(kernel: object) -> bool:
    """Return whether a kernel is given as a numba.cuda kernel or a plain function."""
    return hasattr(plain(kernel), "__code__")


def plain(kernel: Any) -> Any:
    """Return the Python function of a numba.cuda kernel; anything else as it is."""
    return getattr(kernel, "py_func", kernel)


def named(kernel: object, in_folder: Callable[[str], str] = str) -> tuple[str | None, str | None]:
    """Return (name of a built-in kernel, None), or (None, TARGET) for a kernel in a file.

    in_folder  returns where a file lies

    Raises GemmsimError for what is no text and no path.
    """
    if not isinstance(kernel, str | Path):
        forms = "a rung's name, 'my.py:my_gemm', a file, CUDA C++ text or a numba.cuda function"
        raise GemmsimError(f"{kernel!r} is no kernel: give {forms}")
    text = str(kernel)
    file, colon, function = text.rpartition(":")
    if colon and file.endswith(".py"):
        return None, f"{in_folder(file)}:{function}"
    in_file = isinstance(kernel, Path) or text.endswith(_SUFFIXES) or "/" in text or os.sep in text
    return (None, in_folder(text)) if in_file else (text, None)


def text_source(text: str, entry: str | None, compiling: CompileOptions) -> tuple[KernelSource, str]:
    """Return the source of CUDA C++ text, which may include files of the current folder, and its name for reports."""
    compiler, options = compiling.given()
    return CudaKernel(text, Path.cwd() / "kernel.cu", entry, options, compiler or "nvrtc"), entry or "kernel"


def function_source(kernel: Any, args: Sequence[Argument] | None, arch: str) -> tuple[KernelSource, str]:
    """Compile a function as it is, with what it refers to at this moment, and return its code and its name.

    So a closure works, and a function of a notebook's cell, which have no file that could be loaded. A function that
    was compiled for these types before is compiled again only where what it refers to has changed.
    """
    function = plain(kernel)
    name = function.__name__
    if args is None:
        raise GemmsimError(f"{name}: a numba kernel takes arrays and scalars, not structs or addresses in arrays")
    types, known = signature(args), _compiled.setdefault(function, {})
    key = (types, arch, repr(getattr(kernel, "targetoptions", None)), _seen(function))
    if key not in known:
        from gemmsim.compile.python_kernel import compile_numba  # imports numba

        _forget(function)  # numba keeps the code of a device function for the first architecture only
        try:
            known[key] = compile_numba(kernel, types, arch)
        finally:
            _forget(function)
    # The texts of its lines belong to the key of the cache, as they are no part of the machine code.
    lines = "".join(linecache.getlines(function.__code__.co_filename))
    digest = hashlib.sha256(lines.encode()).hexdigest()[:16]
    return CubinKernel(known[key], Path(f"{name}-{digest}.cubin"), None, "numba", of_function=True), name


def _referred(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of all that a function refers to: globals, attributes of modules, variables of a closure."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{one}", vars(value).get(one)) for one in names)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _seen(function: Any, within: tuple[Any, ...] = ()) -> tuple[object, ...]:
    """Return a key of a function's code and of all numbers and functions that it refers to."""
    code = function.__code__
    found: list[object] = [code.co_code, repr(code.co_consts), code.co_firstlineno]
    for name, value in _referred(function):
        if isinstance(value, int | float | str | tuple):
            found.append((name, repr(value)))
        elif is_function(value) and plain(value) not in (*within, function):
            found.append((name, _seen(plain(value), (*within, function))))
    return tuple(found)


def _forget(function: Any, within: tuple[Any, ...] = ()) -> None:
    """Have numba forget the code of all device functions that a function calls."""
    for _, value in _referred(function):
        if hasattr(value, "py_func") and value.py_func not in (*within, function):
            value.overloads.clear()
            _forget(value.py_func, (*within, function))
