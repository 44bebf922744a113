"""The JSON report against the schema that ships with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_factory import evidence, report

import gemmsim.report
from gemmsim.report.json import render
from gemmsim.report.report import SCHEMA_VERSION

SCHEMA = json.loads((Path(gemmsim.report.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))


def rendered() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(render(report()))
    return data


def test_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_report_fits_the_schema() -> None:
    jsonschema.validate(rendered(), SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_every_key_is_needed(key: str) -> None:
    data = rendered()
    del data[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_counters_are_plain_numbers_with_a_provenance_each() -> None:
    data = rendered()
    assert data["counters"]["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 100
    assert data["provenance"].keys() == data["counters"].keys()
    assert set(data["provenance"].values()) == {"exact"}


def test_unknown_and_infinite_numbers_are_null() -> None:
    given = evidence()
    level = replace(given.roofline.levels[0], intensity_flops_per_byte=float("inf"))
    given = replace(
        given,
        counters={"dram__sectors_read.sum": float("nan")},
        roofline=replace(given.roofline, levels=(level, *given.roofline.levels[1:])),
    )
    data = json.loads(render(report(given)))
    jsonschema.validate(data, SCHEMA)
    assert data["counters"]["dram__sectors_read.sum"] is None
    assert data["roofline"]["levels"][0]["intensity_flops_per_byte"] is None


def test_instructions_and_lines_add_up() -> None:
    """100 + 100 + 400 + 400 + 50 + 10 executions; four memory instructions on three lines."""
    data = rendered()
    assert data["instructions"]["executed"] == 1060
    assert sum(data["instructions"]["by_kind"].values()) == 1060
    lines = [(row["line"], row["mnemonic"]) for row in data["lines"]]
    assert lines == [(2, "LDG"), (3, "LDS.128"), (3, "LDS"), (4, "STG")]
