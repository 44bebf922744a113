"""Programs of a checkout are run as they are, and how each ended is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gemmsim_validate.wild.manifest import Repository
from gemmsim_validate.wild.program_times import Compared, Times, compared, load_measured
from gemmsim_validate.wild.programs import (
    ENDED,
    RAISED,
    REFUSED,
    STOPPED,
    PublicProgram,
    Run,
    load_runs,
    programs_section,
    read_programs,
    run,
    save_runs,
)

REPOSITORY = Repository("owner/name", "0" * 40, "MIT")
GRAPH = "from cuda.bindings import driver\nerror, _ = driver.cuGraphCreate(0)\nraise RuntimeError(str(error))\n"


@pytest.mark.parametrize(
    ("text", "limit_s", "outcome", "said"),
    [
        ("assert True", 60, ENDED, ""),
        ("assert 1 == 2, 'its own check'", 60, RAISED, "AssertionError: its own check"),
        (GRAPH, 60, REFUSED, "error: the program uses CUDA graphs (cuGraphCreate), which gemmsim does not simulate"),
        ("import time; time.sleep(100)", 3, STOPPED, ""),
    ],
)
def test_a_program_is_run_and_its_end_is_told(
    tmp_path: Path, text: str, limit_s: float, outcome: str, said: str
) -> None:
    (tmp_path / "owner+name").mkdir()
    (tmp_path / "owner+name" / "program.py").write_text(text)
    if text == GRAPH:
        pytest.importorskip("cuda.bindings")
    found = run(PublicProgram(REPOSITORY, "program.py"), tmp_path, "h200", limit_s)
    assert found == Run("owner/name/program.py", "h200", outcome, 0, 0, 0.0, said)


def test_what_ships_is_about_programs_of_the_manifest(tmp_path: Path) -> None:
    known = [one.id for one in read_programs()]
    runs = load_runs()
    assert [one.program for one in runs] == [one for one in known if one in {run.program for run in runs}]
    assert len(known) == len(set(known)) == 18
    section = programs_section(runs)
    ended = sum(one.outcome == ENDED for one in runs)
    assert f"{ended} of {len(runs)} run to their end" in section.text[0] and ended >= 10
    save_runs(runs, tmp_path / "runs.json")
    assert load_runs(tmp_path / "runs.json") == runs


def test_launches_of_both_are_compared_in_order(tmp_path: Path) -> None:
    predicted = [Times("scale", "4x1x1", "32x1x1", (1.0, 2.0, 4.0)), Times("scale", "8x1x1", "32x1x1", (100.0,))]
    file = tmp_path / "measured.json"
    rows = [
        ["_ZN5scaleE", [4, 1, 1], [32, 1, 1], 16, 0, [2.0]],
        ["other", [4, 1, 1], [32, 1, 1], 16, 0, [50.0]],
        ["_ZN5scaleE", [4, 1, 1], [32, 1, 1], 18, 0, [3.0]],
    ]
    head = {"gpu": "h200", "machine": "a machine", "date": "today", "triton": "3", "torch": "2", "numba_cuda": "0"}
    file.write_text(json.dumps(head | {"programs": {"owner/name/a.py": {"outcome": "ended", "launches": rows}}}))
    measured = load_measured(file)
    found = compared(predicted, measured.programs["owner/name/a.py"])
    assert found == Compared(2, (3.0, 5.0)) and found.error == pytest.approx(-40)
    assert compared(predicted[1:], measured.programs["owner/name/a.py"]) is None
    one = Run("owner/name/a.py", "h200", ENDED, 4, 1, 110.0, "", tuple(predicted))
    section = programs_section([one], measured)
    assert section.table is not None
    assert section.table.rows[0][4:9] == ("110.0", "2", "3.0", "5.0", "-40.0")
    assert "a machine, today, triton 3, torch 2, numba-cuda 0" in section.text[2]
    elsewhere = programs_section([replace(one, gpu="a100-80gb")], measured).table
    assert elsewhere is not None and elsewhere.rows[0][5:9] == ("-",) * 4
    save_runs([one], tmp_path / "runs.json")
    assert load_runs(tmp_path / "runs.json") == [one]
