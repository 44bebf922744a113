"""Writes the data of a command to stdout or to a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gemmsim.cli.colour import coloured, wanted
from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import write_where_asked
from gemmsim.support.progress import clear


def emit(text: str, path: str | None) -> None:
    """Write `text` to stdout, or to the file `path`. Raises GemmsimError where the file cannot be written."""
    clear()
    if not text.endswith("\n"):
        text += "\n"
    if path is None:
        click.echo(_coloured(text) if wanted(sys.stdout) else text, nl=False)
    else:
        write_file(text.encode(), path)


def _coloured(text: str) -> str:
    """Colour what people read; data for programs stays as it is, on a terminal too."""
    context = click.get_current_context(silent=True)
    plain = context is None or context.params.get("output_format", "text") != "text"
    return text if plain else coloured(text)


def show_printed(text: str) -> None:
    """Write what a kernel printed to stderr, where nothing that a program reads is."""
    if text:
        clear()
    click.echo(text, nl=False, err=True)


def write_file(content: bytes, path: str) -> None:
    """Write `content` to the file `path`, of which no reader ever sees a part alone, or through a device or FIFO.

    Raises GemmsimError if it fails.
    """
    if path == "-":
        raise GemmsimError("'-' is no name of a file here: what is to go to stdout needs no -o")
    try:
        write_where_asked(Path(path), content)
    except OSError as error:
        raise GemmsimError(f"cannot write {path}: {error.strerror}") from None
