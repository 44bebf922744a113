"""Counts with their nouns."""

from __future__ import annotations

import pytest

from gemmsim.support.plurals import plural, verb


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "block", "1 block"),
        (0, "block", "0 blocks"),
        (1024, "warp instruction", "1,024 warp instructions"),
        (2, "launch", "2 launches"),
        (1, "access", "1 access"),
        (3, "access", "3 accesses"),
        (1.0, "wavefront", "1 wavefront"),
    ],
)
def test_a_count(count: float, noun: str, text: str) -> None:
    assert plural(count, noun) == text


def test_a_count_that_is_written_already() -> None:
    assert plural(1.5, "sector", "1.5") == "1.5 sectors"
    assert [verb(count, "is", "are") for count in (0, 1, 2)] == ["are", "is", "are"]
