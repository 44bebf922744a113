"""Makes the cache key of a kernel: a hash of everything that can change its `Program`. None of it is imported."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from gemmsim.compile.compilers import compiler_versions
from gemmsim.compile.includes import include_folders, user_headers
from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource, PtxKernel, PythonKernel
from gemmsim.support.errors import GemmsimError


def cache_key(source: KernelSource, arch: str, versions: dict[str, str]) -> str:
    """Return the cache key of a kernel, 64 hexadecimal digits.

    It is a hash of source text, argument types, options, architecture, tool versions and decoder. The local modules
    that a Python file imports count too, and the files that CUDA C++ includes from its own folder or one that an option
    names, directly or not. Of headers that lie elsewhere only the version of the tool they belong to counts.
    """
    kind = type(source).__name__
    parts: dict[str, object] = {"kind": kind, "arch": arch, "versions": versions, "decoder": _decoder()}
    if isinstance(source, PythonKernel):
        parts |= {
            "function": source.function,
            "signature": [(one.dtype, one.ndim) for one in source.signature],
            "tunables": source.tunables,
            "path": source.shown_path,
            "files": _contents(_python_files(source.path), source.path.parent),
        }
    elif isinstance(source, CudaKernel):
        parts |= {
            "text": source.text,
            "path": str(source.path),
            "entry": source.entry,
            "options": source.options,
            "compiler": [source.compiler, compiler_versions(source.compiler)],
            "files": _contents(_included(source), source.path.parent),
        }
    elif isinstance(source, PtxKernel):
        parts |= {"text": source.text, "entry": source.entry, "abi": source.abi}
    elif isinstance(source, CubinKernel):
        data = hashlib.sha256(source.data).hexdigest()
        parts |= {"data": data, "name": source.path.name, "entry": source.entry, "abi": source.abi}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def shipped_key(source: PythonKernel | CudaKernel, arch: str) -> str:
    """Return the key of a kernel that ships compiled, which depends neither on the tools nor on the kernel's folder.

    The tools need not enter the key: a test compiles the shipped programs again and compares them.
    """
    return shipped_keys(source, (arch,))[arch]


def shipped_keys(source: PythonKernel | CudaKernel, archs: Iterable[str]) -> dict[str, str]:
    """Return {architecture: its `shipped_key`}. The kernel's files are read only once."""
    parts: dict[str, object]
    if isinstance(source, CudaKernel):
        parts = {
            "text": source.text,
            "entry": source.entry,
            "options": source.options,
            "files": _contents(_included(source), source.path.parent),
        }
    else:
        parts = {
            "function": source.function,
            "signature": [(one.dtype, one.ndim) for one in source.signature],
            "tunables": source.tunables,
            "files": _contents(_python_files(source.path), source.path.parent),
        }
    text = json.dumps(parts, sort_keys=True)
    return {arch: hashlib.sha256(f"{arch} {text}".encode()).hexdigest() for arch in archs}


@lru_cache(maxsize=1)
def _decoder() -> str:
    """Hash the source files of gemmsim that turn a cubin into a `Program`: after a change in them, the cache must not
    give older programs."""
    folder = Path(__file__).resolve().parent
    names = ("program.py", "parse.py", "blocks.py", "opcodes.py", "opcodes.toml", "serialize.py")
    isa = [folder.parent / "isa" / name for name in names]
    digest = hashlib.sha256()
    for file in (*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml")), *isa):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _contents(files: set[Path], folder: Path) -> dict[str, str]:
    """Return {path from `folder`: hash of the file's content}, which is the same wherever the folder lies, and where it
    is reached by a symbolic link."""
    real = folder.resolve()
    return {
        Path(os.path.relpath(file.parent.resolve() / file.name, real)).as_posix(): _hash(file) for file in sorted(files)
    }


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _python_files(path: Path) -> set[Path]:
    """Return the Python file `path`, and the files of its folder that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        try:
            names = _imported(file.read_bytes())
        except (OSError, ValueError, SyntaxError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise GemmsimError(f"cannot read '{file}': {said}") from None
        waiting += [local for name in names if (local := _local_module(file.parent, name))]
    return found


@lru_cache(64)
def _imported(text: bytes) -> tuple[str, ...]:
    """Return the names of the modules that a Python file with this text imports, those with a dot before them too."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level <= 1:
            names += [node.module] if node.module else [alias.name for alias in node.names]
    return tuple(names)


def _local_module(folder: Path, name: str) -> Path | None:
    base = folder.joinpath(*name.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _included(source: CudaKernel) -> set[Path]:
    folders = (source.path.parent, *include_folders(source.options))
    return {header.path for header in user_headers(source.text, source.path, folders)}
