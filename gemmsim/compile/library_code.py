"""Finds a kernel's machine code in an installed library, by its hash.

So a launch can be predicted whose code may not be stored with it, as that of cuBLAS.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gemmsim.compile.magic import ELF
from gemmsim.compile.sections import section_sha256
from gemmsim.support.errors import GemmsimError

_ZSTD_FRAME = bytes.fromhex("28b52ffd")  # RFC 8878, 3.1.1
_HEADER_BYTES, _MOST_BYTES = 18, 1 << 28  # of a frame: the longest header, and what no cubin exceeds
_FATBINS = (".nv_fatbin", "__nv_relfatbin")
LIBRARY_CODE = "library-code"  # folder in a bundle with code that is not to be passed on
FOLDERS = "GEMMSIM_LIBRARIES"  # environment variable: folders of `pip install --target`, besides Python's own


@dataclass(frozen=True)
class LibraryCode:
    """Code in a library of a wheel.

    file            name of the library
    package         name of the wheel, "" where the library came with the CUDA toolkit
    version         of the wheel, or of the library
    cubin_sha256    of the whole cubin
    section_sha256  of the kernel's own section of code
    arch            "sm_90"
    symbol          of the kernel
    """

    file: str
    package: str
    version: str
    cubin_sha256: str
    section_sha256: str
    arch: str
    symbol: str


def library_cubin(code: LibraryCode) -> bytes:
    """Return the cubin. Raises GemmsimError, one line, where the library is not installed or holds other code."""
    from gemmsim.compile.cache import default_cache

    cache = default_cache().folder / "libraries"
    kept = cache / f"{code.cubin_sha256[:32]}.cubin"
    if kept.exists() and section_sha256(data := kept.read_bytes(), code.symbol) == code.section_sha256:
        return data
    found = _search(_installed(code), code)
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(found)
    return found


def _installed(code: LibraryCode) -> Path:
    wanted = f"pip install {code.package or 'nvidia-cublas'}=={code.version}"
    others = []
    for one in _distributions(code.package):
        files = [file for file in one.files or () if file.name == code.file]
        if not files:
            continue
        if one.version == code.version:
            return Path(str(one.locate_file(files[0])))
        others.append(one.version)
    if others:
        raise GemmsimError(
            f"the kernel's code is in {code.file} of {code.package} {code.version}; {others[0]} is installed: {wanted}"
        )
    raise GemmsimError(f"the kernel's code is in {code.file} of {code.package} {code.version}: {wanted}")


def _distributions(package: str) -> Iterator[Distribution]:
    folders = [one for one in os.environ.get(FOLDERS, "").split(os.pathsep) if one]
    yield from distributions(name=package, path=[*folders, *sys.path])


def _search(path: Path, code: LibraryCode) -> bytes:
    data = path.read_bytes()
    for content in _cubins(data, code.arch.rstrip("af")):
        if code.symbol.encode() in content and section_sha256(content, code.symbol) == code.section_sha256:
            return content
    raise GemmsimError(
        f"{path.name} of {code.package} {code.version} does not hold the captured code of {code.symbol}, which it may "
        "have made while it ran: `gemmsim-validate capture --library-code` keeps it"
    )


def _cubins(data: bytes, arch: str) -> Iterator[bytes]:
    """Return the cubins in a library: those of its fatbins, and then those that it keeps compressed in other places."""
    import zstandard
    from elftools.elf.elffile import ELFFile

    from gemmsim.compile.fatbin import device_images

    for image in device_images(data):
        if image.kind == "cubin" and image.arch.rstrip("af") == arch:
            yield image.content()
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        if section.name in _FATBINS or section["sh_type"] == "SHT_NOBITS":
            continue
        held, at = section.data(), 0
        while (at := held.find(_ZSTD_FRAME, at)) >= 0:
            frame = memoryview(held)[at:]
            try:
                size = zstandard.get_frame_parameters(frame[:_HEADER_BYTES]).content_size
                content = zstandard.ZstdDecompressor().decompress(frame) if 0 < size <= _MOST_BYTES else b""
            except zstandard.ZstdError:  # the bytes only look like the begin of a frame
                content = b""
            if content.startswith(ELF):
                yield content
            at += len(_ZSTD_FRAME)
