"""Errors, figures and orders of `validate compare`, by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gemmsim_validate.compare import accuracy, halves
from gemmsim_validate.compare import judge as judging
from gemmsim_validate.compare import predict as predicting
from gemmsim_validate.compare.as_json import as_data
from gemmsim_validate.compare.cause import guess
from gemmsim_validate.compare.deviations import Deviation
from gemmsim_validate.compare.document import DEFINITIONS, Section, sections
from gemmsim_validate.compare.figures import figures, orders
from gemmsim_validate.compare.judge import Judged, judge, judge_all
from gemmsim_validate.compare.metrics import relative_error
from gemmsim_validate.compare.predict import Prediction, predict, predict_all
from gemmsim_validate.compare.tiles import choices
from gemmsim_validate.documents import render
from gemmsim_validate.records.case import JUDGE, STUDY, Case, Series
from gemmsim_validate.records.select import replayable_cases

from gemmsim.support.errors import GemmsimError

INSTRUCTIONS, L1_HITS, DRAM = "smsp__inst_executed.sum", "l1tex__t_sector_hit_rate.pct", "dram__sectors_read.sum"


def case(name: str = "k", n: int = 512, counters: dict[str, float] | None = None, **times: float) -> Case:
    series = {how: Series(value) for how, value in times.items()}
    data = {"subject": {}, "launch": {}, "problem": {}}
    one = (1, 1, 1)
    return Case(
        f"{name}-{n}",
        "measured",
        "h200",
        name,
        "h200",
        True,
        {},
        n,
        n,
        n,
        "f32",
        "f32",
        one,
        one,
        series,
        counters or {},
        None,
        data,
    )


def judged(given: Case, time_us: float, **counters: float) -> Judged:
    return judge(given, Prediction(time_us=time_us, counters=counters, bottleneck="l1_data"))


def test_which_times_found_warm_caches() -> None:
    """Back to back always, a published time where its source says so; rotated operands never."""
    timed = case(rotated=1.0, back_to_back=1.0, published=1.0)
    assert timed.compared_time == "rotated"
    assert [timed.warm(how) for how in ("rotated", "published", "back_to_back", "")] == [False, False, True, False]
    in_a_row = replace(timed, times={"published": Series(1.0, in_a_row=True)})
    assert in_a_row.compared_time == "published" and in_a_row.warm("published")


def test_a_case_with_counters_and_times_in_a_row_is_predicted_twice() -> None:
    """plain_tiled16 at 256: its times were taken back to back, its counters by a profiler that empties the caches."""
    (both,) = [one for one in replayable_cases() if one.id == "plain_tiled16-f32-256x256x256"]
    assert both.compared_time == "back_to_back" and both.counters
    cold, warm = predict(replace(both, times={})), predict(replace(both, counters={}))
    found = predict(both)
    assert found.counters == cold.counters and warm.counters[DRAM] == 0 < cold.counters[DRAM]
    assert found.time_us == warm.time_us < cold.time_us


def test_relative_error() -> None:
    assert relative_error(110, 100) == pytest.approx(0.1)
    assert relative_error(0, 0) == 0
    assert relative_error(1, 0) == float("inf")


def test_figures_of_ten_errors() -> None:
    """Absolute errors 1 to 10: mean 5.5; nine of the ten are at most 9; signs alternate, so the bias is 0.5."""
    found = figures([(str(i), float(i if i % 2 == 0 else -i)) for i in range(1, 11)])
    assert (found.cases, found.mean, found.p90, found.worst, found.bias) == (10, 5.5, 9.0, 10.0, 0.5)
    assert found.worst_case == "10"


def test_the_cold_time_is_held_against_first() -> None:
    row = judged(case(back_to_back=10.0, rotated=20.0), 22.0)
    assert row.time_way == "rotated" and row.time is not None and row.time.error == pytest.approx(0.1)
    assert judged(case(back_to_back=10.0), 22.0).time_way == "back_to_back"


def test_order_of_four_kernels() -> None:
    """Measured 1 2 3 4, predicted 1 3 2 4: five of six pairs agree, one does not: tau = 4 / 6."""
    rows = [judged(case(name, rotated=m), p) for name, m, p in (("a", 1, 1), ("b", 2, 3), ("c", 3, 2), ("d", 4, 4))]
    (order,) = orders(rows)
    assert order.kernels == 4 and order.tau == pytest.approx(4 / 6) and order.swapped == ("b / c",)
    assert orders(rows[:2]) == []


def test_exact_counters_are_gates_unless_excused() -> None:
    given = case(counters={INSTRUCTIONS: 1000.0}, rotated=1.0)
    assert judged(given, 1.0, **{INSTRUCTIONS: 1004.0}).broken == ()
    (broken,) = judged(given, 1.0, **{INSTRUCTIONS: 1006.0}).broken
    assert broken.error_pct == pytest.approx(0.6)
    excused = replace(given, data={**given.data, "not_comparable": {INSTRUCTIONS: "another compiler"}})
    assert judged(excused, 1.0, **{INSTRUCTIONS: 1006.0}).broken == ()


def test_hit_rates_in_points_and_background_traffic_left_out() -> None:
    row = judged(case(counters={L1_HITS: 50.0, DRAM: 100.0}), 1.0, **{L1_HITS: 47.0, DRAM: 900.0})
    assert [(n.name, n.error_pct) for n in row.numbers] == [(L1_HITS, -3.0)]


def test_guesses() -> None:
    other = judged(case(counters={INSTRUCTIONS: 1000.0}, rotated=1.0), 2.0, **{INSTRUCTIONS: 1200.0})
    assert guess(other).startswith("other machine code")
    assert (
        guess(judged(case(counters={DRAM: 1e6}, rotated=1.0), 1.5, **{DRAM: 1.6e6}))
        == "traffic: DRAM reads off by +60.0 %"
    )
    assert guess(judged(case(rotated=1.0), 1.5)) == "predicted bottleneck: l1_data"


def test_what_got_worse(tmp_path: Path) -> None:
    def of(n: int, time_us: float) -> Judged:
        return judged(case(n=n, rotated=100.0), time_us)

    row, path = of(768, 110.0), tmp_path / "accuracy.json"  # +10 %
    to_judge_by = of(512, 130.0)
    accuracy.write([row, to_judge_by], path)
    committed = accuracy.read(path)
    assert (row.case.half, to_judge_by.case.half) == (STUDY, JUDGE)
    assert committed == {"h200/k-768": {"time": 10.0}}
    assert accuracy.worse([row, to_judge_by], committed) == []
    assert accuracy.worse([of(768, 108.0)], committed) == []  # better
    assert accuracy.worse([of(768, 110.5)], committed) == []  # 10.5 <= 10 * 1.05 + 0.3
    assert len(accuracy.worse([of(768, 111.0)], committed)) == 1
    assert len(accuracy.worse([of(768, 119.0)], committed)) == 2  # the case by itself, too
    path.write_text("[]")
    with pytest.raises(GemmsimError, match="cannot read the figures"):
        accuracy.read(path)


def test_every_format_shows_a_case_and_a_failure() -> None:
    bad = judge(case("broken"), Prediction(error="no such <opcode>"))
    good = case(n=1024, counters={INSTRUCTIONS: 1000.0}, rotated=100.0)
    rows = [judged(good, 110.0, **{INSTRUCTIONS: 1100.0}), bad]
    found = sections(rows)
    for text in (render.text(found), render.markdown(found, "command"), render.page(found, {})):
        assert "k-1024" in text and "+10.0" in text and "no such" in text
    assert "<opcode>" not in render.page(found, {})


def test_the_generated_page_has_todays_definitions() -> None:
    """Its numbers change with every model and with the records; what they mean must be what the code does."""
    page = (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    fresh = render.markdown((Section("What is compared", DEFINITIONS),), "gemmsim-validate compare --judge --format md")
    assert page.startswith(fresh.rstrip("\n"))


def test_one_launch_on_two_gpus_is_predicted_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of the same launch have the same id. Both times are right here, so that neither has an error."""
    here, there = case(rotated=10.0), replace(case(rotated=20.0), gpu="h100", folder="h100")
    times = {"h200": 10.0, "h100": 20.0}
    monkeypatch.setattr(
        predicting, "_predict_group", lambda group: [Prediction(time_us=times[one.gpu]) for one in group]
    )
    monkeypatch.setattr(predicting, "map_unordered", lambda function, groups, jobs: ((g, function(g)) for g in groups))
    found = judge_all([here, there], predict_all([here, there], None, 1))
    assert [row.time.error_pct for row in found if row.time] == [0.0, 0.0]


def test_a_known_deviation_is_of_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Deviation(2, "h200/k-512", INSTRUCTIONS, -1.0, 1.0)
    monkeypatch.setattr(judging, "known_deviations", lambda: (known,))
    given = case(counters={INSTRUCTIONS: 100.0}, rotated=1.0)
    assert judged(given, 1.0, **{INSTRUCTIONS: 50.0}).broken == ()
    for other in (replace(given, folder="h100"), replace(given, id="k-1024")):
        assert len(judged(other, 1.0, **{INSTRUCTIONS: 50.0}).broken) == 1


def test_all_forms_of_a_kernel_at_one_size_are_in_one_half() -> None:
    """By sha256sum, the digest of "k 512x512x512" begins with fb, which is odd; of "k 1024x1024x1024" with 9e."""
    assert (case(n=512).half, case(n=1024).half) == (JUDGE, STUDY)
    given = case()
    others = (
        replace(given, gpu="h100", folder="h100"),
        replace(given, tunables={"tile": 8}),
        replace(given, dtype="f16"),
    )
    assert {one.half for one in others} == {given.half}
    assert 450 < sum(case(f"k{i}").half == JUDGE for i in range(1000)) < 550


def test_of_cases_to_judge_by_only_means_are_shown() -> None:
    names = [f"k{i}" for i in range(40)]
    rows = [judged(case(name, rotated=10.0), 11.0 if case(name).half == JUDGE else 12.0) for name in names]
    unseen = {row.case.id for row in rows if row.case.half == JUDGE}
    for text in (render.text(sections(rows)), json.dumps(as_data(rows))):
        assert not [name for name in unseen if f"{name} " in text or f'{name}"' in text]
    (time, _) = halves.halves(rows)
    assert time.table is not None
    assert time.table.rows[0] == (
        *("measured", "all"),
        *(str(40 - len(unseen)), "20.0", "20.0", "20.0", "+20.0"),
        *(str(len(unseen)), "10.0", "10.0", "10.0", "+10.0"),
    )


def test_each_look_is_logged(tmp_path: Path) -> None:
    rows = [judged(case(f"k{i}", rotated=10.0), 11.0) for i in range(40)]
    with pytest.raises(GemmsimError, match="which is not here"):
        halves.log(rows, "all", tmp_path / "judgements.md")
    path = tmp_path / "judgements.md"
    path.write_text("| date |\n", encoding="utf-8")
    halves.log(rows, "gpu h200", path)
    (_, line) = path.read_text(encoding="utf-8").splitlines()
    count = sum(row.case.half == STUDY for row in rows)
    assert f"| gpu h200 | {count}: 10.0, 10.0, 10.0 | {40 - count}: 10.0, 10.0, 10.0 | - | - |" in line


def test_kinds_of_kernels() -> None:
    names = ("tiled", "tensorcore_naive", "wgmma_tma")
    assert [halves.family(judged(case(name), 1.0)) for name in names] == [
        *("rungs on CUDA cores", "mma rungs", "wgmma rungs"),
    ]
    assert halves.family(judged(replace(case("wgmma"), folder="h200_tiles"), 1.0)) == "tiles of wgmma rungs"
    tiles = judged(replace(case("blocktile_2d"), folder="h200_tiles"), 1.0)
    assert halves.family(tiles) == "tiles of rungs on CUDA cores"
    assert halves.family(judged(replace(case("x"), folder="h200_foreign"), 1.0)) == "of others"


def test_where_only_one_configuration_was_compared_there_is_no_choice() -> None:
    tile = replace(case("blocktile_2d", rotated=1.0), folder="h200_tiles")
    assert choices([judged(tile, 1.0)]) is None
    both = choices([judged(tile, 1.0), judged(tile, 1.1)])
    assert both is not None and both.table is not None and [row[1] for row in both.table.rows] == ["2"]
