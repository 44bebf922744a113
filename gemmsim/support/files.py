"""Writes files such that no reader ever sees a file that is only partly written, and reads those that only this user
can have written."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

PRIVATE = 0o600
AS_UMASK_ALLOWS = 0o666
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def write_atomically(path: Path, data: bytes, mode: int = AS_UMASK_ALLOWS) -> None:
    """Write `data` to `path`. A reader sees the old file, the new one, or none, never a part of one.

    The data go to a temporary file in the same folder, with the permissions `mode`, which is then renamed to
    `path`. Raises OSError where the folder is missing or the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_own(path: Path) -> bytes | None:
    """Return what is in a file that only this user can have written; None where there is none, or others could.

    Where users have no numbers, the folder's rights must suffice.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE):
                return None
            return file.read()
    except OSError:
        return None


def write_where_asked(path: Path, data: bytes) -> None:
    """Write `data` where a user asked for it: atomically to a file, and through a device, a FIFO or a socket.

    A symbolic link stays, and the file that it leads to is written. Raises OSError as `write_atomically` does.
    """
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
    # /dev/stdout leads to a file that another program holds open: renamed over, it would never see the data.
    if not regular or path.absolute().is_relative_to("/dev") or path.absolute().is_relative_to("/proc"):
        with path.open("wb", buffering=0) as file:
            file.write(data)
        return
    write_atomically(Path(os.path.realpath(path)), data)


def is_file(path: Path) -> bool:
    """Whether there is a file of that name; a name that no file can have is none, where `Path.is_file` may raise."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
