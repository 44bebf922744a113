"""Compiled kernels on disk, one file for each.

A file is written under a temporary name and then renamed, so that no process ever reads half of one. Its checksum shows
whether it is damaged; a damaged file counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from gemmsim.isa.program import Program
from gemmsim.isa.serialize import program_from_bytes, program_to_bytes
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import PRIVATE, write_atomically

_MAGIC = b"gemmsim-cache-1\n"
_DIGEST_BYTES, _LENGTH_BYTES = 32, 8


class CacheWarning(UserWarning):
    """The cache cannot be used. The result is right all the same, but it takes longer."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a compiled kernel."""

    program: Program
    cubin: bytes


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder with the entries, each under its key. It is created when the first entry is stored."""

    folder: Path

    def load(self, key: str) -> Entry | None:
        """The entry, or None where there is none or it is damaged."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        body = opened(_MAGIC, data)
        if body is None:
            return None
        length = int.from_bytes(body[:_LENGTH_BYTES], "little")
        cubin, program = body[_LENGTH_BYTES : _LENGTH_BYTES + length], body[_LENGTH_BYTES + length :]
        try:
            return Entry(program_from_bytes(program), cubin)
        except GemmsimError:
            return None

    def store(self, key: str, entry: Entry) -> None:
        """Write an entry. Where the folder cannot be written, this warns (CacheWarning, one line) and goes on."""
        body = len(entry.cubin).to_bytes(_LENGTH_BYTES, "little") + entry.cubin + program_to_bytes(entry.program)
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, sealed(_MAGIC, body), PRIVATE)
        except OSError as error:
            warnings.warn(
                f"cannot write the cache folder '{self.folder}' ({error.strerror}); going on without it: set "
                "GEMMSIM_CACHE_DIR to a folder that can be written",
                CacheWarning,
                stacklevel=2,
            )

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def sealed(magic: bytes, body: bytes) -> bytes:
    """The content of a file with this body: a magic word, a checksum of the body, the body."""
    return magic + hashlib.sha256(body).digest() + body


def opened(magic: bytes, data: bytes) -> bytes | None:
    """The body of a file that `sealed` made; None where the data is of another kind or damaged."""
    header = len(magic) + _DIGEST_BYTES
    body = data[header:]
    whole = data[: len(magic)] == magic and hashlib.sha256(body).digest() == data[len(magic) : header]
    return body if whole else None


def default_cache() -> Cache:
    """The cache in the folder that GEMMSIM_CACHE_DIR names or, without it, in the user's cache folder."""
    if chosen := os.environ.get("GEMMSIM_CACHE_DIR"):
        return Cache(Path(chosen))
    from platformdirs import user_cache_path

    return Cache(user_cache_path("gemmsim", appauthor=False))
