"""Reads the option --plot, which says what picture goes into which file, and writes the pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gemmsim.cli.output import write_file
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True, slots=True)
class Wanted:
    """A picture that one --plot asks for: its kind, the path of its file, and its format ("png", "svg" or "pdf")."""

    kind: str
    path: str
    file_format: str


def wanted_plots(texts: Sequence[str], kinds: Sequence[str]) -> list[Wanted]:
    """Read the texts of --plot, such as `roofline.png` or `memory:a.svg`.

    Raises GemmsimError for a kind of picture that is unknown or not named, for another format, and without matplotlib.
    """
    if not texts:
        return []
    from gemmsim.report.plots.figure import figure_format, require_matplotlib

    require_matplotlib()
    found = []
    for text in texts:
        kind, path = _kind_and_path(text, kinds)
        found.append(Wanted(kind, path, figure_format(path)))
    return found


def write_plots(wanted: Sequence[Wanted], makers: Mapping[str, Callable[[], Any]]) -> None:
    """Draw all pictures, then write all files. `makers` has for each kind a function that makes the figure."""
    from gemmsim.report.plots.figure import figure_bytes

    drawn = [(one.path, figure_bytes(makers[one.kind](), one.file_format)) for one in wanted]
    for path, content in drawn:
        write_file(content, path)
    for path, _ in drawn:
        click.echo(f"wrote {path}", err=True)


def _kind_and_path(text: str, kinds: Sequence[str]) -> tuple[str, str]:
    kind, colon, path = text.partition(":")
    if colon and len(kind) > 1 and "/" not in kind:  # C:\a.png is a path, not a picture of the kind "C"
        if kind not in kinds:
            raise GemmsimError(f"--plot {text}: no picture '{kind}'; there are {', '.join(kinds)}")
        return kind, path
    if len(kinds) == 1:
        return kinds[0], text
    said = [kind for kind in kinds if kind in Path(text).stem.lower()]
    if len(said) != 1:
        raise GemmsimError(f"--plot {text} does not say which picture: --plot {kinds[0]}:{text}, of {', '.join(kinds)}")
    return said[0], text
