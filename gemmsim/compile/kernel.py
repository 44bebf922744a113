"""Makes a `Program` of any kernel source for an architecture, or finds it in the cache. Callers start here."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from gemmsim.compile.cache import Cache
from gemmsim.compile.compilers import compiler_versions
from gemmsim.compile.key import cache_key
from gemmsim.compile.shipped import shipped_program
from gemmsim.compile.source import CudaKernel, KernelSource, PtxKernel, PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError


def compile_kernel(source: KernelSource, arch: str, cache: Cache | None) -> Program:
    """Return the program that `source` makes for an architecture such as "sm_90".

    The program is looked for in `cache` (None: always compile) and among the programs that ship with the package. The
    source is compiled and decoded only where neither has it. Where the program is found, neither numba nor CUDA
    libraries nor the user's module are imported.
    Raises GemmsimError, with a message of one line, where the source, the architecture or the installation does not
    allow it.
    """
    if not re.fullmatch(r"sm_\d+", arch):
        raise GemmsimError(f"'{arch}' is no architecture: write sm_80, sm_90, ...")
    if cache is None:
        return build_kernel(source, arch).program
    versions = tool_versions()
    key = cache_key(source, arch, versions)
    with suppress(KeyError):
        return _cached(cache, key)
    shipped = shipped_program(source, arch, versions)
    if shipped is not None:
        return shipped
    program = build_kernel(source, arch).program
    cache.store(key, program)
    return program


@lru_cache(4)
def _cached(cache: Cache, key: str) -> Program:
    """Return the program under this key in `cache`. The last few programs stay in memory.

    Raises KeyError where the cache has none. A failure is not kept in memory, so the next call looks again.
    """
    program = cache.load(key)
    if program is None:
        raise KeyError(key)
    return program


@dataclass(frozen=True, slots=True)
class Built:
    """A program and the cubin that it was decoded from."""

    program: Program
    cubin: bytes


def build_kernel(source: KernelSource, arch: str) -> Built:
    """Compile and decode `source` for `arch`, without looking into a cache."""
    from gemmsim.compile.decode import decode_cubin, rename_sources  # imports pyelftools
    from gemmsim.compile.elf import sha256_without_lines
    from gemmsim.compile.entries import find_entry
    from gemmsim.compile.sections import kernel_symbols

    if isinstance(source, PythonKernel):
        from gemmsim.compile.python_kernel import compile_python

        cubin = compile_python(source, arch)
        program = decode_cubin(cubin, arch=arch, abi="numba")
        program = replace(program, cubin_sha256=sha256_without_lines(cubin))
        return Built(rename_sources(program, source.shown_names(program.source)), cubin)
    if isinstance(source, CudaKernel | PtxKernel):
        cubin, entry, versions = cubin_of(source, arch)
        entry = find_entry(entry, kernel_symbols(cubin), f"'{source.path.name}'")
        abi, name = ("c", source.entry) if isinstance(source, CudaKernel) else (source.abi, None)
        program = decode_cubin(cubin, entry, arch, abi, name, versions)
        if isinstance(source, CudaKernel):
            program = replace(program, cubin_sha256=sha256_without_lines(cubin))
            program = rename_sources(_with_text(program, source), source.shown_names(program.source))
        return Built(program, cubin)
    from gemmsim.compile.binary import choose
    from gemmsim.compile.cubin_tools import made_by

    with source.named_in_errors():
        chosen = choose(source.data, source.entry, arch, source.path.name)
    here = ("nvidia-nvjitlink", "nvidia-cuda-nvdisasm") if chosen.made_here else ("nvidia-cuda-nvdisasm",)
    versions = {name: one for name, one in tool_versions().items() if source.of_function or name in here}
    made = {} if chosen.made_here else made_by(chosen.cubin)
    with source.named_in_errors():
        program = decode_cubin(chosen.cubin, chosen.symbol, None, source.abi, toolchain=made | versions)
    return Built(program if source.of_function else replace(program, origin=chosen.origin), chosen.cubin)


def _with_text(program: Program, source: CudaKernel) -> Program:
    """Return the program with the text that was compiled, which need not be that of a file of its name."""
    name = str(source.path)
    named = any(place.file == name for one in program.instructions for place in one.sources)
    return replace(program, source=program.source | {name: source.text}) if named else program


def cubin_of(source: CudaKernel | PtxKernel, arch: str) -> tuple[bytes, str | None, dict[str, str]]:
    """Compile `source` for `arch`; return the cubin, the entry in it (None: its only kernel), and {tool: version}."""
    if isinstance(source, CudaKernel):
        from gemmsim.compile.cuda_kernel import compile_cuda

        return *compile_cuda(source, arch), compiler_versions(source.compiler)
    from gemmsim.compile.link import link

    if ".entry" not in source.text:
        raise GemmsimError(f"'{source.path.name}' holds no kernel (no .entry)")
    return link([source.text], arch, file=source.path.name), source.entry, tool_versions()
