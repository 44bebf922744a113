"""Compiles the functions of CUDA's device runtime that numba calls for cooperative grids.

NVIDIA's own (libcudadevrt) only call functions of the driver, whose code is not at hand. `grid_group.cu` has both, with
the barrier that CUDA C++ compiles into a kernel that calls `grid.sync()`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmsim.compile.nvrtc import nvrtc_compile
from gemmsim.compile.toolchain import header_folders
from gemmsim.support.errors import GemmsimError

_SOURCE = Path(__file__).with_suffix(".cu")
UNRESOLVED = "'cudaCG"  # in what nvJitLink says where they are missing: Unresolved extern function 'cudaCGSynchronize'


@cache
def grid_functions(arch: str) -> bytes:
    """Return a relocatable cubin of the functions for `arch` ("sm_90a"). Raises GemmsimError where that fails."""
    options = [f"--gpu-architecture={arch}", "--relocatable-device-code=true", "--std=c++17"]
    options += [f"--include-path={folder}" for folder in header_folders()]
    outcome = nvrtc_compile(_SOURCE.read_text(encoding="utf-8"), _SOURCE, None, options, {})
    if not outcome.cubin:
        raise GemmsimError(f"NVRTC cannot compile '{_SOURCE.name}' for {arch}: {outcome.first_error}")
    return outcome.cubin
