"""Compiles numba.cuda kernels to a cubin as numba's own dispatcher does for a launch, but without a GPU."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from gemmsim.compile.grid_group import UNRESOLVED, grid_functions
from gemmsim.compile.link import link
from gemmsim.compile.numba_lines import flagged_as_nvrtc
from gemmsim.compile.numba_names import numbered
from gemmsim.compile.source import ArgType, PythonKernel
from gemmsim.compile.toolchain import missing, tool_versions
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError, nearest


def compile_python(source: PythonKernel, arch: str) -> bytes:
    """Compile `source` to a cubin for `arch` ("sm_90"). The kernel's file is loaded, which runs it.

    Raises GemmsimError, one line, for a missing toolchain or function, a file that fails, or a kernel that numba
    refuses.
    """
    _numba_cuda()  # before the user's file, which would fail on its own import of numba
    return compile_numba(load_kernel(source), source.signature, arch)


def ptx_of_python(source: PythonKernel, arch: str) -> str | None:
    """Return the PTX of which `compile_python` makes the cubin; None where it is made of several. Raises as it does."""
    _numba_cuda()
    parts = _compiled_parts(load_kernel(source), source.signature, arch)
    if not parts.lto:
        text = parts.parts[0] if len(parts.parts) == 1 else None
        return text if isinstance(text, str) else None
    return _linked(parts, "ptx").decode().rstrip("\0")


@dataclass(frozen=True)
class _Parts:
    """What numba made of a kernel, as `link` takes it, and the options with which it is to be linked."""

    parts: Sequence[Any]
    arch: str
    max_registers: int | None
    lto: bool


def compile_numba(kernel: Any, signature: tuple[ArgType, ...], arch: str) -> bytes:
    """Compile a `@cuda.jit` kernel, or a plain function as `@cuda.jit` without options would.

    The decorator's options fastmath, max_registers, launch_bounds, opt and lto are followed. numba-cuda links LTO-IR
    unless the kernel says `lto=False`, and so does this function: the two ways give different code (with LTO,
    `fastmath=True` does not flush denormals). Line information is included; it changes no instruction.

    Arrays are typed C-contiguous, aligned and mutable, as numba types a NumPy or device array at a launch; "bf16" is
    numba-cuda's own bfloat16.
    """
    return _linked(_compiled_parts(kernel, signature, arch))


def _compiled_parts(kernel: Any, signature: tuple[ArgType, ...], arch: str) -> _Parts:
    cuda = _numba_cuda()
    dispatcher = kernel if hasattr(kernel, "py_func") else cuda.jit(kernel)
    options = dispatcher.targetoptions
    name = dispatcher.py_func.__name__
    if options.get("link"):
        raise GemmsimError(f"kernel '{name}' links other code (link=...), which gemmsim does not support")
    number = int(arch.removeprefix("sm_"))
    # For a device of 9.0 or later, numba compiles with the architecture's own features ("sm_90a").
    suffix = "a" if number >= 90 else ""
    capability = (number // 10, number % 10, suffix) if suffix else (number // 10, number % 10)
    lto = bool(options.get("lto", True))
    own = numbered(dispatcher.py_func, signature, arch, sorted((key, str(value)) for key, value in options.items()))
    try:
        with _quick(), _device_functions(capability), flagged_as_nvrtc(), own:
            parts, _ = cuda.compile_all(
                dispatcher.py_func,
                tuple(numba_type(one.dtype, one.ndim) for one in signature),
                device=False,
                abi="numba",
                cc=capability,
                lineinfo=True,
                fastmath=options.get("fastmath", False),
                opt=options.get("opt", True),
                launch_bounds=options.get("launch_bounds"),
                output="ltoir" if lto else "ptx",
            )
    except Exception as error:  # numba raises dozens of types, and all say that it cannot compile this function
        raise GemmsimError(f"numba cannot compile '{name}' for {arch}: {_reason(error)}") from error
    return _Parts(parts, f"{arch}{suffix}", options.get("max_registers"), lto)


def _linked(made: _Parts, kind: str = "cubin") -> bytes:
    """Link what numba made of a kernel; where it uses `cuda.cg`, with the functions of grids. numba tells only its own
    linker that they are needed."""
    try:
        return link(made.parts, made.arch, made.max_registers, lto=made.lto, made=kind)
    except GemmsimError as error:
        if UNRESOLVED not in str(error):
            raise
    parts = [*made.parts, grid_functions(made.arch)]
    return link(parts, made.arch, made.max_registers, lto=made.lto, made=kind)


def _numba_cuda() -> Any:
    if "numba-cuda" not in tool_versions():  # without it, an older numba.cuda that is part of numba would be found
        raise missing("numba-cuda")
    try:
        from numba import cuda
    except ImportError:
        raise missing("numba-cuda") from None
    return cuda


@contextmanager
def _quick() -> Iterator[None]:
    """Within this context manager, numba compiles in less than its usual time, to the same code.

    numba makes millions of objects and keeps them until it is done with a kernel, so the garbage collector rests.
    Its flags are keys of dictionaries: they are equal where the values that were set are, which is quicker to see than
    that all values are, and numba's own hash of them depends on nothing but their class.
    """
    from numba.cuda.core.targetconfig import TargetConfig

    usual, enabled = TargetConfig.__eq__, gc.isenabled()

    def equal(self: Any, other: Any) -> Any:
        return (type(self) is type(other) and self._values == other._values) or usual(self, other)

    hashed, TargetConfig.__eq__, TargetConfig.__hash__ = TargetConfig.__hash__, equal, lambda self: hash(type(self))
    gc.disable()
    try:
        yield
    finally:
        TargetConfig.__eq__, TargetConfig.__hash__ = usual, hashed
        if enabled:
            gc.enable()


@contextmanager
def _device_functions(capability: tuple[Any, ...]) -> Iterator[None]:
    """Within this context manager, the `device=True` functions that a kernel calls compile without a GPU.

    capability  the compute capability to compile for, (major, minor) and perhaps a suffix

    When numba-cuda 0.30 meets such a function it asks the current GPU for its compute capability, even where the caller
    names one, and it takes line information from the function's own decorator only.
    """
    from numba.cuda import dispatcher

    asked, compiled = dispatcher.get_current_device, dispatcher.CUDADispatcher.compile_device

    def compile_device(self: Any, *arguments: Any, **named: Any) -> Any:
        self.targetoptions["lineinfo"] = True
        return compiled(self, *arguments, **named)

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability[:2])
    dispatcher.CUDADispatcher.compile_device = compile_device
    try:
        yield
    finally:
        dispatcher.get_current_device, dispatcher.CUDADispatcher.compile_device = asked, compiled


def load_kernel(source: PythonKernel) -> Any:
    """Load the file of `source` and return the dispatcher or function that it names."""
    module = _load(source)
    where = source.path.name
    if not hasattr(module, source.function):
        public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise GemmsimError(f"'{where}' has no function '{source.function}'{nearest(source.function, public)}")
    found = getattr(module, source.function)
    if source.tunables is not None:
        try:
            found = found(**dict(source.tunables))
        except Exception as error:  # the user's code
            raise GemmsimError(f"{where}:{source.function} failed: {type(error).__name__}: {error}") from error
    if not (hasattr(found, "py_func") or hasattr(found, "__code__")):
        raise GemmsimError(f"{where}:{source.function} is no kernel, but of type {type(found).__name__}")
    return found


def _load(source: PythonKernel) -> ModuleType:
    try:
        return _run(source)
    except GemmsimError:
        raise
    except SystemExit as error:
        raise GemmsimError(
            f"'{source.path.name}' ends the process (exit status {error.code}) where it is imported: what it does as a "
            'program goes below `if __name__ == "__main__":`'
        ) from None
    except Exception as error:  # whatever the user's file raises
        raise GemmsimError(f"'{source.path.name}' cannot be loaded: {type(error).__name__}: {error}") from error


def _run(source: PythonKernel) -> ModuleType:
    """Load the file of `source` as a new module at each call: numba keeps the code of a device function for the first
    architecture only."""
    folder = str(source.path.parent)
    if source.module is not None:
        spec = importlib.util.find_spec(source.module)
    else:
        spec = importlib.util.spec_from_file_location(f"_gemmsim_user_{source.path.stem}", source.path)
    if spec is None or spec.loader is None:
        raise GemmsimError(f"'{source.path}' is no Python file")
    module = importlib.util.module_from_spec(spec)
    if source.module is None:
        sys.modules[spec.name] = module  # dataclasses and pickle look a module up by name
        sys.path.insert(0, folder)  # as `python FILE.py` does, so that the file finds its neighbours
    try:
        spec.loader.exec_module(module)
    finally:
        if source.module is None:
            sys.path.remove(folder)
    return module


def numba_type(dtype: str, ndim: int = 0) -> Any:
    """Return numba-cuda's type of a scalar (`ndim` 0), or of a C-contiguous array with `ndim` dimensions."""
    from numba.cuda import types

    scalar = getattr(types, "bfloat16" if dtype == "bf16" else DTYPES[dtype].numpy_name)
    return types.Array(scalar, ndim, "C") if ndim else scalar


def _reason(error: Exception) -> str:
    """Return the first line of numba's long message that says something about the user's code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "-", "During"))]
    return f"{type(error).__name__}: {(telling or lines or [''])[0]}"
