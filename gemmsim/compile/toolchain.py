"""Where NVIDIA's compilation tools are, and their versions. Nothing here needs a GPU or a driver."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gemmsim.errors import GemmsimError

# Distributions whose version can change the machine code or its decoding.
PACKAGES = (
    "numba", "numba-cuda", "llvmlite", "cuda-core",
    "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm",
)  # fmt: skip
_INSTALL = 'pip install "numba-cuda[cu13]" nvidia-cuda-nvdisasm (Linux or Windows; NVIDIA publishes none for macOS)'


@dataclass(frozen=True)
class Toolchain:
    """nvdisasm    path of the disassembler, None where there is none
    versions    {distribution: version} of what is installed"""

    nvdisasm: Path | None
    versions: dict[str, str]


def find_toolchain() -> Toolchain:
    """Looks at installed distributions' file lists first, then at PATH. Starts no program."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Toolchain(_find_nvdisasm(), versions)


def _find_nvdisasm() -> Path | None:
    name = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"
    try:
        files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.name == name and path.is_file():
            return path
    found = shutil.which("nvdisasm")
    return Path(found) if found else None


def missing(tool: str) -> GemmsimError:
    return GemmsimError(f"{tool} is not installed, so this kernel cannot be compiled or decoded here: {_INSTALL}")


def disassemble(cubin: Path, symbol_index: int | None, toolchain: Toolchain) -> str:
    """nvdisasm's listing of a cubin file's code with source lines, restricted to one function's section if asked."""
    if toolchain.nvdisasm is None:
        raise missing("nvdisasm")
    command = [str(toolchain.nvdisasm), "--print-code", "--print-line-info-inline"]
    if symbol_index is not None:
        command += ["--cuda-function-index", str(symbol_index)]
    try:
        done = subprocess.run([*command, str(cubin)], capture_output=True, text=True, check=False, timeout=300)
    except OSError as error:
        raise GemmsimError(f"cannot start {toolchain.nvdisasm}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[0]
        raise GemmsimError(f"nvdisasm cannot read the cubin: {said}")
    return done.stdout
