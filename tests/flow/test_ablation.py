"""Effects of mechanisms: means by hand, errors, the command and its page."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from gemmsim_validate.ablate.document import DEFINITIONS, TITLE, as_data, sections
from gemmsim_validate.ablate.effects import ablation
from gemmsim_validate.ablate.mechanisms import BY_KEY, MECHANISMS, chosen
from gemmsim_validate.ablate.run import SIZES, Timed, ablate, ablate_all, fits
from gemmsim_validate.cli.main import main
from gemmsim_validate.compare.document import Section
from gemmsim_validate.documents import render
from gemmsim_validate.records.case import STUDY, Case, Series
from gemmsim_validate.records.select import replayable_cases

from gemmsim.support.errors import GemmsimError

BLOCKTILE, COALESCED = "blocktile_1d-f32-256x256x256", "coalesced-f32-256x256x256"
PAGE = Path(__file__).parents[2] / "docs" / "ablation.md"


@cache
def case(name: str) -> Case:
    return next(one for one in replayable_cases() if one.gpu == "h200" and one.id == name)


def fake(name: str, measured_us: float) -> Case:
    times = {"rotated": Series(measured_us)}
    ones = (1, 1, 1)
    return Case(
        name,
        "measured",
        "h200",
        name,
        "h200",
        True,
        {},
        1024,
        1024,
        1024,
        "f32",
        "f32",
        ones,
        ones,
        times,
        {},
        None,
        {},
    )


def test_effects_by_hand() -> None:
    """Measured 100 and 200. As it is: 110 and 190, errors +10 and -5 %, mean 7.5. Without a: 100 and 190, mean 2.5;
    without b: 110 and 240, mean 15."""
    cases = [fake("x", 100.0), fake("y", 200.0)]
    timed = {
        "x": Timed("", 110.0, {"dram": 100.0, "tag-stage": 110.0}),
        "y": Timed("", 190.0, {"dram": 190.0, "tag-stage": 240.0}),
    }
    found = ablation(cases, timed, chosen(("dram", "tag-stage")))
    assert found is not None and found.failed == ()
    assert found.figures.mean == pytest.approx(7.5) and found.figures.bias == pytest.approx(2.5)
    worse, better = found.effects
    assert (worse.mechanism.key, better.mechanism.key) == ("tag-stage", "dram")
    assert (worse.figures.mean, worse.change) == (pytest.approx(15.0), pytest.approx(7.5))
    assert (better.figures.mean, better.change) == (pytest.approx(2.5), pytest.approx(-5.0))
    assert worse.changed == better.changed == 1
    assert worse.kernels == (("y", pytest.approx(100 * 50 / 190)), ("x", 0.0))
    rows = {row[0]: row for section in sections(found) if section.table for row in section.table.rows}
    table = next(section.table for section in sections(found) if section.title == "Errors")
    assert table.rows[0][:5] == ("nothing", "7.5", "10.0", "10.0", "+2.5")
    assert table.rows[1] == ("tag-stage", "15.0", "20.0", "20.0", "+15.0", "+7.5", "1", "y +26 %")
    assert rows["dram"][2] == BY_KEY["dram"].without


def test_a_case_that_fails_is_named_and_the_others_count() -> None:
    cases = [fake("x", 100.0), fake("y", 200.0)]
    timed = {"x": Timed("", 110.0, {"dram": 100.0}), "y": Timed("no such opcode")}
    found = ablation(cases, timed, chosen(("dram",)))
    assert found is not None and [row.case.id for row in found.cases] == ["x"]
    assert "no such opcode" in render.text(sections(found))
    assert as_data(found)["failed"] == [{"id": "y", "error": "no such opcode"}]
    assert ablation(cases[1:], timed, chosen(())) is None


def test_errors_come_back_as_text() -> None:
    broken = replace(case(BLOCKTILE), cubin=Path("no such file"))
    assert "cubin" in ablate(broken, ()).error
    heard = []
    assert ablate_all([broken], (), 1, lambda one, timed: heard.append(one.id))[BLOCKTILE].error
    assert heard == [BLOCKTILE]


def test_default_records() -> None:
    cases = [one for one in replayable_cases() if fits(one)]
    assert {one.gpu for one in cases} == {"h200"} and all(one.rung and one.times for one in cases)
    assert {one.n for one in cases} == set(SIZES)
    assert {one.half for one in cases} == {STUDY}
    rungs = {one.name for one in replayable_cases() if one.gpu == "h200" and one.rung}
    assert rungs - {one.name for one in cases} == {"hgemm_warptiled", "rectangular"}  # at these sizes all to judge by


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["ablate", "--kernel", "coalesced", "--size", "256", "--without", "launch-overhead", "--jobs", "1"]
    assert main([*asked, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    (row,) = found["without"]
    (one,) = found["cases"]
    timed = ablate(case(COALESCED), ["launch-overhead"])
    assert (row["mechanism"], one["id"], one["predicted_us"]) == ("launch-overhead", COALESCED, timed.time_us)
    assert row["kernels_pct"]["coalesced"] == pytest.approx(
        100 * (timed.without_us["launch-overhead"] / timed.time_us - 1)
    )
    assert row["change_points"] == pytest.approx(row["time_pct"]["mean"] - found["time_pct"]["mean"])
    assert err.startswith(f"[1/1] {COALESCED}: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--without", "tag-stages"], "unknown mechanism 'tag-stages' (did you mean 'tag-stage'?)"),
        (["--kernel", "nothing"], "no measured record of a rung"),
        (["--size", "17"], "no measured record of a rung"),
    ],
)
def test_errors_are_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and message in err and err.count("\n") == 1


def test_unknown_mechanism() -> None:
    with pytest.raises(GemmsimError, match="known are stall-counts"):
        chosen(("x",))


def test_the_generated_page_has_todays_mechanisms() -> None:
    """Its numbers change with every model and with the records; what is switched off must be what the code does."""
    page = PAGE.read_text(encoding="utf-8")
    fresh = render.markdown(
        (Section("What is switched off", DEFINITIONS),), "gemmsim-validate ablate --size 1024 --format md", TITLE
    )
    assert page.startswith(fresh.rstrip("\n"))
    for one in MECHANISMS:
        assert f"| {one.key} | {one.models} | {one.without} |" in page
