"""Compiles CUDA C++ with nvcc, which reads the host code beside the kernels too and needs a C++ compiler for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from gemmsim.compile.entries import find_entry, matching
from gemmsim.compile.sections import kernel_symbols
from gemmsim.compile.source import CudaKernel
from gemmsim.compile.toolchain import installed_files
from gemmsim.support.errors import GemmsimError

_SECONDS = 900  # CUTLASS takes minutes
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
_ERROR = re.compile(r"\berror\b|\bfatal\b", re.IGNORECASE)


def compile_with_nvcc(source: CudaKernel, arch: str) -> tuple[bytes, str | None]:
    """Compile `source` for `arch`; return the cubin and the symbol of the source's entry (None where it names none).

    A template that the file does not instantiate itself is instantiated for the entry (`sgemm<128,128,8>`). Raises
    GemmsimError with the first error of nvcc, or where nvcc or the C++ compiler that it needs is missing.
    """
    cubin = _compile(source, arch, "")
    if source.entry is None:
        return cubin, None
    symbols = kernel_symbols(cubin)
    base, bracket, _arguments = source.entry.partition("<")
    if bracket and not matching(source.entry, symbols):
        before = set(symbols)
        cubin = _compile(source, arch, f"static void *gemmsim_entry = (void *)({source.entry});\n")
        symbols = kernel_symbols(cubin)
        # The arguments may be names for other types, so that the symbol does not show what was asked for.
        made = [symbol for symbol in symbols if symbol not in before] or matching(base, symbols)
        if len(made) == 1:
            return cubin, made[0]
    return cubin, find_entry(source.entry, symbols, f"'{source.path.name}'")


@lru_cache(maxsize=1)
def find_nvcc() -> Path:
    """Find nvcc: on PATH, in the folder CUDA_HOME, or that of its wheel. Raises GemmsimError where it is in none."""
    home = os.environ.get("CUDA_HOME")
    candidates = [shutil.which("nvcc"), shutil.which("nvcc", path=str(Path(home) / "bin")) if home else None]
    candidates += [str(path) for path in installed_files("nvidia-cuda-nvcc") if path.name == "nvcc" and path.is_file()]
    for path in candidates:
        if path:
            return Path(path)
    raise GemmsimError("nvcc is neither on PATH nor installed: pip install 'gemmsim[nvcc]', or use --compiler nvrtc")


@lru_cache(maxsize=1)
def nvcc_version() -> str:
    """Return the version of nvcc, "13.0.88"."""
    said = _run([str(find_nvcc()), "--version"]).stdout
    found = _VERSION.search(said)
    return found[1] if found else "of unknown version"


def _compile(source: CudaKernel, arch: str, behind: str) -> bytes:
    """Compile the text of `source`, and then the text `behind`."""
    with tempfile.TemporaryDirectory(prefix="gemmsim-") as folder:
        main, cubin = Path(folder) / "main.cu", Path(folder) / "main.cubin"
        main.write_text(f'#line 1 "{source.path}"\n{source.text}\n{behind}', encoding="utf-8")
        options = [*source.options, "-lineinfo", f"-I{source.path.parent}"]
        if not any(option.startswith(("-arch", "--gpu-architecture")) for option in source.options):
            options.append(f"-arch={arch}")
        done = _run([str(find_nvcc()), "-cubin", *options, str(main), "-o", str(cubin)])
        if done.returncode or not cubin.is_file():
            raise GemmsimError(f"nvcc cannot compile '{source.path.name}' for {arch}: {_first_error(done)}")
        return cubin.read_bytes()


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    except OSError as error:
        raise GemmsimError(f"cannot start {command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GemmsimError(f"{command[0]} did not finish within {_SECONDS // 60} minutes") from None


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    telling = [line for line in lines if _ERROR.search(line)]
    return (telling or lines or [f"exit code {done.returncode}"])[0]
