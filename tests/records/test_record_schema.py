"""Every record in the repository has the form that the schema states, its cubin, and a launch that can be replayed."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gemmsim_validate.records.case import load_cases, load_file
from gemmsim_validate.records.files import FOLDER, SCHEMA, read_cubin, read_records, write_records

from gemmsim.support.errors import GemmsimError

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
FILES = sorted(FOLDER.glob("*/*.json"))


def wrong(record: dict[str, Any]) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors({"schema_version": 2, "records": [record]})]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_follow_the_schema(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_text()))


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda folder: folder.name)
def test_ids_are_unique_and_no_cubin_lies_there_unused(folder: Path) -> None:
    cases = load_cases(folder)
    assert {case.cubin for case in cases if case.cubin} == set(folder.glob("cubins/*"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cubins_are_those_that_were_measured(path: Path) -> None:
    for case in load_file(path):
        if case.cubin:
            assert hashlib.sha256(read_cubin(case.cubin)).hexdigest() == case.data["subject"]["cubin_sha256"]


def test_wrong_records_are_found() -> None:
    good = read_records(FOLDER / "h200" / "tiled.json")[0]
    assert wrong(good) == []
    for path, value in (
        (("kind",), "guessed"),
        (("kind",), "published"),  # without a source
        (("time", "back_to_back", "median_us"), 0),
        (("time", "sometimes"), {"median_us": 1}),
        (("counters", "launch__grid_size"), "many"),
        (("launch", "grid"), [1, 1]),
        (("subject", "cubin_sha256"), "abc"),
        (("problem", "dtype"), "f8"),
    ):
        bad = copy.deepcopy(good)
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        assert wrong(bad), path
    del good["launch"]
    assert wrong(good)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    records = read_records(FOLDER / "h200" / "tiled.json")
    write_records(tmp_path / "x.json", records)
    assert read_records(tmp_path / "x.json") == records
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read"),
        ('{"schema_version": 1, "cases": []}', "schema version 1"),
        ('{"schema_version": 2}', "no list of records"),
        ('{"schema_version": 2, "records": [{"id": "x"}]}', "'subject'"),
        ("[]", "schema version None"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(GemmsimError, match=message) as caught:
        load_file(tmp_path / "x.json")
    assert "\n" not in str(caught.value)
