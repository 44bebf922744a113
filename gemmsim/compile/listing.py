"""Lists the kernels of a file: of a binary all that it holds, of CUDA C++ or PTX all that the compiler makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gemmsim.compile.binary import Candidate, runs_on, tiers
from gemmsim.compile.cubin_tools import made_by
from gemmsim.compile.decode import decode_kernels
from gemmsim.compile.entries import find_entry, matching
from gemmsim.compile.fatbin import device_images
from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource, PtxKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True)
class ListedKernel:
    """A kernel of a file.

    symbol   its name in the code
    arch     "sm_90"
    origin   which part of the file holds it, in words, as `Program.origin`
    program  the decoded kernel; None where it cannot be decoded
    problem  why it cannot be decoded; else empty
    """

    symbol: str
    arch: str
    origin: str
    program: Program | None
    problem: str = ""


def list_kernels(source: KernelSource, arch: str | None) -> tuple[ListedKernel, ...]:
    """Decode every kernel of a file that `source` describes; where it names an entry, those that this may mean.

    arch  the GPU's architecture. It may be None for a file with machine code: then the code for every architecture
          is listed, and PTX where the file has no machine code of its kernels

    Raises GemmsimError where the file cannot be compiled or read, or has no kernel or none of that name.
    """
    if isinstance(source, CubinKernel):
        found = list(_of_binary(source, arch))
    elif isinstance(source, CudaKernel | PtxKernel) and arch is not None:
        found = list(_of_source(source, arch))
    else:
        raise GemmsimError("a Python function is compiled for the types of its arguments: gemmsim analyze decodes it")
    if not found:
        raise GemmsimError(f"'{source.path.name}' holds no kernel (no __global__ function)")
    return tuple(found)


def _of_source(source: CudaKernel | PtxKernel, arch: str) -> Iterator[ListedKernel]:
    from gemmsim.compile.kernel import cubin_of
    from gemmsim.compile.sections import kernel_symbols

    cubin, entry, versions = cubin_of(source, arch)
    yield from _decoded(cubin, _wanted(entry, kernel_symbols(cubin), source.path.name), arch, "", versions)


def _of_binary(source: CubinKernel, arch: str | None) -> Iterator[ListedKernel]:
    file = source.path.name
    with source.named_in_errors():
        images = device_images(source.data)
    if arch is not None:
        images = tuple(image for image in images if runs_on(image, int(arch.removeprefix("sm_").rstrip("af"))))
        if not images:
            raise GemmsimError(f"'{file}' holds no code for {arch}: without --gpu all of its kernels are listed")
    with source.named_in_errors():
        groups = [one for tier in tiers(images) for one in tier]
    wanted = _wanted(source.entry, list(dict.fromkeys(symbol for one in groups for symbol in one.symbols)), file)
    seen: set[str] = set()
    for one in groups:
        symbols = [symbol for symbol in one.symbols if symbol in wanted]
        if one.images[0].kind == "ptx" or arch is not None:  # the better code for these kernels came before
            symbols = [symbol for symbol in symbols if symbol not in seen]
        seen.update(symbols)
        if symbols:
            yield from _of_candidate(one, symbols, arch, file)


def _of_candidate(one: Candidate, symbols: Sequence[str], arch: str | None, file: str) -> Iterator[ListedKernel]:
    shown = one.images[0].arch
    try:
        cubin, origin, made_here = one.made(arch or shown, file)
        here = ("nvidia-nvjitlink", "nvidia-cuda-nvdisasm") if made_here else ("nvidia-cuda-nvdisasm",)
        versions = {name: version for name, version in tool_versions().items() if name in here}
        yield from _decoded(cubin, symbols, shown, origin, (made_by(cubin) if not made_here else {}) | versions)
    except GemmsimError as error:  # one image of a file may be damaged, or for a GPU that nvdisasm does not know
        for symbol in symbols:
            yield ListedKernel(symbol, shown, f"{one.images[0].kind} for {shown} in {file}", None, str(error))


def _decoded(
    cubin: bytes, symbols: Sequence[str], arch: str, origin: str, versions: dict[str, str]
) -> Iterator[ListedKernel]:
    for symbol, found in decode_kernels(cubin, symbols):
        if isinstance(found, Program):
            program = replace(found, origin=origin, toolchain=versions)
            yield ListedKernel(symbol, program.arch, origin, program)
        else:
            yield ListedKernel(symbol, arch, origin, None, str(found))


def _wanted(entry: str | None, symbols: Sequence[str], file: str) -> Sequence[str]:
    if entry is None:
        return symbols
    return matching(entry, symbols) or [find_entry(entry, symbols, f"'{file}'")]
