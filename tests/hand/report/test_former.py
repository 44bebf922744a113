"""A report beside a former prediction: what moved, by hand, and how the former one is read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from report_factory import evidence, report

from gemmsim.report.former import TIME, Former, Move, in_short, moves
from gemmsim.report.json import former_of, read_former
from gemmsim.report.json import render as render_json
from gemmsim.report.text import render
from gemmsim.support.errors import GemmsimError
from gemmsim.support.version import MODEL_VERSION

BEFORE = Former("naive on a100-80gb", MODEL_VERSION, {TIME: 30_000.0, "a": 8.0, "same": 5.0, "gone": 3.0, "zero": 0.0})
NOW = {TIME: 20_000.0, "a": 1.0, "same": 5.0, "new": 2.0}


def test_what_moved_comes_farthest_first() -> None:
    """8 to 1 is farther than 30 to 20, what one of them lacks farther than all; 0 and nothing are the same."""
    found = moves(BEFORE, NOW, {})
    assert [(one.name, one.before, one.now) for one in found] == [
        ("new", None, 2.0),
        ("gone", 3.0, None),
        ("a", 8.0, 1.0),
        (TIME, 30_000.0, 20_000.0),
    ]
    assert found[2].size == pytest.approx(math.log(8))


def test_the_sentence_says_how_much_faster_and_whether_the_models_differ() -> None:
    said = "beside naive on a100-80gb: 30.00 us there, 20.00 us here, 1.50x as fast"
    assert in_short(BEFORE, NOW, MODEL_VERSION) == said
    assert in_short(replace(BEFORE, model_version=3), NOW, 9).endswith(
        "model 3, this of model 9, which moves numbers, too"
    )


def test_the_text_holds_both_and_a_report_beside_itself_has_not_moved(tmp_path: Path) -> None:
    """A tenth of the wavefronts."""
    before = report()
    fewer = {**before.evidence.counters, "l1tex__data_pipe_lsu_wavefronts.sum": 421.0}
    now = replace(before, evidence=replace(before.evidence, counters=fewer))
    path = tmp_path / "before.json"
    path.write_text(render_json(before))
    former = read_former(path)
    text = " ".join(render(replace(now, former=former)).split())
    assert "BESIDE THE BASELINE beside tiled, M=8" in text and " 4,210 421 -90.0% " in text
    assert "nothing moved" in render(replace(before, former=former))
    assert json.loads(render_json(replace(now, former=former)))["baseline"]["values"] == former.values
    assert "BESIDE" not in render(before)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}', '{"schema_version": 2, "kernel": 3}'])
def test_another_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(GemmsimError, match=r"'x\.json' is not what gemmsim analyze --format json writes"):
        former_of(text, "x.json")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(GemmsimError, match=r"cannot read 'nowhere\.json': No such file"):
        read_former("nowhere.json")


def test_numbers_that_are_not_known_are_left_out() -> None:
    found = json.loads(render_json(report(evidence())))
    found["counters"]["l1tex__data_pipe_lsu_wavefronts.sum"] = None
    assert "l1tex__data_pipe_lsu_wavefronts.sum" not in former_of(json.dumps(found), "x").values


def test_brackets_nested_too_deep_are_no_report() -> None:
    with pytest.raises(GemmsimError, match=r"'a\.json' is not what gemmsim analyze --format json writes"):
        former_of("[" * 100_000, "a.json")


@pytest.mark.parametrize(("before", "now"), [(-8.0, 1.0), (1.0, -1.0), (1e-300, 1e300), (math.nan, 1.0), (None, 1.0)])
def test_what_has_no_ratio_is_farthest(before: float | None, now: float) -> None:
    assert Move("a", before, now).size == math.inf
