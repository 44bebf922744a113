"""Where a command's data goes."""

from __future__ import annotations

from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import write_atomically


def emit(text: str, path: str | None) -> None:
    """Write `text` to stdout, or to the file `path`. Raises GemmsimError where the file cannot be written."""
    if not text.endswith("\n"):
        text += "\n"
    if path is None:
        click.echo(text, nl=False)
    else:
        write_file(text.encode(), path)


def write_file(content: bytes, path: str) -> None:
    """Write a file so that no reader ever sees half of it. Raises GemmsimError where it cannot be written."""
    try:
        write_atomically(Path(path), content)
    except OSError as error:
        raise GemmsimError(f"cannot write {path}: {error.strerror}") from None
