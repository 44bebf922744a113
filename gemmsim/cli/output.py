"""Where a command's data goes."""

from __future__ import annotations

from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import write_atomically


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
    try:
        write_atomically(Path(path), content)
    except OSError as error:
        raise GemmsimError(f"cannot write {path}: {error.strerror}") from None
