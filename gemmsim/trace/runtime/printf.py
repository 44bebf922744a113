"""Formats what a kernel prints, from printf's format and the buffer that the compiler fills with its arguments.

In the buffer each argument lies at a multiple of its size, in the order of the format: integers of 4 or 8 bytes,
doubles and pointers of 8 (CUDA's ABI for vprintf; PTX interoperability guide, "System calls").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcspn%])"
)
_WIDEST = 4096  # characters of one conversion


class BufferReader:
    """Reads arguments one after the other from a buffer.

    read  returns so many bytes from an offset on, fewer where there are no more
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read, self._at = read, 0

    def number(self, code: str) -> int | float:
        """Return the next argument, of the type that `code` of the module `struct` names; 0 where the buffer ends."""
        size = struct.calcsize("<" + code)
        self._at += -self._at % size
        data = self._read(self._at, size)
        self._at += size
        return struct.unpack("<" + code, data.ljust(size, b"\0"))[0]


def format_printf(form: str, arguments: BufferReader, text_at: Callable[[int], str]) -> tuple[str, int]:
    """Return what printf writes, and the number of arguments that it used.

    form     the format; a conversion that printf does not have stays as it is
    text_at  returns the text at an address, for %s
    """
    used = 0

    def converted(match: re.Match[str]) -> str:
        nonlocal used
        kind = match["kind"]
        if kind == "%":
            return "%"
        width, precision = match["width"], match["precision"]
        if width == "*":
            width, used = str(int(arguments.number("i"))), used + 1
        if precision == "*":
            precision, used = str(int(arguments.number("i"))), used + 1
        used += 1
        return _one(match["flags"], width, precision, match["length"] or "", kind, arguments, text_at)

    return _CONVERSION.sub(converted, form), used


def _one(
    flags: str,
    width: str,
    precision: str | None,
    length: str,
    kind: str,
    arguments: BufferReader,
    text_at: Callable[[int], str],
) -> str:
    """Format the next argument."""
    flags += "-" if width.startswith("-") else ""
    width = str(min(int(width.lstrip("-") or 0), _WIDEST) or "")
    if precision is not None and precision.startswith("-"):
        precision = None
    how = "%" + flags + width + ("" if precision is None else f".{min(int(precision or 0), _WIDEST)}")
    plain = "%" + flags.replace("0", "") + width
    if kind in "diouxX":
        wide = length in ("l", "ll", "j", "z", "t")
        value = int(arguments.number(("q" if wide else "i") if kind in "di" else ("Q" if wide else "I")))
        bits = {"hh": 8, "h": 16}.get(length)
        if bits:
            value &= (1 << bits) - 1
            value -= (value >> bits - 1 << bits) if kind in "di" else 0
        if kind == "o" and "#" in flags:  # in C a leading zero, in Python "0o"
            flags = flags.replace("#", "")
            precision = str(max(int(precision or 0), len(f"{value:o}") + (value != 0)))
        if precision is not None:  # then the flag 0 does not count
            how = "%" + flags.replace("0", "") + width + f".{min(int(precision or 0), _WIDEST)}"
        return (how + ("d" if kind in "iu" else kind)) % value
    if kind in "eEfFgG":
        return (how + kind) % arguments.number("d")
    if kind in "aA":
        text = float(arguments.number("d")).hex()
        return (plain + "s") % (text.upper() if kind == "A" else text)
    if kind == "c":
        return (plain + "c") % chr(int(arguments.number("i")) & 0xFF)
    if kind == "s":
        address = int(arguments.number("Q"))
        return (plain + ("" if precision is None else f".{int(precision or 0)}") + "s") % (
            text_at(address) if address else "(null)"
        )
    address = int(arguments.number("Q"))  # %p, and %n, which stores nothing on a GPU
    return (plain + "s") % (f"{address:#x}" if address else "(nil)") if kind == "p" else ""
