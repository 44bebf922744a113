"""Compiles the ladder for the preset GPUs into `programs/`: `python -m gemmsim_kernels.ship [--check | --all]`.

There is one file for each rung and dtype that the rung claims. It holds the rung with its default tunables, compiled
for each architecture of a preset but UNSHIPPED. Files that have not changed are kept. With --check nothing is written,
and the exit status is 1 where something would be. A change to `gemmsim/compile` shows in no key, so --all makes every
file once more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from gemmsim.compile import compile_kernel
from gemmsim.compile.key import shipped_keys
from gemmsim.compile.shipped import FOLDER, INDEX, Index, read_index
from gemmsim.compile.source import CudaKernel, PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.gpu import load_gpu, preset_names
from gemmsim.isa.serialize import program_from_bytes, programs_to_bytes
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_infos
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import write_atomically

PROGRAMS = Path(__file__).parent / FOLDER
# Their programs would add a quarter to the package for few users, who compile instead.
UNSHIPPED = ("sm_87", "sm_100")
COMMAND = "python -m gemmsim_kernels.ship"


@dataclass(frozen=True)
class Shipment:
    """One file of `programs/`: a rung and dtype, with the source to compile for each architecture."""

    file: str
    source: PythonKernel | CudaKernel
    archs: tuple[str, ...]

    def keys(self) -> dict[str, str]:
        """The keys by which the programs are found, by architecture."""
        return shipped_keys(self.source, self.archs)


@dataclass(frozen=True)
class Made:
    """What was made for a file.

    data     of the file; empty where no program could be made
    refused  architecture -> why no program could be made for it
    """

    data: bytes
    refused: dict[str, str]


def shipments() -> list[Shipment]:
    """The files that belong into the folder now."""
    gpus = {gpu.arch: gpu for gpu in map(load_gpu, preset_names()) if gpu.arch not in UNSHIPPED}
    found = []
    for name, info in kernel_infos().items():
        for dtype in info.dtypes:
            archs = sorted(info.cuda.archs if info.cuda else gpus)
            request = ladder_launch(LadderCase(name, 1, 1, 1, dtype=dtype), gpus[archs[0]])
            assert isinstance(request.kernel, CudaKernel | PythonKernel)
            found.append(Shipment(f"{name}-{dtype}.xz", request.kernel, tuple(archs)))
    return found


def make(shipment: Shipment) -> Made:
    """Compile a rung for its architectures, and check that the file's data read back. Neither the user's cache nor what
    ships already is asked."""
    programs, refused = [], {}
    for arch in shipment.archs:
        try:
            programs.append(replace(compile_kernel(shipment.source, arch, None), source={}))
        except GemmsimError as error:
            refused[arch] = str(error)
    data = programs_to_bytes(programs, smallest=True) if programs else b""
    for program in programs:
        if program_from_bytes(data, program.arch) != program:
            raise GemmsimError(f"{shipment.file}: the program for {program.arch} does not survive being stored")
    return Made(data, refused)


def is_current(shipment: Shipment, index: Index) -> bool:
    """Whether the folder holds the file as it is now, made by the tools that are installed."""
    keys = shipment.keys().values()
    known = all(key in index.refused or index.files.get(key) == shipment.file for key in keys)
    return known and index.toolchain == tool_versions()


def ship(jobs: int | None, say: Callable[[str], None], everything: bool = False) -> int:
    """Bring the folder up to date in `jobs` processes; return how many files were made.

    everything  make the files too that are current by their keys
    """
    wanted = shipments()
    index = read_index(PROGRAMS)
    stale = [one for one in wanted if everything or not is_current(one, index)]
    kept = [one for one in wanted if one not in stale]
    PROGRAMS.mkdir(exist_ok=True)
    files = {key: one.file for one in kept for key in one.keys().values() if key in index.files}
    refused = {key: index.refused[key] for one in kept for key in one.keys().values() if key in index.refused}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for one, made in zip(stale, pool.map(make, stale), strict=True):
            keys = one.keys()
            refused |= {keys[arch]: reason for arch, reason in made.refused.items()}
            files |= {key: one.file for arch, key in keys.items() if arch not in made.refused}
            if made.data:
                write_atomically(PROGRAMS / one.file, made.data)
            say(f"{one.file}: {len(made.data):,} bytes, {len(keys) - len(made.refused)} architectures")
    document = {"toolchain": tool_versions(), "files": files, "refused": refused}
    write_atomically(PROGRAMS / INDEX, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())
    for path in PROGRAMS.glob("*.xz"):
        if path.name not in files.values():
            path.unlink()
    return len(stale)


def check() -> list[str]:
    """The files that a rebuild would make, as their keys tell."""
    index = read_index(PROGRAMS)
    return [one.file for one in shipments() if not is_current(one, index)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Compile the ladder for the preset GPUs, to ship it.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--check", action="store_true", help="write nothing; exit status 1 where something is stale")
    which.add_argument("--all", action="store_true", help="make the files that are not stale too")
    parser.add_argument("--jobs", type=int, help="processes at once (default: CPUs)")
    options = parser.parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")

    if options.check:
        stale = check()
        say(f"stale: {', '.join(stale)}; run {COMMAND}" if stale else "nothing is stale")
        return 1 if stale else 0
    made = ship(options.jobs, say, options.all)
    size = sum(path.stat().st_size for path in PROGRAMS.iterdir())
    say(f"{made} files made, {size / 1e6:.2f} MB in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
