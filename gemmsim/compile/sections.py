"""Finds sections and kernels of a cubin by what Python alone has, for machines that only capture launches."""

from __future__ import annotations

import hashlib
import struct
from mmap import mmap

from gemmsim.compile.image import STT_FUNC, ElfSymbol
from gemmsim.support.errors import GemmsimError

_ROW = struct.Struct("<I20xQQI")  # of the table of sections: sh_name, sh_offset, sh_size, sh_link
_SHN_XINDEX = 0xFFFF  # the number of the section with names stands in the table's first row
_ELF64 = b"\x7fELF\x02"
_STO_CUDA_ENTRY = 0x10  # bit of st_other that marks a kernel
DAMAGE = (struct.error, ValueError, IndexError)


def sections(elf: bytes | mmap) -> dict[str, tuple[int, int]]:
    """Return {name: (offset, bytes)} of the sections of an ELF file of 64 bits; of two of one name, the first.

    Raises one of DAMAGE for another file, or a damaged one.
    """
    if elf[: len(_ELF64)] != _ELF64:
        raise ValueError("no ELF file of 64 bits")
    (table,), (row_bytes, count, names) = struct.unpack_from("<Q", elf, 0x28), struct.unpack_from("<3H", elf, 0x3A)
    first = _ROW.unpack_from(elf, table)
    count, names = count or first[2], first[3] if names == _SHN_XINDEX else names
    rows = [first, *(_ROW.unpack_from(elf, table + row_bytes * number) for number in range(1, count))]
    _, start, size, _ = rows[names]
    texts, found = elf[start : start + size], dict[str, tuple[int, int]]()
    for name, offset, length, _ in rows:
        found.setdefault(texts[name : texts.index(b"\0", name)].decode(errors="replace"), (offset, length))
    return found


def section_of(elf: bytes, name: str) -> bytes | None:
    """Return a section, None where there is none. Raises as `sections` does."""
    offset, length = sections(elf).get(name, (-1, 0))
    return elf[offset : offset + length] if offset >= 0 else None


def section_sha256(cubin: bytes, symbol: str) -> str:
    """Return the hash of the code of a kernel, without that of functions that it calls; "" where there is none."""
    try:
        code = section_of(cubin, f".text.{symbol}")
    except DAMAGE:
        return ""
    return hashlib.sha256(code).hexdigest() if code is not None else ""


def kernel_symbols(cubin: bytes) -> tuple[str, ...]:
    """Return the symbols of a cubin's kernels; a cubin may have none. Raises GemmsimError for a damaged cubin."""
    try:
        symbols = read_symbols(section_of(cubin, ".symtab") or b"", section_of(cubin, ".strtab") or b"")
    except DAMAGE as error:
        raise GemmsimError(f"the cubin is truncated or damaged ({type(error).__name__}: {error})") from None
    return tuple(symbol.name for symbol in symbols if is_kernel(symbol))


def is_kernel(symbol: ElfSymbol) -> bool:
    return symbol.kind == STT_FUNC and bool(symbol.other & _STO_CUDA_ENTRY) and symbol.section > 0


def read_symbols(table: bytes, names: bytes) -> list[ElfSymbol]:
    """Read the ELF64 symbols, which pyelftools cannot do: it drops the bits of st_other that CUDA uses."""
    symbols = []
    for name, kind, other, section, value, size in struct.iter_unpack("<IBBHQQ", table):
        text = names[name : names.index(b"\0", name)].decode()
        symbols.append(ElfSymbol(text, kind & 15, other, section, value, size))
    return symbols
