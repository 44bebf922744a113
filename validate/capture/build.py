"""Compiles the library that the driver loads into a program."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gemmsim.support.errors import GemmsimError

SOURCE = Path(__file__).with_name("inject.cpp")
LIBRARY = "libgemmsim_capture.so"


def build(folder: Path) -> Path:
    """Compile the library into a folder, and return it.

    Raises GemmsimError, one line, where there is no C++ compiler or no CUPTI, and where it does not compile.
    """
    compiler = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
    if compiler is None:
        raise GemmsimError("capturing needs a C++ compiler (g++ or clang++), and none is installed")
    headers, cupti = _cupti()
    target = folder / LIBRARY
    includes = [word for header in headers for word in ("-isystem", str(header))]
    linked = [str(cupti), f"-Wl,-rpath,{cupti.parent}", "-ldl"]
    options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    command = [compiler, *options, *includes, str(SOURCE), "-o", str(target), *linked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise GemmsimError(f"the capture library does not compile with CUPTI in {cupti.parent}: {said}")
    return target


def _cupti() -> tuple[list[Path], Path]:
    """Return the folders of the headers cupti.h and cuda.h, and CUPTI's library, all of one place."""
    for root in _roots():
        headers = [root / part for part in ("include", "extras/CUPTI/include", "targets/x86_64-linux/include")]
        holding = [folder for folder in headers if (folder / "cupti.h").exists() or (folder / "cuda.h").exists()]
        names = {name for folder in holding for name in ("cupti.h", "cuda.h") if (folder / name).exists()}
        places = [root / part for part in ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib")]
        found = [file for place in places for file in sorted(place.glob("libcupti.so*"))]
        if len(names) == 2 and found:
            return holding, found[0]
    raise GemmsimError(
        "capturing needs CUPTI, which is in NVIDIA's CUDA toolkit (set CUDA_HOME) and in the packages "
        "nvidia-cuda-cupti and nvidia-cuda-runtime"
    )


def _roots() -> Iterator[Path]:
    """Folders that may hold a CUDA toolkit, or the part of it that wheels install."""
    yield from (Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name))
    if compiler := shutil.which("nvcc"):
        yield Path(compiler).resolve().parent.parent
    yield from sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    packages = dict.fromkeys([*sys.path, *site.getsitepackages()])
    yield from (folder for one in packages for folder in sorted(Path(one, "nvidia").glob("cu[0-9]*"), reverse=True))
