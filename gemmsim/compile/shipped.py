"""Finds the compiled programs that ship with the package for machines without a compiler, in the kernels' folder
`programs`.

`index.json` there says which file holds the program of which key, and with which tools all were made. A changed kernel
has another key (`key.shipped_key`), so that the program of its former text is never used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from gemmsim.compile.key import shipped_key
from gemmsim.compile.source import CudaKernel, KernelSource, PythonKernel
from gemmsim.isa.program import Program
from gemmsim.isa.serialize import program_from_bytes
from gemmsim.support.errors import GemmsimError

FOLDER, INDEX = "programs", "index.json"
NEEDED = ("numba-cuda", "cuda-core", "nvidia-cuda-nvdisasm")  # without one of them nothing is compiled and decoded


@dataclass(frozen=True)
class Index:
    """The content of `index.json`.

    toolchain  {tool: version} with which all programs were made
    files      {key: name of the file with the program}
    refused    {key: why the compiler made no program}
    """

    toolchain: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def read_index(folder: Path) -> Index:
    """Read the index in `folder`; it is empty where there is none. Raises GemmsimError for a damaged index."""
    path = folder / INDEX
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Index(dict(data["toolchain"]), dict(data["files"]), dict(data["refused"]))
    except FileNotFoundError:
        return Index()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise GemmsimError(f"cannot read {path}: {error}") from None


def shipped_program(source: KernelSource, arch: str, installed: dict[str, str]) -> Program | None:
    """Return the program that compiling `source` would give; None where the package has none or other tools are
    installed.

    installed  {tool: version} of the tools here. Where they can compile but have other versions than the index
               names, their own result is wanted. Where tools are missing, the shipped program is wanted.

    Raises GemmsimError, with the compiler's reason, for a kernel that it refused when the programs were made.
    """
    in_ladder = isinstance(source, CudaKernel) and source.in_ladder
    if not in_ladder and not (isinstance(source, PythonKernel) and source.module):
        return None
    assert isinstance(source, CudaKernel | PythonKernel)
    folder = source.path.parent / FOLDER
    if not (folder / INDEX).is_file():
        return None
    index = read_index(folder)
    if can_compile(installed) and installed != index.toolchain:
        return None
    key = shipped_key(source, arch)
    if key in index.refused:
        raise GemmsimError(index.refused[key])
    if key not in index.files:
        return None
    path = folder / index.files[key]
    return _read(path, path.stat().st_mtime_ns, arch)


@lru_cache(4)
def _read(path: Path, _changed_ns: int, arch: str) -> Program | None:
    """Read the program for an architecture from a file. The last few programs stay in memory."""
    program = program_from_bytes(path.read_bytes(), arch)
    return program and replace(program, source=_sources(program, path.parent.parent))


def can_compile(installed: dict[str, str]) -> bool:
    return all(tool in installed for tool in NEEDED)


def _sources(program: Program, folder: Path) -> dict[str, str]:
    """Read {file: text} of the files that source lines name from the kernels' folder; the key ensures that they are the
    files that were compiled."""
    names = sorted({place.file for one in program.instructions for place in one.sources})
    found = {name: folder / Path(name).name for name in names}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items() if path.is_file()}
