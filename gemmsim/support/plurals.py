"""Writes counts with their nouns: "1 block", "2 blocks"."""

from __future__ import annotations


def plural(count: float, noun: str, shown: str | None = None) -> str:
    """Return a count with its noun, of which there are several where the count is not 1: "1 block", "1,024 launches".

    shown  the count as it is written; None: a whole number with separators
    """
    written = f"{count:,.0f}" if shown is None else shown
    return f"{written} {noun}" if count == 1 else f"{written} {nouns(noun)}"


def nouns(noun: str) -> str:
    """Return the form of a noun for several: "blocks", "launches", "accesses"."""
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def verb(count: float, one: str, several: str) -> str:
    """Return the form of a verb for a count: "is" or "are"."""
    return one if count == 1 else several
