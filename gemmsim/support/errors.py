"""Defines the one exception that users see: they get a single clear line, no traceback, and exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GemmsimError(Exception):
    """The user's input or the environment is wrong. The message says what is wrong and what would be right."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint for the end of a message: ` (did you mean 'tiled'?)`, or "" where no known word is like `word`."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""
