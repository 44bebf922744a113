"""Defines the one exception that users see: they get a single clear line, no traceback, and exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class GemmsimError(Exception):
    """The user's input or the environment is wrong. The message says what is wrong and what would be right.

    Each, also of a class that wants more than a message, comes back from another process as it was: a pool of processes
    whose worker raises an error that cannot be read again waits for ever.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, dict(self.__dict__))


def _again(kind: type[GemmsimError], args: tuple[Any, ...], fields: Mapping[str, Any]) -> GemmsimError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint for the end of a message: ` (did you mean 'tiled'?)`, or "" where no known word is like `word`."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""
