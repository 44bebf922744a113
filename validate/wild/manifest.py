"""Reads the manifest: which kernels of which public repositories are run, how they are launched and checked.

Each file `manifest/*.toml` is about one repository. It holds names and numbers, and nothing of the repository's code.

    repository = "owner/name"
    commit = "..."                      the commit that the launches were written for
    licence = "MIT"                     what the repository says of itself; "none" where it says nothing

    [[kernel]]
    name = "warptiling"
    file = "src/kernel.cuh"             from the repository's root
    compile = ["nvcc", "nvrtc"]         each is a case of its own: nvcc, nvrtc, numba, triton, host
    entry = "sgemm<{BM},{BN}>"          kernel; braces hold formulas over the sizes
    sizes = { M = 256, BM = 64 }
    each = [{ BM = 64 }, { BM = 128 }]  one case for each, with other sizes
    vary = { stages = [2, 3] }          one case for each combination
    architectures = ["sm_80"]           default: all
    own_features = true                 for the compiler, sm_90 is sm_90a, which has wgmma
    options = ["-I{ROOT}/include"]      for the compiler; {ROOT} is the checkout
    before = ["#define TILE 32"]        lines of the manifest's own that precede the file
    take = ["TPB", "kernel"]            Python: which definitions of the file are loaded; the rest is not executed
    grid = ["N/64", "M/64"]             formulas
    block = [256]
    shared = 0                          bytes of dynamic shared memory
    cooperative = true                  for a cooperative launch
    cluster = ["C"]                     formulas of the blocks of a cluster, where the launch asks for one
    args = ["i32={M}", "f32[{M},{K}]"]  as `gemmsim analyze --arg` takes them
    check = { kind = "gemm", a = 1 }    see `references`

    [kernel.triton]                     for compile = ["triton"], see `triton_compiler`
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from .formula import filled

FOLDER = Path(__file__).parent / "manifest"
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
COMPILERS = ("nvcc", "nvrtc", "numba", "triton", "host")
_REQUIRED = {"name", "file", "compile", "entry", "grid", "block", "args", "check"}
_OPTIONAL = {"sizes", "each", "vary", "architectures", "options", "before", "take", "shared", "triton"}
_OPTIONAL |= {"cooperative", "own_features", "cluster"}


@dataclass(frozen=True)
class Repository:
    """A public repository. `name` is "owner/name"."""

    name: str
    commit: str
    licence: str

    def checkout(self, root: Path) -> Path:
        """The folder of its checkout under `root`: owner and name with a plus between."""
        return root / self.name.replace("/", "+")


@dataclass(frozen=True)
class Case:
    """One kernel, compiled by one compiler, in one launch, before it is compiled for an architecture.

    name           the kernel's name and the sizes in which it differs from its siblings
    compiler       one of COMPILERS
    entry          name of the kernel, for the compiler, with formulas in braces
    sizes          the values that formulas may name
    grid, block    formulas of each dimension
    shared         formula of the bytes of dynamic shared memory
    args           arguments as `gemmsim analyze --arg` takes them, with formulas in braces
    check          how the result is checked, see `references`
    architectures  for which architectures it is compiled
    options, before, take, own_features, cluster  see the head of this module
    triton         settings for Triton's compiler, {} for the others
    """

    repository: Repository
    name: str
    file: str
    compiler: str
    entry: str
    sizes: Mapping[str, int | str]
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    shared: str | int
    args: tuple[str, ...]
    check: Mapping[str, Any]
    architectures: tuple[str, ...]
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    take: tuple[str, ...] = ()
    triton: Mapping[str, Any] | None = None
    cooperative: bool = False
    own_features: bool = False
    cluster: tuple[str | int, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.repository.name}/{self.name}@{self.compiler}"

    def compiled_for(self, arch: str) -> str:
        """Return what the compiler is told for `arch`."""
        return f"{arch}a" if self.own_features else arch


def read_manifest(folder: Path = FOLDER) -> list[Case]:
    """Return the cases of all files of a manifest. Raises GemmsimError, which names the file, for a malformed one."""
    cases: list[Case] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            cases += _repository_cases(table)
        except (tomllib.TOMLDecodeError, KeyError, TypeError, GemmsimError) as error:
            raise GemmsimError(f"manifest {path.name}: {error}") from None
    if not cases:
        raise GemmsimError(f"no manifest (*.toml) in '{folder}'")
    twice = {case.id for case in cases if sum(case.id == other.id for other in cases) > 1}
    if twice:
        raise GemmsimError(f"manifest: {', '.join(sorted(twice))} is there twice")
    return cases


def _repository_cases(table: dict[str, Any]) -> list[Case]:
    repository = Repository(table["repository"], table["commit"], table["licence"])
    return [case for kernel in table["kernel"] for case in _kernel_cases(repository, kernel)]


def _kernel_cases(repository: Repository, kernel: dict[str, Any]) -> list[Case]:
    name = kernel.get("name", "?")
    if missing := _REQUIRED - set(kernel):
        raise GemmsimError(f"kernel '{name}' lacks {', '.join(sorted(missing))}")
    if unknown := set(kernel) - _REQUIRED - _OPTIONAL:
        raise GemmsimError(f"kernel '{name}' has unknown keys: {', '.join(sorted(unknown))}")
    if unknown := set(kernel["compile"]) - set(COMPILERS):
        raise GemmsimError(f"kernel '{name}': unknown compiler {', '.join(sorted(unknown))}")
    vary: dict[str, list[int | str]] = kernel.get("vary", {})
    products = [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]
    found = []
    for one, other in itertools.product(kernel.get("each", [{}]), products):
        own = {**one, **other}
        sizes = {**kernel.get("sizes", {}), **own}
        label = name if not own else f"{name}[{','.join(f'{key}={value}' for key, value in own.items())}]"
        wanted = [filled(arch, sizes) for arch in kernel.get("architectures", ARCHITECTURES)]
        for compiler in kernel["compile"]:
            found.append(
                Case(
                    repository=repository,
                    name=label,
                    file=filled(kernel["file"], sizes),
                    compiler=compiler,
                    entry=kernel["entry"],
                    sizes=sizes,
                    grid=tuple(kernel["grid"]),
                    block=tuple(kernel["block"]),
                    shared=kernel.get("shared", 0),
                    args=tuple(kernel["args"]),
                    check={k: filled(v, sizes) if isinstance(v, str) else v for k, v in kernel["check"].items()},
                    architectures=tuple(wanted),
                    options=tuple(kernel.get("options", ())),
                    before=tuple(kernel.get("before", ())),
                    take=tuple(kernel.get("take", ())),
                    triton=kernel.get("triton"),
                    cooperative=kernel.get("cooperative", False),
                    own_features=kernel.get("own_features", False),
                    cluster=tuple(kernel.get("cluster", ())),
                )
            )
    return found
