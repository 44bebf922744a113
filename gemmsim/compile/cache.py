"""Keeps the programs of compiled kernels on disk, one file for each.

A file is written under a temporary name and then renamed, so that no process ever reads half of one. Its checksum shows
whether it is damaged, or was stored under another key: who may write the folder can rename its files. Such a file
counts as absent.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path

from gemmsim.isa.program import Program
from gemmsim.isa.serialize import program_from_bytes, programs_to_bytes
from gemmsim.support.cache_folder import CacheWarning, cache_folder
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import PRIVATE, read_own, write_atomically

_MAGIC = b"gemmsim-cache-2\n"
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder that keeps programs, each under its key. The folder is created when the first program is stored."""

    folder: Path

    def load(self, key: str) -> Program | None:
        """Return the program that is stored under `key`.

        None where there is none, where its file is damaged, and where somebody else can have written it.
        """
        data = read_own(self._path(key))
        body = None if data is None else opened(_MAGIC, key, data)
        try:
            return None if body is None else program_from_bytes(body)
        except GemmsimError:
            return None

    def store(self, key: str, program: Program) -> None:
        """Store a program under `key`. Where the folder cannot be written, warn (CacheWarning, one line) and go on."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, sealed(_MAGIC, key, programs_to_bytes([program])), PRIVATE)
        except OSError as error:
            warnings.warn(
                f"cannot write the cache folder '{self.folder}' ({error.strerror}); going on without it: set "
                "GEMMSIM_CACHE_DIR to a folder that can be written",
                CacheWarning,
                stacklevel=2,
            )

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def sealed(magic: bytes, key: str, body: bytes) -> bytes:
    """Return the content of the file for `key` with this body: a magic word, a checksum of key and body, the body."""
    return magic + _checksum(key, body) + body


def opened(magic: bytes, key: str, data: bytes) -> bytes | None:
    """Return the body of data that `sealed` made for `key`; None for another key or magic word, and where the data is
    damaged."""
    header = len(magic) + _DIGEST_BYTES
    body = data[header:]
    whole = data[: len(magic)] == magic and _checksum(key, body) == data[len(magic) : header]
    return body if whole else None


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + body).digest()


def default_cache() -> Cache:
    """Return the cache in `cache_folder()`."""
    return Cache(cache_folder())
