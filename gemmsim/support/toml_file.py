"""Reads TOML files that users write."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """Return what the file at `path` says, with a byte order mark, as some editors write one, or without.

    Raises OSError, and ValueError for all that is no TOML: also numbers of more digits than Python reads, and brackets
    so deep that the parser gives up, which it says by RecursionError.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise ValueError("brackets are nested too deep") from None
