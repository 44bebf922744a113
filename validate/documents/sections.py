"""What a document is made of, whatever its format: headings, paragraphs and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """columns: their names; rows: texts; numeric: the numbers of the columns that are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs and at most one table."""

    title: str
    text: tuple[str, ...] = ()
    table: Table | None = None


def table(columns: Iterable[str], rows: Iterable[tuple[str, ...]], numeric: Iterable[int] = ()) -> Table:
    """A `Table` from any iterables."""
    return Table(tuple(columns), tuple(rows), frozenset(numeric))
