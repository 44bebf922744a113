"""Defines `Section` and `Table`, of which a document is made before it is rendered in any format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of texts.

    columns  the names of the columns
    rows     the texts of each row, one for each column
    numeric  indices of the columns, from 0, that are aligned to the right
    """

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
    """Make a `Table` from iterables of its columns, rows and numeric columns."""
    return Table(tuple(columns), tuple(rows), frozenset(numeric))
