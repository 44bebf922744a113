"""Makes of a case what gemmsim executes: a kernel's source or cubin, and its launch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource, PythonKernel
from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.cases import signature
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch

from .extract import extracted
from .formula import evaluate, filled
from .host import host_launch
from .manifest import Case
from .nvcc import compile_cubin, including, line_options, nvcc, run
from .triton_compiler import compile_triton, line_information

OWN = Path(__file__).parent / "own"  # kernels of our own, which the manifest names as repository "gemmsim"


@dataclass(frozen=True)
class Prepared:
    """A kernel and its launch, without the arrays' contents.

    given      the arguments of the manifest
    positions  for each of `given` its index among the arguments of `launch`; None where the compiler made it a constant
    maps       where tensor maps are: the parameter's number, and the byte in it
    """

    source: KernelSource
    launch: Launch
    given: tuple[Argument, ...]
    positions: tuple[int | None, ...]
    maps: tuple[tuple[int, int], ...] = ()


def source_file(case: Case, root: Path) -> Path:
    """Return the kernel's file. Raises GemmsimError where the checkout lacks it."""
    path = case.repository.checkout(root) / case.file
    if case.file.startswith("own/"):
        path = OWN / case.file.removeprefix("own/")
    if not path.is_file():
        raise GemmsimError(f"no checkout: '{path}' is missing; take {case.repository.name} at {case.repository.commit}")
    return path.resolve()


def prepared(case: Case, arch: str, root: Path, folder: Path, lines: bool = True) -> Prepared:
    """Compile what gemmsim does not compile itself, and make the launch.

    root    folder with the checkouts
    folder  where files are put that are made on the way
    lines   whether line information is wanted, which names files of this machine

    Raises GemmsimError where a file is missing or a compiler refuses it.
    """
    path = source_file(case, root)
    names = {**case.sizes, "ROOT": str(case.repository.checkout(root).resolve()), "OWN": str(OWN)}
    options = [filled(option, names) for option in case.options]
    before = [filled(line, names) for line in case.before]
    texts = [filled(text, names) for text in case.args]
    entry = filled(case.entry, names)
    arguments = parse_arguments(texts)
    given = arguments.args
    grid, block = (_dims(formulas, names) for formulas in (case.grid, case.block))
    shared = evaluate(case.shared, names)
    positions: tuple[int | None, ...] = tuple(range(len(given)))
    source: KernelSource
    if case.compiler == "nvcc":
        options = [f"-I{path.parent}", *options, *line_options(lines)]
        # A failed assertion names its file, so that the file's path is in the cubin: let it be that in the repository.
        (folder / "checkout").symlink_to(case.repository.checkout(root).resolve())
        text = including(Path("checkout", case.file), entry, before)
        cubin = compile_cubin(text, folder, case.compiled_for(arch), options)
        source = CubinKernel(cubin, path, entry, "c")
    elif case.compiler == "nvrtc":
        options = [f"-I{path.parent}", *options]
        text, shown = path.read_text(encoding="utf-8", errors="replace"), path
        if before:
            text, shown = including(path, "", before), folder / "wild.cu"
        source = CudaKernel(text, shown, entry, tuple(options))
    elif case.compiler == "numba":
        source = PythonKernel(_python_file(case, path, folder), entry, signature(given))
    elif case.compiler == "triton":
        file = _python_file(case, path, folder)
        with line_information(lines):
            made = compile_triton(file, entry, case.triton or {}, texts, names, arch, math.prod(grid))
        source = CubinKernel(made.cubin, path, made.symbol, "c")
        block, shared, positions = (made.threads, 1, 1), made.shared_bytes, made.positions
        arguments = parse_arguments(made.parameters)
    else:
        wanted = tuple(map(case.compiled_for, case.architectures if arch in case.architectures else (arch,)))
        values = tuple(evaluate(name, names) for name in ("M", "N", "K", "SMS") if name in names)
        said = host_launch(including(path, "", before), values, wanted, (*options, *line_options(lines)))
        source = CubinKernel(said.executable, path, entry, "c")
        launch = Launch(said.grid, said.block, given, said.shared_bytes, (said.parameter,), cluster=said.cluster)
        return Prepared(source, launch, given, positions, tuple((0, at) for at in said.maps))
    cluster = _dims(case.cluster, names) if case.cluster else None
    launch = Launch(grid, block, arguments.args, shared, arguments.parameters, case.cooperative, cluster=cluster)
    maps = tuple((at, 0) for at, text in enumerate(texts) if text.startswith("tensormap("))
    return Prepared(source, launch, given, positions, maps)


def compiler_version(compiler: str) -> str:
    """Return the version of nvcc or Triton, or of the package that holds another compiler; "" where it is unknown."""
    if compiler == "nvcc":
        found = re.search(r"V(\d[\d.]*)", run([nvcc(), "--version"], "nvcc does not run"))
        return found[1] if found else ""
    package = {"nvrtc": "nvidia-cuda-nvrtc", "numba": "numba-cuda"}.get(compiler, compiler)
    return metadata.version(package)


def _python_file(case: Case, path: Path, folder: Path) -> Path:
    """Return the file that defines the kernel: a copy of the definitions that the case takes, or the file itself."""
    if not case.take:
        return path
    copy = folder / f"{path.stem.replace('-', '_')}.py"
    copy.write_text(extracted(path, case.take, case.before), encoding="utf-8")
    return copy


def _dims(formulas: tuple[str | int, ...], names: dict[str, int | str]) -> tuple[int, int, int]:
    values = [evaluate(formula, names) for formula in formulas] + [1] * (3 - len(formulas))
    return values[0], values[1], values[2]
