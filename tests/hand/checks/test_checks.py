"""Expectations, quantities, baselines and SARIF over a Report made by hand and one of the ladder."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gemmsim.api import analyze
from gemmsim.checks import baseline, github, junit, sarif
from gemmsim.checks.expectation import Expectation, evaluate, parse
from gemmsim.checks.outcome import Change, Checked, Outcome
from gemmsim.checks.quantities import read
from gemmsim.checks.render import render_json, render_markdown, render_text
from gemmsim.checks.selection import everything, select
from gemmsim.compile.beginning import beginning
from gemmsim.compile.source import kernel_file
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import SourceLine
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError


@cache
def report(kernel: str = "tiled_transposed") -> Report:
    """64 x 64 x 64: 4 blocks of 1024 threads, 2 tiles each."""
    return analyze(ladder_launch(LadderCase(kernel, 64, 64, 64), load_gpu("a100-80gb")))


def checked(*outcomes: Outcome) -> Checked:
    return Checked("tiled, M=64 on a100-80gb", SourceLine("kernels/my.cu", 7), outcomes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bank_conflicts==0", Expectation("bank_conflicts", None, "==", 0)),
        (" sectors_per_request at 31 <= 4.5 ", Expectation("sectors_per_request", "31", "<=", 4.5)),
        ("wavefronts at 'tile_b[tx, k]' < 1e3", Expectation("wavefronts", "tile_b[tx, k]", "<", 1000)),
        ("wavefronts at a == b == 2", Expectation("wavefronts", "a == b", "==", 2)),
        ("occupancy >= 50%", Expectation("occupancy", None, ">=", 50)),
        ("lts__t_sectors.sum != 1_000", Expectation("lts__t_sectors.sum", None, "!=", 1000)),
    ],
)
def test_expectations_are_parsed(text: str, expected: Expectation) -> None:
    assert parse(text) == expected


def test_dram_bytes_are_those_read_and_those_written() -> None:
    one = report()
    moved = {"dram__bytes_read.sum": 96.0, "dram__bytes_write.sum": 64.0}
    changed = replace(one, evidence=replace(one.evidence, counters=one.evidence.counters | moved))
    assert read(everything(changed), "dram_bytes").value == 160


@pytest.mark.parametrize(
    "text", ["", "bank_conflicts", "bank_conflicts = 0", "x == y", "at 3 <= 4", "3 <= occupancy", "a => 1"]
)
def test_what_is_no_expectation_is_refused(text: str) -> None:
    with pytest.raises(GemmsimError, match="is not an expectation: expected NAME == NUMBER"):
        parse(text)


def test_lines_are_found_by_number_file_and_text() -> None:
    for where in (
        35,
        "35",
        "tiled_transposed.py:35",
        "kernels/tiled_transposed.py:35",
        "tile_b[tx,k]",
        "tile_b[ tx, k ]",
    ):
        assert {row.line.line for row in select(report(), where).rows if row.line} == {35}
    assert {row.line.line for row in select(report(), "float32(0)").rows if row.line} == {31, 32}


@pytest.mark.parametrize("where", [1, "other.py:35", "nowhere", "", ":"])
def test_lines_without_accesses_are_refused(where: int | str) -> None:
    with pytest.raises(GemmsimError, match=r"lines that have some are line 31 .*; line 41 `C\[row, col\] = acc`"):
        select(report(), where)


def test_quantities_of_lines() -> None:
    """By hand: 4 blocks x 32 warps x 2 tiles make 256 requests of each line that fills a tile, 4 sectors each; 8 pairs
    of LDS.128 a tile and warp: A's word is one for all lanes (2 wavefronts), B's rows lie 128 bytes apart (32). A store
    to a tile's column has all lanes in one bank: 32 wavefronts, 31 of them conflicts, and to its row one."""
    loads, products = select(report(), 31), select(report(), 35)
    assert read(loads, "sectors").value == 256 * 4
    assert read(loads, "sectors_per_request").value == 4
    assert read(products, "requests").value == 2 * 8 * 256
    assert read(products, "wavefronts").value == 8 * 256 * (2 + 32)
    assert read(products, "wavefronts_per_request").value == 32
    assert read(products, "bank_conflicts").value == 8 * 256 * 28  # 32 beyond the 4 of 128-bit accesses
    assert read(select(report(), 32), "bank_conflicts").value == 256 * 31
    assert read(select(report(), 31), "bank_conflicts").value == 0
    whole = read(everything(report()), "bank_conflicts")
    assert whole.value == 256 * (8 * 28 + 31)
    assert whole.row is not None and whole.row.line is not None and whole.row.line.line == 35
    worst = read(everything(report("uncoalesced_bt")), "sector_excess")
    assert worst.row is not None and "B[col, k]" in worst.row.text


def test_quantities_of_the_launch() -> None:
    whole = everything(report())
    assert read(whole, "registers").value == report().evidence.program.registers
    assert read(whole, "shared_bytes").value == 2 * 32 * 32 * 4
    assert read(whole, "occupancy").value == report().evidence.occupancy.theoretical_pct
    assert read(whole, "spill_sectors").value == 0
    assert read(whole, "smsp__inst_executed.sum").value == report().evidence.warp_instructions
    with pytest.raises(GemmsimError, match=r"unknown quantity 'bankconflicts' \(did you mean 'bank_conflicts'\?\)"):
        read(whole, "bankconflicts")
    with pytest.raises(GemmsimError, match="occupancy is of the whole launch, not of '35'"):
        read(select(report(), 35), "occupancy")
    with pytest.raises(GemmsimError, match="bank_conflicts: '41' makes no access to shared memory"):
        read(select(report(), 41), "bank_conflicts")


def test_a_failed_expectation_says_where_and_draws() -> None:
    outcome = evaluate(parse("bank_conflicts == 0"), report())
    assert not outcome.ok and outcome.line is not None and outcome.line.line == 35
    assert outcome.message == (
        "bank_conflicts == 0: it is 65,280, most of it at kernels/tiled_transposed.py:35 (LDS.128)"
    )
    assert outcome.details[1] == "    acc += tile_a[ty, k] * tile_b[tx, k]"
    assert outcome.details[4].startswith("wave  0 | 0 0 0 0..")
    fine = evaluate(parse("bank_conflicts at 32 <= 7936"), report())
    assert fine == Outcome("bank_conflicts", True, "bank_conflicts at 32 <= 7,936: it is 7,936")
    text = render_text(checked(outcome, fine))
    assert text.startswith("FAIL  bank_conflicts == 0: it is 65,280, most of it at\n      kernels/")
    assert text.endswith("\nok    bank_conflicts at 32 <= 7,936: it is 7,936\n1 of 2 hold\n")
    assert max(map(len, text.splitlines())) <= 80
    data = json.loads(render_json(checked(outcome, fine)))
    assert data["ok"] is False and [o["rule"] for o in data["outcomes"]] == ["bank_conflicts"] * 2
    assert data["outcomes"][0]["line"] == {"file": "kernels/tiled_transposed.py", "line": 35}


def test_a_baseline_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "tiled.json"
    assert baseline.load(path) is None
    kept = baseline.record(report())
    path.write_text(baseline.dump(kept))
    assert baseline.load(path) == kept
    assert all(outcome.ok for outcome in baseline.compare(report(), kept))
    assert set(kept.values) == set(baseline.DEFAULT)


def test_what_moves_too_far_fails_and_tolerances_of_people_are_kept() -> None:
    kept = baseline.record(
        report(), ["time_us", "bank_conflicts", "lts__t_sectors.sum", "launch__registers_per_thread"]
    )
    assert kept.tolerance == {
        "time_us": 0.05, "bank_conflicts": 0, "lts__t_sectors.sum": 0.05, "launch__registers_per_thread": 0
    }  # fmt: skip
    time = kept.values["time_us"]
    for factor, ok in ((1 / 1.04, True), (1 / 1.06, False), (1 / 0.96, True), (1 / 0.94, False)):
        moved = replace(kept, values={**kept.values, "time_us": time * factor})
        assert [o.ok for o in baseline.compare(report(), moved)] == [ok, True, True, True]
    wider = replace(kept, tolerance={**kept.tolerance, "time_us": 0.5})
    assert baseline.record(report(), former=wider).tolerance == wider.tolerance
    worse = replace(kept, values={**kept.values, "bank_conflicts": 64_000})
    (failed,) = [o for o in baseline.compare(report(), worse) if not o.ok]
    assert failed.message == "bank_conflicts == 64,000 (baseline): it is 65,280, +2.0%"
    assert failed.line is not None and failed.details
    older = replace(worse, made_with={**worse.made_with, "gemmsim": "0.0.1"})
    assert [o.message for o in baseline.compare(report(), older) if not o.ok] == [
        failed.message + " (made with gemmsim 0.0.1)"
    ]


def test_baselines_of_something_else_are_refused(tmp_path: Path) -> None:
    kept = baseline.record(report())
    with pytest.raises(
        GemmsimError, match="the baseline is of tiled_transposed on a100-80gb, not of tiled on a100-80gb"
    ):
        baseline.compare(report("tiled"), kept)
    path = tmp_path / "x.json"
    for text in ("{}", "[]", '{"gemmsim_baseline": 2}', baseline.dump(kept).replace("0.05", "-1"), "nonsense"):
        path.write_text(text)
        with pytest.raises(GemmsimError, match=r"is not a baseline of gemmsim|cannot read the baseline"):
            baseline.load(path)


def test_sarif_has_the_structure_of_the_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SARIF 2.1.0: 3.13 (log), 3.14 (run), 3.19 (component), 3.27 (result), 3.28 and 3.29 (locations)."""
    monkeypatch.chdir(tmp_path)
    here = SourceLine(str(tmp_path / "src" / "my kernel.cu"), 12)
    outcomes = [
        Outcome("race", False, "race at byte 4", ("more",), here, ((SourceLine("/far/away.cu", 3), "thread writes"),)),
        Outcome("bank_conflicts", False, "it is 3", (), SourceLine("kernels/a.py", 5)),
        Outcome("time_us", False, "it is 9"),
        Outcome("occupancy", True, "it is 100"),
    ]
    log = json.loads(sarif.render(checked(*outcomes)))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] == "gemmsim" and ids == sorted(ids)
    assert set(ids) == {f"gemmsim/{o.rule}" for o in outcomes}
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    race, conflicts, time = run["results"]  # what holds is no result
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert (result["kind"], result["level"]) == ("fail", "error") and result["message"]["text"]
    assert race["message"]["text"] == "race at byte 4\nmore"
    (location,) = race["locations"]
    # Plain names would not do: uri is a URI reference, in which a space is %20.
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "src/my%20kernel.cu", "uriBaseId": "%SRCROOT%"}
    assert location["physicalLocation"]["region"] == {"startLine": 12}
    (related,) = race["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "file:///far/away.cu"}
    assert related["message"] == {"text": "thread writes"}
    assert conflicts["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels/a.py"
    (place,) = time["locations"]  # of the whole launch: where the kernel begins, as hosts drop results without a place
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "kernels/my.cu"
    assert place["physicalLocation"]["region"] == {"startLine": 7}
    assert json.loads(sarif.render(checked()))["runs"][0]["results"] == []


MOVED = Outcome("baseline", False, "sectors == 4 (baseline): it is 5, +25.0%", (), None, (), Change("sectors", 4, 5, 0))
NEAR = Outcome("baseline", True, "time_us == 9 within 5%: it is 9.1", change=Change("time_us", 9.0, 9.1, 0.05))
SAME = Outcome("baseline", True, "registers == 32 (baseline): it is 32", change=Change("registers", 32, 32, 0))
WRONG = Outcome(
    "verified", False, "the result is wrong: a < b & 100%\x00", ("C[0,0]: 1", "  is, 2"), SourceLine("k.py", 3)
)


def test_what_moved_is_a_table() -> None:
    """4 -> 5 is +25 % and may not; 9 -> 9.1 is +1.1 % and may; what is as it was has no row."""
    text = render_text(checked(MOVED, NEAR, SAME))
    rows = [line.split() for line in text.partition("CHANGED AGAINST THE BASELINE\n")[2].splitlines()]
    assert rows[1:3] == [["sectors", "4", "5", "+25.0%", "0%", "FAIL"], ["time_us", "9", "9.1", "+1.1%", "5%"]]
    assert rows[3:] == [[], ["2", "of", "3", "hold"]]
    assert "CHANGED" not in render_text(checked(SAME))
    page = render_markdown(checked(MOVED, NEAR, SAME))
    assert "| `sectors` | 4 | 5 | +25.0% | 0% | :x: |\n| `time_us` | 9 | 9.1 | +1.1% | 5% |  |\n" in page
    assert "- :x: sectors == 4 (baseline): it is 5, +25.0% (`kernels/my.cu:7`)" in page
    assert "Everything is as in the baseline" in render_markdown(checked(SAME))


@pytest.mark.parametrize(("before", "now", "moved"), [(0, 3, "new"), (0, 0, "+0.0%"), (30_000, 29_999, "-0.003%")])
def test_how_far_a_value_moved(before: float, now: float, moved: str) -> None:
    assert Change("x", before, now, 0).moved == moved


def test_annotations_are_github_s_workflow_commands() -> None:
    """One line each: % and line breaks are escaped in the text, colons and commas in what stands before it, too."""
    first, *log = github.render(checked(WRONG, SAME)).splitlines()
    assert first == (
        "::error file=k.py,line=3,title=gemmsim%3A verified::"
        "the result is wrong: a < b & 100%25\x00%0AC[0,0]: 1%0A  is, 2"
    )
    assert log[-1] == "1 of 2 hold" and not any(line.startswith("::") for line in log)
    whole = github.render(checked(Outcome("time_us", False, "time_us < 3: it is 4"))).splitlines()[0]
    assert whole == "::error file=kernels/my.cu,line=7,title=gemmsim%3A time_us::time_us < 3: it is 4"
    away = Outcome("race", False, "race", (), SourceLine("/far/a,b.cu", 3))
    assert github.render(checked(away)).startswith("::error title=gemmsim%3A race at /far/a%2Cb.cu%3A3::race\n")


def test_junit_has_a_case_for_each_expectation() -> None:
    suites = ElementTree.fromstring(junit.render(checked(WRONG, MOVED, SAME)).encode())
    (suite,) = suites
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "3", "2")
    wrong, moved, same = suite
    assert [case.get("name") for case in suite] == ["verified", "sectors == 4 (baseline)", "registers == 32 (baseline)"]
    assert (wrong.get("classname"), wrong.get("file"), wrong.get("line")) == ("gemmsim.verified", "k.py", "3")
    assert moved.get("line") == "7" and len(same) == 0
    (failure,) = wrong
    assert failure.get("message") == "the result is wrong: a < b & 100%?"  # XML has no character 0
    assert failure.text == "k.py:3\nthe result is wrong: a < b & 100%?\nC[0,0]: 1\n  is, 2"


@pytest.mark.parametrize(
    ("name", "text", "entry", "line"),
    [
        ("a.cu", "int x;\n\ntemplate <int N>\n__global__ void f(int) {}\n__global__ void g() {}\n", "g", 5),
        ("a.cu", "int x;\n__global__ void f(int) {}\n", None, 2),
        ("a.cu", "int x;\n\ntemplate <int N>\n__global__ void f(int) {}\n", "ns::f<3>", 4),
        ("a.py", "import x\n\n\n@cuda.jit\ndef mine(a):\n    pass\n", "mine", 5),
        ("a.ptx", ".version 8.0\n.target sm_80\n.visible .entry f()\n{}\n", None, 3),
        ("a.cubin", "\x7fELF\n\n", "f", 1),
    ],
)
def test_where_a_kernel_begins(name: str, text: str, entry: str | None, line: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert beginning(kernel_file(path, entry)) == SourceLine(str(path), line)
