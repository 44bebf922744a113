"""Says where an outcome lies, as code hosts want it: in files of the checkout, by their path from its root."""

from __future__ import annotations

from pathlib import Path

from gemmsim.isa.program import SourceLine


def within(line: SourceLine) -> str | None:
    """Return the path of a line's file from the current folder, with slashes; None where it lies elsewhere."""
    path = Path(line.file)
    if not path.is_absolute():
        return path.as_posix()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else None
