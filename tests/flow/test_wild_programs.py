"""Programs of a checkout are run as they are, and how each ended is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmsim_validate.wild.manifest import Repository
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
