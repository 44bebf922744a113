"""Every known deviation that a record can show is still there: closing one must be noticed, and written down."""

from __future__ import annotations

import re

import pytest
from gemmsim_validate.compare.deviations import PATH, Deviation, known_deviations
from gemmsim_validate.records.case import Case, load_cases
from gemmsim_validate.records.files import FOLDER
from gemmsim_validate.records.replay import launch_of

from gemmsim.api import count

DEVIATIONS = known_deviations()
SMALL = [one for one in DEVIATIONS if one.record.startswith("h200/")]


def case_of(deviation: Deviation) -> Case:
    folder, name = deviation.record.split("/", 1)
    (case,) = (case for case in load_cases(FOLDER / folder) if case.id == name)
    return case


@pytest.mark.parametrize("deviation", SMALL, ids=lambda deviation: f"{deviation.number}-{deviation.counter}")
def test_the_deviation_is_still_there(deviation: Deviation) -> None:
    case = case_of(deviation)
    error = deviation.error(case, count(launch_of(case)).traffic.counters)
    assert deviation.is_there(error), (
        f"deviation {deviation.number} is now {error:+.1f}, {deviation.least} to {deviation.most} on record"
    )


def test_every_deviation_has_its_paragraph_and_its_record() -> None:
    """Numbers are those of deviations.md; published records are replayed by `validate compare`."""
    numbers = {int(n) for n in re.findall(r"^(\d+)\. ", PATH.with_suffix(".md").read_text(), re.MULTILINE)}
    assert {one.number for one in DEVIATIONS} <= numbers
    assert all(one.least < one.most and one.counter in case_of(one).counters for one in DEVIATIONS)


def test_paragraphs_are_numbered_once() -> None:
    numbers = re.findall(r"^(\d+)\. ", PATH.with_suffix(".md").read_text(), re.MULTILINE)
    assert sorted(map(int, numbers)) == list(range(1, len(numbers) + 1))
