"""Reads from a cubin which tool made it and of which version."""

from __future__ import annotations

import io
import re
import struct

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

_NOTE = struct.Struct("<III")  # bytes of the owner's name, bytes of the description, type
_TOOLS = struct.Struct("<6I")  # version, then places of strings behind it: object, tool, its version, branch, options
_TOOL_INFO = 2000  # type of the note with the tool
_RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")
_API_VERSION = b"\x04\x37\x04\x00"  # format, number and size of EIATTR_CUDA_API_VERSION in .nv.info.KERNEL


def made_by(cubin: bytes) -> dict[str, str]:
    """Return {tool: version} of the last tool that wrote the cubin.

    Since CUDA 13 a note in it names tool and version: {"ptxas": "13.0.88"}. Of earlier cubins only the version of CUDA
    is known: {"CUDA": "11.8"}. The result is empty where neither is there.
    """
    try:
        sections = {section.name: section.data() for section in ELFFile(io.BytesIO(cubin)).iter_sections()}
        if note := sections.get(".note.nv.tkinfo"):
            tool, version = _tool(note)
            return {tool: version}
        for name, data in sections.items():
            if name.startswith(".nv.info.") and (at := data.find(_API_VERSION)) >= 0:
                number = struct.unpack_from("<I", data, at + len(_API_VERSION))[0]
                return {"CUDA": f"{number // 10}.{number % 10}"}
    except (ELFError, struct.error, ValueError, IndexError, TypeError, AttributeError, OverflowError):
        pass  # the version is told where it can be read; a damaged cubin is refused where its code is read
    return {}


def _tool(note: bytes) -> tuple[str, str]:
    owner, _size, kind = _NOTE.unpack_from(note)
    start = _NOTE.size + (owner + 3) // 4 * 4
    _version, _object, tool, version, _branch, _options = _TOOLS.unpack_from(note, start)
    if kind != _TOOL_INFO:
        raise ValueError(f"note {kind}")
    strings = note[start + _TOOLS.size :]
    text = _string(strings, version)
    release = _RELEASE.search(text)
    return _string(strings, tool), release[1] if release else text


def _string(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode()
