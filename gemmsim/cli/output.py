"""Where a command's data goes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError


def emit(text: str, path: str | None) -> None:
    """Writes `text` to stdout, or to `path` by way of a temporary file, so that a reader never sees half of it."""
    if not text.endswith("\n"):
        text += "\n"
    if path is None:
        click.echo(text, nl=False)
    else:
        write_file(text.encode(), path)


def write_file(content: bytes, path: str) -> None:
    """By way of a temporary file beside it; raises GemmsimError where that cannot be."""
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101  mkstemp makes it private
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise GemmsimError(f"cannot write {path}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
