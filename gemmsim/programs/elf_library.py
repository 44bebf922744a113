"""Writes a small ELF shared library without a compiler or a linker: functions that jump to where a table says.

The format is that of the System V ABI and its supplement for x86-64. The library needs no relocation: a function is
one jump through the table, which lies in the library's writable part and is filled once the library is loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_PAGE = 4096
_STUB_BYTES = 16
_ENDBR64, _JUMP = b"\xf3\x0f\x1e\xfa", b"\xff\x25"  # the jump's operand: 32 bits from the next instruction to the word
_RETURN_ZERO = b"\x31\xc0\xc3"  # xor eax, eax; ret
_HEADER, _SEGMENT, _SYMBOL, _DYNAMIC = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IBBHQQ", "<QQ"
_DYN, _X86_64 = 3, 62
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_READ_EXECUTE, _READ_WRITE = 5, 6
_HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 10, 11, 14
_GLOBAL_FUNCTION, _DEFINED = 0x12, 1


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library. Offsets are in its memory image, in bytes.

    content         the file
    stubs_offset    of function 0; function i lies 16 i bytes behind it
    return_offset   of a function that returns 0
    table_offset    of the table: word i is the address to which function i jumps
    """

    content: bytes
    stubs_offset: int
    return_offset: int
    table_offset: int

    def stub_offset(self, slot: int) -> int:
        return self.stubs_offset + _STUB_BYTES * slot


def shared_library(soname: str, slots: int, exports: Mapping[str, int]) -> Library:
    """Write a library of `slots` functions that calls itself `soname`.

    exports  {symbol: number of its function}
    """
    strings, places = bytearray(b"\0"), {}
    for name in (soname, *exports):
        places[name] = len(strings)
        strings += name.encode() + b"\0"
    symbols = len(exports) + 1  # symbol 0 is none
    symbols_at = 64 + 4 * struct.calcsize(_SEGMENT)
    strings_at = symbols_at + symbols * struct.calcsize(_SYMBOL)
    hash_at = _aligned(strings_at + len(strings), 8)
    stubs_at = _aligned(hash_at + 4 * (3 + symbols), _STUB_BYTES)
    return_at = stubs_at + _STUB_BYTES * slots
    dynamic_at = _aligned(return_at + _STUB_BYTES, _PAGE)
    dynamic = (
        *((_SONAME, places[soname]), (_HASH, hash_at), (_STRTAB, strings_at), (_SYMTAB, symbols_at)),
        *((_STRSZ, len(strings)), (_SYMENT, struct.calcsize(_SYMBOL)), (0, 0)),
    )
    dynamic_bytes = 16 * len(dynamic)
    table_at = dynamic_at + dynamic_bytes
    image = bytearray(table_at + 8 * slots)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    struct.pack_into(_HEADER, image, 0, identity, _DYN, _X86_64, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    code, data = dynamic_at, len(image) - dynamic_at
    for number, segment in enumerate(
        (
            (_LOAD, _READ_EXECUTE, 0, 0, 0, code, code, _PAGE),
            (_LOAD, _READ_WRITE, dynamic_at, dynamic_at, dynamic_at, data, data, _PAGE),
            (_DYNAMIC_SEGMENT, _READ_WRITE, dynamic_at, dynamic_at, dynamic_at, dynamic_bytes, dynamic_bytes, 8),
            (_STACK, _READ_WRITE, 0, 0, 0, 0, 0, 16),  # else the loader asks for a stack that can be executed
        )
    ):
        struct.pack_into(_SEGMENT, image, 64 + number * struct.calcsize(_SEGMENT), *segment)
    for number, (name, slot) in enumerate(exports.items(), 1):
        at = stubs_at + _STUB_BYTES * slot
        symbol = (places[name], _GLOBAL_FUNCTION, 0, _DEFINED, at, _STUB_BYTES)
        struct.pack_into(_SYMBOL, image, symbols_at + number * struct.calcsize(_SYMBOL), *symbol)
    image[strings_at : strings_at + len(strings)] = strings
    chain = [0, *range(2, symbols), 0][:symbols]  # one bucket, in which each symbol is followed by the next
    struct.pack_into(f"<{3 + symbols}I", image, hash_at, 1, symbols, int(symbols > 1), *chain)
    for slot in range(slots):
        at = stubs_at + _STUB_BYTES * slot
        jump = _ENDBR64 + _JUMP
        image[at : at + len(jump)] = jump
        struct.pack_into("<i", image, at + len(jump), table_at + 8 * slot - (at + len(jump) + 4))
    image[return_at : return_at + len(_RETURN_ZERO)] = _RETURN_ZERO
    for number, entry in enumerate(dynamic):
        struct.pack_into(_DYNAMIC, image, dynamic_at + 16 * number, *entry)
    return Library(bytes(image), stubs_at, return_at, table_at)


def _aligned(number: int, to: int) -> int:
    return -(-number // to) * to
