"""Compiles a kernel once more with its shared arrays apart (`arrays_apart`), for the search for accesses beyond one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from gemmsim.compile.arrays_apart import Apart, arrays_apart
from gemmsim.compile.cache import Cache
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import CudaKernel, KernelSource, PtxKernel, PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Place, Program, Symbol
from gemmsim.isa.shared_arrays import SharedArray
from gemmsim.support.errors import GemmsimError

_SHARED = -2  # stands for a bank in the place of an array, among the variables of a program that is kept
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

    None where it has no static arrays or no PTX (ready machine code, nvcc), where the toolchain is missing, and where
    the arrays cannot be kept apart: their names are not all understood, or too little room is left.
    """
    if not program.static_shared_bytes or not isinstance(source, CudaKernel | PtxKernel | PythonKernel):
        return None
    key = ""
    if cache is not None:
        said = f"arrays apart {cache_key(source, program.arch, tool_versions())}"
        key = hashlib.sha256(said.encode()).hexdigest()
        if kept := cache.load(key):
            return _split(kept)
    try:
        text = _ptx_of(source, program.arch)
        apart = arrays_apart(text, program.symbol) if text else None
        made = compiled_apart(apart, program) if apart else None
    except GemmsimError:  # a source that compiles, and PTX that does not: what was moved was not all understood
        return None
    if cache is not None and made is not None:
        cache.store(key, _joined(made))
    return made


def _ptx_of(source: CudaKernel | PtxKernel | PythonKernel, arch: str) -> str | None:
    if isinstance(source, PtxKernel):
        return source.text
    if isinstance(source, CudaKernel):
        from gemmsim.compile.cuda_kernel import ptx_of_cuda

        return ptx_of_cuda(source, arch)
    from gemmsim.compile.python_kernel import ptx_of_python

    return ptx_of_python(source, arch)


def compiled_apart(apart: Apart, program: Program) -> ProgramApart | None:
    """Compile a kernel whose arrays are apart, for the architecture of `program`, which is the kernel as it is.

    None where its arrays do not begin where they should.
    """
    from gemmsim.compile.decode import decode_cubin
    from gemmsim.compile.link import link

    target = _TARGET.search(apart.text)
    arch = target[1] if target and target[1].rstrip("af") == program.arch else program.arch
    cubin = link([apart.text], arch)
    made = decode_cubin(cubin, None, program.arch, program.abi, program.name)
    if made.static_shared_bytes != apart.total_bytes:
        return None  # there are other arrays beside them
    return ProgramApart(replace(made, source=made.source | program.source), apart.arrays)


def _joined(made: ProgramApart) -> Program:
    arrays = [Symbol(one.name, one.name, one.size_bytes, (Place(_SHARED, one.begin),)) for one in made.arrays]
    return replace(made.program, symbols=(*made.program.symbols, *arrays))


def _split(kept: Program) -> ProgramApart:
    shared = [one for one in kept.symbols if one.places and one.places[0].bank == _SHARED]
    arrays = tuple(SharedArray(one.name, one.places[0].offset_bytes, one.size_bytes) for one in shared)
    return ProgramApart(replace(kept, symbols=tuple(one for one in kept.symbols if one not in shared)), arrays)
