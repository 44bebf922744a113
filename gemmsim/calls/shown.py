"""Defines `Shown`, which every result of a call is: it can be printed, looked at in a notebook, saved, made a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from gemmsim.report.layout.table_page import table_page
from gemmsim.support.errors import GemmsimError, nearest


class Shown:
    """A result that shows itself. Derived classes say how, in `_title`, `_renderers` and `_rows`."""

    def _title(self) -> str:
        """One line that says what this is."""
        raise NotImplementedError

    def _renderers(self) -> Mapping[str, Callable[[], str]]:
        """Return {form: function that renders it}, with at least text and json."""
        raise NotImplementedError

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the table that `to_dataframe` makes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<gemmsim: {self._title()}>"

    def __str__(self) -> str:
        return self._renderers()["text"]()

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return table_page(self._title(), self._rows(), str(self), whole=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `--format json` of the command of the same name prints, as dicts and lists."""
        found: dict[str, Any] = json.loads(self._renderers()["json"]())
        return found

    def to_dataframe(self) -> Any:
        """Return a table as a pandas.DataFrame. Raises GemmsimError, one line, where pandas is not installed."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise GemmsimError("to_dataframe needs pandas: pip install pandas; to_dict() needs nothing") from None
        return pandas.DataFrame([dict(row) for row in self._rows()])

    def save(self, path: str | Path) -> Path:
        """Write a file, whose suffix says which form: .html, .json, .txt, .csv or .md, where the result has it.

        Returns the file's path. Raises GemmsimError for another suffix, or where the file cannot be written.
        """
        forms = {".html": self._page, **{_SUFFIXES[form]: make for form, make in self._renderers().items()}}
        suffix = Path(path).suffix.lower()
        if suffix not in forms:
            hint = nearest(suffix, forms)
            raise GemmsimError(f"save '{path}': the name must end in {', '.join(forms)}, which says the form{hint}")
        try:
            Path(path).write_text(forms[suffix](), encoding="utf-8")
        except OSError as error:
            raise GemmsimError(f"cannot write '{path}': {error.strerror}") from None
        return Path(path)

    def _page(self) -> str:
        """Render a web page that fetches nothing."""
        return table_page(self._title(), self._rows(), str(self))


_SUFFIXES = {"text": ".txt", "json": ".json", "csv": ".csv", "md": ".md", "html": ".html"}
