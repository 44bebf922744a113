"""Tells whose code a kernel is, by the file that launched it."""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmsim.compile.sections import DAMAGE, sections

_RUNTIME = re.compile(r"libcudart\.so|libnvrtc")  # what libraries and programs launch through
_VERSION = re.compile(r"\.so\.([0-9.]+)$")


@dataclass(frozen=True)
class Owner:
    """A library that brings device code: `libcublasLt.so.13` of the package nvidia-cublas 13.1.0.3.

    package, version  of the wheel that installed it; where none did, "" and the version in the file's name
    """

    file: str
    package: str
    version: str


def owner_of(callers: Sequence[str]) -> Owner | None:
    """Return the library whose code launched a kernel and which holds device code; None where the program did itself.

    callers  the files of the functions on the stack, the innermost first
    """
    first = next((one for one in callers if not _RUNTIME.search(Path(one).name)), None)
    if first is None or ".so" not in Path(first).name:
        return None
    return _library(Path(first))


@cache
def _library(path: Path) -> Owner | None:
    package, version = _package(path)
    if not package and not path.name.startswith(("libcu", "libnv")):
        return None  # a library of the user's own
    if not _holds_device_code(path):
        return None  # such as the bindings by which Python programs launch what was compiled a moment ago
    named = _VERSION.search(path.resolve().name)
    return Owner(path.name, package, version or (named[1] if named else ""))


def _package(path: Path) -> tuple[str, str]:
    """Return name and version of the wheel that installed a file; "" twice where none did."""
    for site in path.parents:
        if site.name not in ("site-packages", "dist-packages"):
            continue
        inside = f"{path.relative_to(site)},"
        for record in sorted(site.glob("*.dist-info/RECORD")):
            if inside in record.read_text(errors="replace"):
                name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
                return name.replace("_", "-"), version
    return "", ""


def _holds_device_code(path: Path) -> bool:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            return any(".nv_fatbin" in name for name in sections(library))
    except (OSError, *DAMAGE):
        return False
