"""Defines `Analyzer`, which the fixture `analyze` gives to a test: it makes launches and predicts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from gemmsim.api import analyze
from gemmsim.calls.kernels import plain
from gemmsim.calls.launches import Dims, Options, launch_spec
from gemmsim.calls.trace import Trace
from gemmsim.gpu import GpuSpec


@dataclass(frozen=True, repr=False)
class Analyzer:
    """Predicts launches.

    gpu     the GPU to predict for, where a call names no other
    folder  the folder in which a file that a test names is looked for first; next comes the current folder
    known   earlier predictions, by the `repr` of the LaunchSpec; only of launches whose arguments were all given as
            text
    """

    gpu: GpuSpec | str
    folder: Path
    known: dict[str, Trace] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<analyze for {self.gpu if isinstance(self.gpu, str) else self.gpu.name}>"

    def __call__(
        self,
        kernel: str | Callable[..., Any],
        *,
        grid: Dims | None = None,
        block: Dims | None = None,
        args: Sequence[object] | Mapping[str, object] = (),
        arrays: Mapping[str, object] | None = None,
        symbols: Mapping[str, object] | None = None,
        tunables: dict[str, int] | None = None,
        gpu: GpuSpec | str | None = None,
        **options: Unpack[Options],
    ) -> Trace:
        """Predict a launch; `options` mean the same as in `gemmsim analyze`.

        kernel   "tiled" (gemmsim list kernels), "my.py:my_gemm", "my.cu", or a numba.cuda function
        args     one for each parameter: text as after --arg ("f32[256,256]", "i32=256", "{...}"), a NumPy array or
                 scalar, a struct (ctypes, structured NumPy, `by_value`), a list of arrays for an array of pointers;
                 or a mapping {name: argument}
        arrays   {name: array} of arrays that are no parameters, but are referred to as "&NAME"
        symbols  {name: content} of variables of the kernel's module that the host sets

        Raises GemmsimError, with one clear line, for a launch that cannot be made or executed.
        """
        in_file = _in_file(kernel)
        launch: dict[str, Any] = {"grid": grid, "block": block, "args": args, "arrays": arrays, "symbols": symbols}
        launch |= {"tunables": tunables, **options}
        spec = launch_spec(in_file or kernel, self.gpu if gpu is None else gpu, launch, self._path)
        given = (
            *(args.values() if isinstance(args, Mapping) else args),
            *(arrays or {}).values(),
            *(symbols or {}).values(),
        )
        if not all(isinstance(arg, str) for arg in given):
            return Trace(spec, analyze(spec))
        key = repr(spec)
        if key not in self.known:
            self.known[key] = Trace(spec, analyze(spec))
        return self.known[key]

    def _path(self, file: str) -> str:
        in_folder = self.folder / file
        return str(in_folder) if in_folder.is_file() else file


def _in_file(kernel: object) -> str | None:
    """Return `FILE.py:function` of a function that its file has under its name, so that its code is kept in the cache.

    None for anything else: a closure, a function of a program's main file or of a notebook.
    """
    function = plain(kernel)
    code = getattr(function, "__code__", None)
    if code is None or function.__module__ == "__main__" or function.__qualname__ != function.__name__:
        return None
    return f"{code.co_filename}:{function.__name__}" if Path(code.co_filename).is_file() else None
