"""Finds the device code in a file: in a cubin, a fatbin, an executable, a shared library, an object file or an archive.

NVIDIA publishes no description of fatbins. The fields here are those that fatbins of nvcc 11.8 to 13.5 have; each was
checked against what cuobjdump says of the same file. A fatbin is a header and then entries, each with a header of its
own and a payload: a cubin or PTX, perhaps compressed.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from gemmsim.compile.magic import ARCHIVE, ELF, FATBIN
from gemmsim.support.errors import GemmsimError

_EM_CUDA = 190  # e_machine of the ELF specification's registry
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of all entries
# kind, version, bytes of this header, bytes of the payload, compressed bytes, offset of options, version of the code,
# SM version, offset and length of the source's name, flags, reserved, bytes when unpacked
_ENTRY = struct.Struct("<HHIQIIIIIIQQQ")
_PTX, _CUBIN = 1, 2  # kinds
_LZ4, _ZSTD, _SPECIFIC, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000  # flags; the last two are sm_90a and sm_100f
_MEMBER = struct.Struct("<16s12s6s6s8s10s2s")  # header of an archive's member; the 6th field is its size in digits
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


@dataclass(frozen=True)
class Image:
    """Device code for one architecture.

    kind         "cubin" or "ptx"
    sm           SM version (90); of PTX, the lowest that it can be compiled for
    suffix       "a" for code of this SM version alone (sm_90a), "f" for its family, else empty
    compression  "LZ4", "zstd" or empty
    relocatable  whether it must be linked before it can run (`nvcc -dc`)
    packed       the payload as it is in the file; `content` unpacks it
    size         bytes when unpacked
    """

    kind: str
    sm: int
    suffix: str
    compression: str
    relocatable: bool
    packed: bytes
    size: int

    @property
    def arch(self) -> str:
        return f"sm_{self.sm}{self.suffix}"

    def content(self) -> bytes:
        """Return the cubin, or the text of the PTX. Raises GemmsimError for damaged data or a missing library."""
        if not self.compression:
            return self.packed
        unpack = _unpack_lz4 if self.compression == "LZ4" else _unpack_zstd
        data = unpack(self.packed, self.size)
        if len(data) != self.size:
            raise GemmsimError(f"the fatbin is damaged: an entry unpacks to {len(data)} bytes instead of {self.size}")
        return data


def device_images(data: bytes) -> tuple[Image, ...]:
    """Return the device code in a file with this content, in its order there.

    Raises GemmsimError, with a message of one line, where the file is of another kind, is damaged or has no device
    code.
    """
    try:
        images = tuple(_images(data))
    except (ELFError, struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise GemmsimError(f"the file is truncated or damaged ({type(error).__name__}: {error})") from None
    if not images:
        raise GemmsimError("the file holds no device code (no fatbin): was it compiled by nvcc?")
    return images


def _images(data: bytes) -> Iterator[Image]:
    if data.startswith(FATBIN):
        yield from _fatbins(data, relocatable=False)
    elif data.startswith(ARCHIVE):
        for member in _members(data):
            if member.startswith(ELF):
                yield from _images(member)
    elif data.startswith(ELF):
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] in ("EM_CUDA", _EM_CUDA):
            yield _cubin(data)
            return
        sections = {section.name: section.data() for section in elf.iter_sections() if section.name in _SECTIONS}
        images = [image for name, content in sections.items() for image in _fatbins(content, name != _SECTIONS[0])]
        linked = [image for image in images if not image.relocatable]
        yield from linked or images  # beside its linked code, an executable keeps the parts that it was linked from
    elif not data:
        raise GemmsimError("the file is empty")
    elif data.startswith(b"MZ"):
        raise GemmsimError("a Windows program is not read: give the cubin or the fatbin that nvcc --keep leaves")
    else:
        raise GemmsimError("neither a cubin, a fatbin, an ELF file nor an archive: the first bytes are of no such file")


def _cubin(data: bytes) -> Image:
    """Describe a cubin that is not in a fatbin. Where its header has the SM version, `elf._sm` says."""
    flags, version = struct.unpack_from("<I", data, 0x30)[0], data[8]
    relocatable = struct.unpack_from("<H", data, 0x10)[0] == 1  # e_type is ET_REL
    return Image("cubin", flags >> 8 & 0xFF if version >= 8 else flags & 0xFF, "", "", relocatable, data, len(data))


def _members(data: bytes) -> Iterator[bytes]:
    position = len(ARCHIVE)
    while position + _MEMBER.size <= len(data):
        size = int(_MEMBER.unpack_from(data, position)[5])
        position += _MEMBER.size
        yield data[position : position + size]
        position += size + size % 2


def _fatbins(data: bytes, relocatable: bool) -> Iterator[Image]:
    """Read the fatbins that stand one after another in `data`, which a linker may have padded with zeros."""
    position = 0
    while (position := data.find(FATBIN, position)) >= 0:
        _magic, version, header, size = _HEADER.unpack_from(data, position)
        if version != 1:
            raise GemmsimError(f"the fatbin has version {version} of its format; gemmsim reads version 1")
        start, stop = position + header, position + header + size
        if stop > len(data):
            raise GemmsimError(f"the fatbin is truncated: it should have {size} bytes, {len(data) - start} are there")
        yield from _entries(data[start:stop], relocatable)
        position = stop


def _entries(data: bytes, relocatable: bool) -> Iterator[Image]:
    position = 0
    while position < len(data):
        kind, _version, header, payload, packed, _options, _code, sm, *rest = _ENTRY.unpack_from(data, position)
        _name, _name_bytes, flags, _reserved, unpacked = rest
        start, position = position + header, position + header + payload
        if position > len(data) or header < _ENTRY.size or packed > payload:
            raise GemmsimError("the fatbin is damaged: an entry ends beyond it")
        if kind not in (_PTX, _CUBIN):  # NVVM and linker input of other kinds
            continue
        compression = "zstd" if flags & _ZSTD else "LZ4" if flags & _LZ4 else ""
        suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
        content = data[start : start + packed] if compression else data[start:position]
        yield Image(
            kind="ptx" if kind == _PTX else "cubin",
            sm=sm,
            suffix=suffix,
            compression=compression,
            relocatable=relocatable,
            packed=content,
            size=unpacked if compression else len(content),
        )


def _unpack_lz4(packed: bytes, size: int) -> bytes:
    try:
        from lz4 import block
    except ImportError:
        raise _missing("lz4", "LZ4") from None
    try:
        return bytes(block.decompress(packed, uncompressed_size=size))
    except block.LZ4BlockError as error:
        raise GemmsimError(f"the fatbin is damaged: {error}") from None


def _unpack_zstd(packed: bytes, size: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise _missing("zstandard", "zstd") from None
    try:
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise GemmsimError(f"the fatbin is damaged: {error}") from None


def _missing(package: str, compression: str) -> GemmsimError:
    return GemmsimError(f"the device code is compressed by {compression}: pip install {package}")
