"""Compiles CUDA C++ with nvcc: a file of a checkout that a few lines of the manifest's own include."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gemmsim.support.errors import GemmsimError


def nvcc() -> str:
    """Return the path of nvcc. Raises GemmsimError where PATH has none."""
    found = shutil.which("nvcc")
    if found is None:
        raise GemmsimError("nvcc is not on PATH: install the CUDA toolkit, or its wheels nvidia-cuda-nvcc and -crt")
    return found


def including(file: Path, entry: str, before: Sequence[str]) -> str:
    """Return CUDA C++ that includes `file` and, where `entry` is a template with arguments, instantiates it."""
    lines = [*before, f'#include "{file}"']
    if "<" in entry:
        lines.append(f"void wild_instantiate() {{ auto kernel = &{entry}; (void)kernel; }}")
    return "\n".join(lines) + "\n"


def compile_cubin(text: str, folder: Path, arch: str, options: Sequence[str]) -> bytes:
    """Compile CUDA C++ to a cubin for `arch`. Raises GemmsimError with the first line of nvcc's that says "error".

    folder  where the text and the cubin are put, and where nvcc runs, so that files are named from there
    """
    cubin = folder / "wild.cubin"
    (folder / "wild.cu").write_text(text, encoding="utf-8")
    command = [
        nvcc(),
        "-cubin",
        f"-arch={arch}",
        *standard(options),
        "-w",
        *options,
        "-o",
        cubin.name,
        "wild.cu",
    ]
    run(command, f"nvcc cannot compile it for {arch}", folder)
    return cubin.read_bytes()


def standard(options: Sequence[str]) -> list[str]:
    """Return nvcc's option for C++17, where `options` say nothing else."""
    return [] if any(option.startswith("-std=") for option in options) else ["-std=c++17"]


def line_options(lines: bool) -> list[str]:
    """Return nvcc's option for line information, which also puts the paths of all source files into the cubin."""
    return ["-lineinfo"] if lines else []


def run(command: Sequence[str], failed: str, folder: Path | None = None) -> str:
    """Run a command, in `folder` if it is given, and return what it wrote to standard output.

    Raises GemmsimError, which begins with `failed`, where it fails, with the first line that says "error".
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line or "fatal" in line]
        raise GemmsimError(f"{failed}: {(telling or lines or ['no message'])[0]}")
    return done.stdout
