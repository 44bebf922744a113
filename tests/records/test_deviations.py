"""Every known gap that a record can show is still there: closing one must be noticed, and written down."""

from __future__ import annotations

import re

import pytest
from gemmsim_validate.compare.gaps import PATH, Gap, known_gaps
from gemmsim_validate.records import FOLDER, Case, load_cases

from gemmsim.api import count

GAPS = known_gaps()
SMALL = [gap for gap in GAPS if gap.record.startswith("h200/")]


def case_of(gap: Gap) -> Case:
    folder, name = gap.record.split("/", 1)
    (case,) = (case for case in load_cases(FOLDER / folder) if case.id == name)
    return case


@pytest.mark.parametrize("gap", SMALL, ids=lambda gap: f"{gap.number}-{gap.counter}")
def test_the_gap_is_still_there(gap: Gap) -> None:
    case = case_of(gap)
    error = gap.error(case, count(case.request()).traffic.counters)
    assert gap.is_there(error), f"deviation {gap.number} is now {error:+.1f}, {gap.least} to {gap.most} on record"


def test_every_gap_has_its_paragraph_and_its_record() -> None:
    """Numbers are those of deviations.md; published records are replayed by `validate compare`."""
    numbers = {int(n) for n in re.findall(r"^(\d+)\. ", PATH.with_suffix(".md").read_text(), re.MULTILINE)}
    assert {gap.number for gap in GAPS} <= numbers
    assert all(gap.least < gap.most and gap.counter in case_of(gap).counters for gap in GAPS)


def test_paragraphs_are_numbered_once() -> None:
    numbers = re.findall(r"^(\d+)\. ", PATH.with_suffix(".md").read_text(), re.MULTILINE)
    assert sorted(map(int, numbers)) == list(range(1, len(numbers) + 1))
