"""Compiles the files of tests/sources: each file once an architecture, until it, the compiler or the decoder changes.
What a test needs of templates is compiled together, too.

What NVRTC and nvdisasm made is kept in build/programs, so that two processes of pytest, and the next run, need not make
it again. Kernels are decoded anew in each process, each when it is first asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from gemmsim.compile import ArgType, CudaKernel, PythonKernel, compile_kernel, decode, default_cache
from gemmsim.compile.cuda_kernel import compile_cuda, ptx_of_cuda
from gemmsim.compile.elf import Cubin, read_cubin
from gemmsim.compile.entries import find_entry
from gemmsim.compile.key import cache_key
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.support.files import PRIVATE, read_own, write_atomically

SOURCES = Path(__file__).parents[1] / "sources"
_KEPT = Path(__file__).parents[2] / "build" / "programs"


def _kept(what: str, source: CudaKernel, arch: str, make: Callable[[], bytes], of: str = "") -> bytes:
    """Return what is kept of a file under the key that `compile_kernel` would use, else what `make` makes, and keep it.

    of  the instances of templates, where there are any

    What was kept of an older text of the file, with the same instances, is deleted.
    """
    chosen = f"-{hashlib.sha256(of.encode()).hexdigest()[:16]}" if of else ""
    stem = f"{source.path.name}.{arch}.{what}{chosen}"
    path = _KEPT / f"{stem}.{cache_key(source, arch, tool_versions())}"
    if (data := read_own(path)) is not None:
        with contextlib.suppress(zlib.error):
            return zlib.decompress(data)
    made = make()
    with contextlib.suppress(OSError):
        _KEPT.mkdir(parents=True, exist_ok=True)
        write_atomically(path, zlib.compress(made, 1), PRIVATE)
        for old in _KEPT.glob(f"{stem}.*"):
            if old != path:
                old.unlink()
    return made


def _source(file: str, instances: str = "") -> CudaKernel:
    text = (SOURCES / file).read_text() + instances
    return CudaKernel(text, SOURCES / file, options=("-arch=sm_90a",) if "wgmma." in text else ())


@cache
def _cubin(file: str, arch: str, instances: str = "") -> bytes:
    source = _source(file, instances)
    return _kept("cubin", source, arch, lambda: compile_cuda(source, arch)[0], instances)


@cache
def cuda_ptx(file: str, arch: str) -> str:
    source = _source(file)
    return _kept("ptx", source, arch, lambda: (ptx_of_cuda(source, arch) or "").encode()).decode()


@cache
def _listed(file: str, arch: str, instances: str) -> tuple[Cubin, Mapping[str, list[str]], str]:
    """All that `decode` knows of a cubin: nvdisasm takes half a second to start, however little it is given."""
    cubin = _cubin(file, arch, instances)
    source = _source(file, instances)
    listing = _kept("sass", source, arch, lambda: decode._disassembled(cubin, None).encode(), instances)
    return read_cubin(cubin), decode._sections(listing.decode()), hashlib.sha256(cubin).hexdigest()


@cache
def cuda_program(file: str, name: str, arch: str, instances: tuple[str, ...] = ()) -> Program:
    """A kernel by its symbol, or by what the symbol of a template's instance contains: "blocktile_1dILi64ELi64E".

    instances  of templates that the file has, all that the caller will ask for, as in C++: "tile<64, 8>"; `name` is one
    """
    made = "".join(f"\ntemplate __global__ decltype({one}) {one};" for one in sorted({*instances}))
    cubin, sections, digest = _listed(file, arch, made)
    symbols = [kernel.symbol for kernel in cubin.kernels]
    if name in instances:
        exact = [find_entry(name, symbols, file)]
    else:
        exact = (
            [s for s in symbols if s == name]
            or [s for s in symbols if f"{len(name)}{name}" in s]
            or [s for s in symbols if name in s]
        )
    (symbol,) = exact
    found = decode._program(cubin, cubin.kernels[symbols.index(symbol)], sections, digest, None)
    return replace(found, name=name, toolchain=dict(sorted(tool_versions().items())))


@cache
def numba_program(function: str, dtypes: tuple[tuple[str, int], ...], arch: str) -> Program:
    """A kernel of tests/sources/gemm_numba.py."""
    signature = tuple(ArgType(dtype, ndim) for dtype, ndim in dtypes)
    return compile_kernel(PythonKernel(SOURCES / "gemm_numba.py", function, signature), arch, default_cache())
