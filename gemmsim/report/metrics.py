"""Reads the label, unit and meaning of each counter from `metrics.toml`."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Metric:
    """What reports say of one counter.

    label    a short name for people
    unit     "" for a plain count
    meaning  what it counts, and which values are good
    section  its topic
    """

    label: str
    unit: str
    meaning: str
    section: str


def variants(name: str, row: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (name of a metric, words to put into its texts) for each combination of the row's word lists.

    A word list is a table of the row: {"op": {"ld": "loads", "st": "stores"}} replaces {op} in the name by "ld" or
    "st", and in the texts {op} likewise and {op_text} by "loads" or "stores". A row without lists gives one metric.
    """
    lists = {key: words for key, words in row.items() if isinstance(words, dict)}
    for choice in itertools.product(*(words.items() for words in lists.values())):
        words: dict[str, str] = {}
        for key, (word, text) in zip(lists, choice, strict=True):
            words |= {key: word, f"{key}_text": text}
        yield name.format(**words), words


def _metric(row: dict[str, Any], words: dict[str, str]) -> Metric:
    return Metric(*(str(row[field]).format(**words) for field in ("label", "unit", "meaning", "section")))


# Name of each family of metrics, with {places} for the words of its lists -> its row of `metrics.toml`.
FAMILIES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8")
)
METRICS: dict[str, Metric] = {
    metric: _metric(row, words) for family, row in FAMILIES.items() for metric, words in variants(family, row)
}
