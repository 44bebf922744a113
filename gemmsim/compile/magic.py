"""Knows the first bytes of the kinds of files that may hold device code. It needs no library."""

from __future__ import annotations

ELF, ARCHIVE, FATBIN = b"\x7fELF", b"!<arch>\n", b"\x50\xed\x55\xba"


def holds_device_code(data: bytes) -> bool:
    """Whether a file with this content is of a kind that may hold device code; `fatbin.device_images` reads it."""
    return data.startswith((ELF, ARCHIVE, FATBIN, b"MZ"))
