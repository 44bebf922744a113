"""What each counter means, from `metrics.toml`."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Metric:
    """unit: "" for a plain count; meaning: what it counts and which values are good; section: its topic."""

    label: str
    unit: str
    meaning: str
    section: str


def _expanded(name: str, row: dict[str, Any]) -> dict[str, Metric]:
    """One row for each combination of the row's word lists; a row without any is itself."""
    lists = {key: words for key, words in row.items() if isinstance(words, dict)}
    rows = {}
    for choice in itertools.product(*(words.items() for words in lists.values())):
        values: dict[str, str] = {}
        for key, (word, text) in zip(lists, choice, strict=True):
            values |= {key: word, f"{key}_text": text}
        texts = (str(row[field]).format(**values) for field in ("label", "unit", "meaning", "section"))
        rows[name.format(**values)] = Metric(*texts)
    return rows


def _read() -> dict[str, Metric]:
    table = tomllib.loads(Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8"))
    return {metric: row for name, fields in table.items() for metric, row in _expanded(name, fields).items()}


METRICS: dict[str, Metric] = _read()
