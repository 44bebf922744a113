"""Builds files with device code byte by byte: ELF files, cubins, fatbins and archives."""

from __future__ import annotations

import struct
from dataclasses import dataclass

X86, CUDA = 62, 190
EXECUTABLE, RELOCATABLE = 2, 1


def elf(sections: dict[str, bytes], machine: int = X86, kind: int = EXECUTABLE, flags: int = 0, abi: int = 0) -> bytes:
    """An ELF64 file with these sections, in the order given: header, contents, names, table of sections."""
    names, offsets = b"\0", {}
    body = b""
    for name, content in sections.items():
        offsets[name] = (len(names), 64 + len(body), len(content))
        names += name.encode() + b"\0"
        body += content
    table = bytes(64)
    for name, (at, start, size) in offsets.items():
        section_type = {".symtab": 2, ".strtab": 3}.get(name, 1)
        link = 1 + list(sections).index(".strtab") if name == ".symtab" else 0
        table += struct.pack("<IIQQQQIIQQ", at, section_type, 0, 0, start, size, link, 0, 1, 24)
    own = len(names)
    names += b".shstrtab\0"
    table += struct.pack("<IIQQQQIIQQ", own, 3, 0, 0, 64 + len(body), len(names), 0, 0, 1, 0)
    count = len(sections) + 2
    header = b"\x7fELF" + bytes([2, 1, 1, 0x41 if machine == CUDA else 0, abi]) + bytes(7)
    header += struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 64 + len(body) + len(names), flags, 64, 56, 0, 64, count, count - 1
    )
    content = header + body + names + table
    return content + bytes(-len(content) % 8)  # an entry of a fatbin is padded to 8 bytes


def cubin(sm: int, *kernels: str, extra: dict[str, bytes] | None = None, kind: int = EXECUTABLE) -> bytes:
    """A cubin of ABI version 8 with a symbol of each kernel, and nothing of what is needed to run one."""
    strings, symbols = b"\0", bytes(24)
    for number, kernel in enumerate(kernels):
        symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 0x10, 1, 16 * number, 16)
        strings += kernel.encode() + b"\0"
    sections = {".text": b"", ".symtab": symbols, ".strtab": strings} | (extra or {})
    return elf(sections, CUDA, kind, flags=sm << 8, abi=8)


@dataclass(frozen=True)
class Entry:
    """An entry of a fatbin: kind 1 is PTX, 2 a cubin. `packed` is its payload where `flags` say that it is packed."""

    content: bytes
    sm: int
    kind: int = 2
    flags: int = 0x11
    packed: bytes | None = None


def fatbin(*entries: Entry) -> bytes:
    body = b""
    for entry in entries:
        payload = entry.content if entry.packed is None else entry.packed
        padding = bytes(-len(payload) % 8)
        packed, unpacked = (0, 0) if entry.packed is None else (len(payload), len(entry.content))
        body += struct.pack(
            "<HHIQIIIIIIQQQ", entry.kind, 0x101, 64, len(payload + padding), packed, 0, 0x10008, entry.sm, 0, 0,
            entry.flags, 0, unpacked,
        )  # fmt: skip
        body += payload + padding
    return b"\x50\xed\x55\xba" + struct.pack("<HHQ", 1, 16, len(body)) + body


def archive(*members: bytes) -> bytes:
    body = b"!<arch>\n"
    for number, member in enumerate(members):
        body += f"{f'm{number}.o/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(member):<10}`\n".encode()
        body += member + b"\n" * (len(member) % 2)
    return body
