"""Finds NVIDIA's compilation tools and their versions. Nothing here needs a GPU or a driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from gemmsim.support.errors import GemmsimError

# Distributions whose version can change the machine code or its decoding.
PACKAGES = (
    "numba", "numba-cuda", "llvmlite", "cuda-core", "cuda-bindings",
    "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-nvdisasm",
)  # fmt: skip
# Distributions with headers that kernels include, and a file that shows which folder to include from. nvidia-cuda-crt
# may be missing.
HEADER_PACKAGES = {
    "nvidia-cuda-runtime": "cuda_runtime.h",
    "nvidia-cuda-cccl": "cub/cub.cuh",
    "nvidia-cuda-crt": "crt/mma.h",
}
_INSTALL = 'pip install "numba-cuda[cu13]" nvidia-cuda-nvdisasm (NVIDIA publishes them for Linux, not for macOS)'


def tool_versions() -> dict[str, str]:
    """Return {distribution: version} of the installed tools. No program is started, and no tool is imported."""
    return dict(_versions())


@lru_cache(maxsize=1)
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple(versions_of(PACKAGES).items())


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    """Return {distribution: version} of those of `packages` that are installed, in their order.

    The name of the folder that pip makes for a distribution says its name and version. Only for a distribution without
    such a folder importlib.metadata is asked: to import that takes a tenth of the time of a small prediction.
    """
    found = _from_folders()
    versions = {package: found.get(_normal(package)) or _from_metadata(package) for package in packages}
    return {package: version for package, version in versions.items() if version}


@lru_cache(maxsize=1)
def _from_folders() -> dict[str, str]:
    """Return {normalised name: version} of all distributions that have a `.dist-info` folder on the path for imports.

    Of two distributions with one name the first on the path counts, as for imports.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        with suppress(OSError):
            for entry in os.listdir(folder or os.curdir):  # noqa: PTH208 - thousands of Paths otherwise
                name, dash, version = entry.removesuffix(".dist-info").partition("-")
                if dash and entry.endswith(".dist-info"):
                    found.setdefault(_normal(name), version)
    return found


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _from_metadata(package: str) -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def missing(what: str) -> GemmsimError:
    """Return the error that says that `what`, a part of the toolchain, is missing."""
    return GemmsimError(f"{what} is not installed, so this kernel cannot be compiled or decoded here: {_INSTALL}")


def find_nvdisasm() -> Path:
    """Find the nvdisasm of the wheel or, where that is not installed, on PATH. Raises GemmsimError where neither is
    there."""
    name = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"
    for path in installed_files("nvidia-cuda-nvdisasm"):
        if path.name == name and path.is_file():
            return path
    found = shutil.which("nvdisasm")
    if found is None:
        raise missing("nvdisasm")
    return Path(found)


def header_folders() -> tuple[Path, ...]:
    """Find the folders of the CUDA headers that are installed as wheels, for `#include <cuda_fp16.h>` and the like."""
    folders = []
    for package, marker in HEADER_PACKAGES.items():
        for path in installed_files(package):
            if path.as_posix().endswith(f"/{marker}"):
                folders.append(path.parents[marker.count("/")])
    return tuple(dict.fromkeys(folders))


# How long nvdisasm may take. On an idle machine it listed a cubin of 400 kB in 1.2 s.
_LEAST_SECONDS, _BYTES_PER_SECOND = 40.0, 50_000


@cache
def installed_files(package: str) -> tuple[Path, ...]:
    """Return a distribution's files. The list is kept: there are thousands of headers, and each kernel needs it."""
    import importlib.metadata

    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    return tuple(Path(str(file.locate())) for file in files)


def disassemble(cubin: Path, symbol_indices: Sequence[int] | None) -> str:
    """Return nvdisasm's listing, with source lines, of the sections of some functions or of all.

    symbol_indices  the functions' numbers in the cubin's symbol table; None: every function

    Raises GemmsimError where nvdisasm is missing, refuses the file, or goes on without end, as it does for some damaged
    files.
    """
    tool = find_nvdisasm()
    arguments = ["--print-code", "--print-line-info-inline", str(cubin)]
    if symbol_indices is not None:
        arguments += ["--cuda-function-index", ",".join(map(str, symbol_indices))]
    limit_s = _LEAST_SECONDS + cubin.stat().st_size / _BYTES_PER_SECOND
    try:
        done = subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=False, timeout=limit_s)
    except OSError as error:
        raise GemmsimError(f"cannot start {tool}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GemmsimError(f"nvdisasm did not finish within {limit_s:.0f} s: the cubin may be damaged") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[0]
        raise GemmsimError(f"nvdisasm cannot read the cubin: {said}")
    return done.stdout
