"""Writes JSON and CSV for programs to read."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def json_text(data: Any) -> str:
    """Render `data` as indented JSON. NaN and infinite numbers, which JSON does not have, become null."""
    return json.dumps(plain(data), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Turn `value` into values that JSON has: null for unknown and infinite numbers, integers for whole numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # a count reads as one
    return value


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Render rows as CSV, with a header and a line for each row.

    The columns are all keys of the rows, in the order in which they first occur. A cell is empty
    where its row has no such key, and where the value is None or not finite.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return plain(value)
