"""Compiles a kernel once more with its shared arrays apart (`arrays_apart`), for the search for accesses beyond one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from gemmsim.compile.arrays_apart import Apart, arrays_apart
from gemmsim.compile.cache import Cache
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource, PtxKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Place, Program, Symbol
from gemmsim.isa.shared_arrays import SharedArray
from gemmsim.support.errors import GemmsimError

_SHARED = -2  # stands for a bank in the place of an array, among the variables of a program that is kept
_FUNCTION = ", and of a kernel given as a function nothing else is kept (give FILE.py:function)"
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProgramApart:
    """A program that does what another one of the same source does, but for the places of its shared arrays.

    arrays  in ascending order; what lies between them and before the first, and behind the last one up to
            `Program.static_shared_bytes`, belongs to none
    """

    program: Program
    arrays: tuple[SharedArray, ...]


def program_apart(source: KernelSource, program: Program, cache: Cache | None) -> ProgramApart | None:
    """Return what `source` makes with its shared arrays apart; `program` is what it makes as it is.

    None where it has no static arrays. Raises GemmsimError, with the reason as a part of a sentence, where there is no
    PTX of it (ready machine code, nvcc), where the toolchain is missing, and where the arrays cannot be kept apart:
    their names are not all understood, or too little room is left.
    """
    if not program.static_shared_bytes:
        return None
    key = ""
    if cache is not None:
        said = f"arrays apart {cache_key(source, program.arch, tool_versions())}"
        key = hashlib.sha256(said.encode()).hexdigest()
        if kept := cache.load(key):
            return _split(kept)
    made = compiled_apart(arrays_apart(_ptx_of(source, program.arch), program.symbol), program)
    if cache is not None:
        cache.store(key, _joined(made))
    return made


def _ptx_of(source: KernelSource, arch: str) -> str:
    if isinstance(source, CubinKernel):
        raise GemmsimError(
            "machine code does not say which array an access is meant for" + _FUNCTION * source.of_function
        )
    if isinstance(source, PtxKernel):
        return source.text
    if isinstance(source, CudaKernel):
        from gemmsim.compile.cuda_kernel import ptx_of_cuda

        if text := ptx_of_cuda(source, arch):
            return text
        raise GemmsimError("only what NVRTC and numba compile can be compiled once more with gaps, not what nvcc does")
    from gemmsim.compile.python_kernel import ptx_of_python

    if text := ptx_of_python(source, arch):
        return text
    raise GemmsimError("the kernel is linked from several pieces")


def compiled_apart(apart: Apart, program: Program) -> ProgramApart:
    """Compile a kernel whose arrays are apart, for the architecture of `program`, which is the kernel as it is.

    Raises GemmsimError where it does not compile, and where its arrays do not begin where they should.
    """
    from gemmsim.compile.decode import decode_cubin
    from gemmsim.compile.link import link

    target = _TARGET.search(apart.text)
    arch = target[1] if target and target[1].rstrip("af") == program.arch else program.arch
    try:
        cubin = link([apart.text], arch)
    except GemmsimError as error:  # what was moved was not all understood
        raise GemmsimError(f"with gaps between its arrays the kernel does not compile ({error})") from None
    made = decode_cubin(cubin, None, program.arch, program.abi, program.name)
    if made.static_shared_bytes != apart.total_bytes:
        raise GemmsimError("the code with gaps has other arrays than were kept apart")
    return ProgramApart(replace(made, source=made.source | program.source), apart.arrays)


def _joined(made: ProgramApart) -> Program:
    arrays = [Symbol(one.name, one.name, one.size_bytes, (Place(_SHARED, one.begin),)) for one in made.arrays]
    return replace(made.program, symbols=(*made.program.symbols, *arrays))


def _split(kept: Program) -> ProgramApart:
    shared = [one for one in kept.symbols if one.places and one.places[0].bank == _SHARED]
    arrays = tuple(SharedArray(one.name, one.places[0].offset_bytes, one.size_bytes) for one in shared)
    return ProgramApart(replace(kept, symbols=tuple(one for one in kept.symbols if one not in shared)), arrays)
