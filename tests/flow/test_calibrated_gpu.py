"""A GPU with numbers that were fitted to times of launches: reports say so."""

from __future__ import annotations

from pathlib import Path

from gemmsim.api import analyze
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.text import render
from gemmsim.support.provenance import Provenance

FITTED = """
title = "fitted"
extends = "h200"
[launch]
overhead = { value = 1.5, unit = "us", source = "us", status = "calibrated", records = ["a", "b"], calibratable = true }
"""
TIMED = {
    "sm__cycles_active.max",
    "gpu__time_duration.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
}


def test_what_is_timed_is_calibrated_and_what_is_counted_is_as_before(tmp_path: Path) -> None:
    file = tmp_path / "fitted.toml"
    file.write_text(FITTED)
    case = LadderCase("tiled", 32, 32, 32)
    fitted, plain = (analyze(ladder_launch(case, load_gpu(name)), accesses=False) for name in (str(file), "h200"))
    known, before = fitted.evidence.provenance, plain.evidence.provenance
    assert {name for name in known if known[name] == Provenance.CALIBRATED} == TIMED
    assert {name: before[name] for name in before if name not in TIMED} == {
        n: known[n] for n in known if n not in TIMED
    }
    assert Provenance.CALIBRATED not in before.values()  # its write ports were fitted, but to loops of one instruction
    note = "times are calibrated: launch.overhead_us of this GPU were fitted to 2 records"
    assert note in fitted.notes and note not in plain.notes
    assert " c gpu__time_duration.sum" in render(fitted) and " m gpu__time_duration.sum" in render(plain)


def test_a_number_that_is_set_again_is_no_longer_calibrated(tmp_path: Path) -> None:
    file = tmp_path / "fitted.toml"
    file.write_text(FITTED)
    assert load_gpu(str(file)).fitted_keys == ("launch.overhead_us",)
    assert load_gpu(str(file), ["launch.overhead=1us"]).fitted_keys == ()
