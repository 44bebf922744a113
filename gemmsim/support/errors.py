"""The one exception that users see: a single clear line, no traceback, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GemmsimError(Exception):
    """Something the user gave, or the environment, is wrong; the message says what, and what would be right."""


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'tiled'?)`, or an empty string where nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""
