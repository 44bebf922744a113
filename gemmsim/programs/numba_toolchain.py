"""Changes three things in how numba-cuda compiles a program's kernels, which are so for a single kernel, too.

Source lines are written into the code, so that findings have a line, and so that code of NVRTC can be linked to it.
The functions for cooperative grids of `compile.grid_group` are linked in place of NVIDIA's libcudadevrt, which calls
functions of the driver that no file has.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

from gemmsim.compile.grid_group import grid_functions
from gemmsim.compile.numba_lines import flag_as_nvrtc

_DONE = "_gemmsim"
_CONFLICT = "linking module flags 'Debug Info Version'"


def look_again() -> None:
    """Let numba.cuda look for the driver again, where it was imported while there was none, and remembers that."""
    module = sys.modules.get("numba.cuda.cudadrv.driver")
    if module is not None and module.driver.initialization_error is not None:
        module.driver.__init__()


def adapt(arch: str) -> None:
    """Make both changes, where the program has imported numba.cuda and they are not made yet; for kernels on `arch`."""
    codegen, dispatcher = (sys.modules.get(f"numba.cuda.{name}") for name in ("codegen", "dispatcher"))
    if codegen is None or dispatcher is None or hasattr(codegen, _DONE):
        return
    setattr(codegen, _DONE, True)
    flag_as_nvrtc()
    library = codegen.get_cudalib
    compile_cuda, kernels = dispatcher.compile_cuda, dispatcher.CUDADispatcher
    compile_kernel, lines = kernels.compile, [True]

    @functools.wraps(library)
    def own_library(name: str, *args: Any, **options: Any) -> Any:
        return str(_grid_library(arch)) if name == "cudadevrt" else library(name, *args, **options)

    @functools.wraps(compile_cuda)
    def with_lines(*args: Any, **options: Any) -> Any:
        wanted = options.get("lineinfo") or (lines[0] and not options.get("debug"))
        return compile_cuda(*args, **options | {"lineinfo": bool(wanted)})

    @functools.wraps(compile_kernel)
    def linked(self: Any, signature: Any) -> Any:
        """Compile a kernel; without lines where code is linked to it that cannot be joined with them."""
        try:
            return compile_kernel(self, signature)
        except Exception as error:
            if _CONFLICT not in str(error):
                raise
        lines[0] = False
        try:
            return compile_kernel(self, signature)
        finally:
            lines[0] = True

    kernels.compile = linked
    codegen.get_cudalib = own_library  # type: ignore[attr-defined]
    dispatcher.compile_cuda = with_lines  # type: ignore[attr-defined]


@functools.cache
def _grid_library(arch: str) -> Path:
    """Write the functions for cooperative grids to a file, which stays while the process runs."""
    folder = tempfile.TemporaryDirectory(prefix="gemmsim-")
    _folders.append(folder)
    path = Path(folder.name) / "grid_group.cubin"
    path.write_bytes(grid_functions(arch))
    return path


_folders: list[tempfile.TemporaryDirectory[str]] = []
