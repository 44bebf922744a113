"""Stores machine code on disk: one file for each function and signature. The name of the file changes with
everything that the machine code depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmsim.compile.cache import opened, sealed
from gemmsim.compile.toolchain import versions_of
from gemmsim.support.cache_folder import CacheWarning, cache_folder, can_be_written
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import PRIVATE, read_own, write_atomically

PACKAGE = Path(__file__).resolve().parent.parent
_MAGIC = b"gemmsim-native-1\n"


@dataclass(frozen=True)
class MachineCode:
    """The machine code of one function.

    symbol   the function's name in the object file
    returns  the type of what it returns, a key of `arguments.RESULTS`: "int64", ...
    object   the object file
    """

    symbol: str
    returns: str
    object: bytes


def stored(name: str, sources: Sequence[Path], cpu: str, make: Callable[[], MachineCode]) -> MachineCode:
    """Return the machine code of a function: what is stored, else what `make` returns, which is then stored.

    The other arguments are those of `key_of`. Raises GemmsimError where a source file has changed since this process
    began: what it has imported and what the files say would not be the same.
    """
    sources = (*sources, *_OWN)
    place, key = folder(), key_of(name, sources, cpu)
    _check_unchanged(sources)
    code = load(key, place)
    if code is None:
        code = make()
        _check_unchanged(sources)
        save(key, place, code)
    return code


def key_of(name: str, sources: Iterable[Path], cpu: str) -> str:
    """Return the name of the file that holds a function's machine code.

    name     "module.function", variant and signature; the file name begins with a digest of it
    sources  the source files that the machine code depends on
    cpu      name and features of the CPU that it is for
    """
    digest = hashlib.sha256()
    for path in sources:
        digest.update(_digest_of(path))
    digest.update(repr((name, cpu, versions_of(("llvmlite",)))).encode())
    return f"{stem_of(name)}.{digest.hexdigest()[:32]}"


def _check_unchanged(sources: Iterable[Path]) -> None:
    """Raise GemmsimError where a source file is not what it was when this process began to import this package."""
    for path in sources:
        state = _state_of(path)
        if _SEEN.setdefault(path, state) != state:
            raise GemmsimError(f"'{path}' has changed since this process began, which compiles it now: start it again")


def _state_of(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


_OWN = tuple(sorted(Path(__file__).resolve().parent.glob("*.py")))  # what translates and compiles
# Source file -> its state when this module was imported, of others when they were first asked for
_SEEN = {path: _state_of(path) for path in PACKAGE.rglob("*.py")}


@cache
def _digest_of(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def stem_of(name: str) -> str:
    """Return how the names of all files begin that are kept for one function, variant and signature.

    name  "module.function", variant and signature, as in `key_of`
    """
    return f"gemmsim-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def folder() -> Path:
    """Return the folder for machine code: that of the package's bytecode, or, where that cannot be written, one in
    `cache_folder()`.
    """
    bytecode = PACKAGE / "__pycache__"
    return bytecode if can_be_written(bytecode) else cache_folder() / "native"


def load(key: str, place: Path) -> MachineCode | None:
    """Read the code that file `key` of folder `place` holds. Returns None where there is no such file, where it is
    damaged, or where somebody else could have written it.
    """
    path = place / key
    data = read_own(path)
    if data is None:
        return None
    body = opened(_MAGIC, key, data)
    if body is None:
        return None
    symbol, returns, code = body.split(b"\n", 2)
    return MachineCode(symbol.decode(), returns.decode(), code)


def save(key: str, place: Path, code: MachineCode) -> None:
    """Store code as file `key` of folder `place`, and delete older files there of the same function and signature.
    Where it cannot be stored, a CacheWarning says so.
    """
    body = b"\n".join((code.symbol.encode(), code.returns.encode(), code.object))
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / key, sealed(_MAGIC, key, body), PRIVATE)
    except OSError as error:
        warnings.warn(
            f"cannot write the folder '{place}' ({error.strerror}): the engines are compiled again in each run",
            CacheWarning,
            stacklevel=2,
        )
        return
    for old in _others(key, place):
        with contextlib.suppress(OSError):
            old.unlink()


def _others(key: str, place: Path) -> Sequence[Path]:
    return [path for path in place.glob(f"{key.partition('.')[0]}.*") if path.name != key]
