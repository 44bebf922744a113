"""Defines command-line options that several subcommands share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)
FOLDERS = click.Path(path_type=Path, exists=True, file_okay=False)
OUTPUT_FILE = click.Path(path_type=Path, dir_okay=False)


class _Expression(click.ParamType):
    """A regular expression, as text."""

    name = "expression"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            re.compile(value)
        except (re.error, OverflowError) as error:  # a{99999999999} overflows
            self.fail(f"'{value}' is no regular expression: {error}", param, ctx)
        return value


EXPRESSION = _Expression()
folders_argument = click.argument("folders", nargs=-1, type=FOLDERS)
output_option = click.option("-o", "--output", type=OUTPUT_FILE, help="File instead of stdout.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(1), default=None, help="Processes; as many as cores by default."
)


def emit(text: str, output: Path | None) -> None:
    """Write a command's text to the file `output`, or to stdout where that is None."""
    from ..records.files import write_bytes

    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode())


def made_by(command: str, filters: dict[str, tuple[Any, ...]], form: str, flags: Sequence[str] = ()) -> str:
    """Return the command line that made a document: the values of each filter, flags, and the format `form`."""
    options = [str(word) for name, values in filters.items() for value in values for word in (f"--{name}", value)]
    options += [f"--{flag}" for flag in flags]
    return shlex.join(["gemmsim-validate", command, *options, "--format", form])
