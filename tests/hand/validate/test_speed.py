"""gemmsim-validate speed: processes measured, whatever fails shown as such; benchmarks stay out of the default run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from gemmsim_validate.cli.main import main
from gemmsim_validate.speed.document import document
from gemmsim_validate.speed.processes import Cell, Profile, Run, measured, quickest
from gemmsim_validate.speed.steps import CALLS, Steps

from gemmsim import api

ROOT = Path(__file__).resolve().parents[3]


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_the_steps_that_are_timed_exist() -> None:
    assert all(callable(getattr(api, name)) for name in CALLS)


def test_an_unknown_kernel_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speed", "--kernel", "x"]) == 2
    assert "unknown kernel 'x'" in capsys.readouterr().err


def test_memory_and_time_of_a_process() -> None:
    busy = "import time; kept = bytes(b'x' * 150_000_000)\nwhile time.process_time() < 0.3: pass"
    run = measured(python(busy), 60)
    assert run.failed == "" and run.wall_s >= run.cpu_s * 0.9 and run.cpu_s >= 0.3
    # From a small process, as the peak is at least that of the one which starts the other.
    measure = f"from gemmsim_validate.speed.processes import measured; print(measured({python(busy)!r}, 60).peak_mb)"
    printed = subprocess.run(
        [sys.executable, "-c", measure], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert 150 < float(printed) < 400  # the bytes, and a bare Python


def test_a_process_that_fails_says_why() -> None:
    refused = measured(python("import sys; print('error: too large', file=sys.stderr); sys.exit(2)"), 60)
    assert refused.failed == "too large"
    assert measured(python("raise SystemExit(3)"), 60).failed == "exit status 3"


def test_a_process_over_the_limit_is_ended() -> None:
    run = measured(python("import time; time.sleep(60)"), 0.5)
    assert run.failed == "over 0.5 s" and 0.5 <= run.wall_s < 10


def test_a_failure_is_not_repeated(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'runs')!r}, 'a').write('x'); raise SystemExit(2)"
    assert quickest(python(code), 3, 60).failed
    assert (tmp_path / "runs").read_text() == "x"


def test_document_shows_every_cell() -> None:
    cells = [
        Cell("naive", 4096, Run(6.5, 7.25, 900.4)),
        Cell("naive", 8192, Run(120.0, 119.0, 2000.0, "over 120 s")),
        Cell("tiled", 4096, Run(1.0, 1.5, 300.0)),
        Cell("tiled", 8192, Run(0.5, 0.25, 80.0, "matrix A: 9.0 GiB")),
    ]
    text = document(cells, [Profile("tiled", 256, "h200", (("a", 0.25), ("b", 0.75)))], "h200", 1, "made by", 1.25)
    assert "| naive | 6.50 | over the limit |" in text and "| tiled | 1.00 | refused |" in text
    assert "| naive | 7.25 | over the limit |" in text and "| naive | 900 | over the limit |" in text
    assert "- naive at 8192: over 120 s\n- tiled at 8192: matrix A: 9.0 GiB" in text
    missed = "missed by naive at 4096 (6.5 s, 900 MB), naive at 8192 (over 120 s), tiled at 8192 (matrix A: 9.0 GiB)."
    assert missed in text
    assert "| b | 0.750 | 75 % |\n| all | 1.000 |  |" in text
    assert str(ROOT) not in text and sys.prefix not in text


def test_steps_count_what_they_call_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1.0, 3.0, 7.0, 15.0])
    monkeypatch.setattr("gemmsim_validate.speed.steps.time.process_time", lambda: next(clock))
    steps = Steps()
    inner = steps.timed("inner", "outer", lambda: None)
    steps.done("start")
    inner()
    steps.done("outer")
    assert steps.seconds == {"start": 1.0, "outer": 2.0 + 8.0, "inner": 4.0}


def test_benchmarks_run_only_when_asked_for() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "tests/bench"]
    default = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    asked = subprocess.run([*command, "-m", "bench"], cwd=ROOT, capture_output=True, text=True)
    assert "::test_" not in default.stdout and "::test_executor[tiled]" in asked.stdout, default.stdout
