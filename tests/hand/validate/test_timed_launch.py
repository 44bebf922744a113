"""How the launches before it left what a timed launch finds: L2, code and clock, by the way of timing."""

from __future__ import annotations

from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.replay import launch_of, timed_launch
from gemmsim_validate.records.select import replayable_cases

from gemmsim.launch.spec import SUSTAINED


def test_what_a_timed_launch_finds() -> None:
    """In a row each launch finds its code; only on the same operands does it find these in L2."""
    cases = [one for one in replayable_cases() if one.folder in ("h200", "h200_foreign") and one.m == 256]
    found = {}
    for way in ("back_to_back", "rotated", "single_launch"):
        launch = timed_launch(next(one for one in cases if way in one.times), way)
        found[way] = launch.warm_caches, launch.warm_code, launch.settings.clock == SUSTAINED
    assert found == {
        "back_to_back": (True, True, True),
        "rotated": (False, True, True),
        "single_launch": (False, False, False),
    }
    profiled = launch_of(cases[0])
    assert not profiled.warm_caches and not profiled.warm_code


def test_a_case_may_be_compared_with_other_times() -> None:
    case = next(one for one in load_cases() if {"rotated", "back_to_back"} <= set(one.times) and one.counters)
    assert (case.compared_time, case.warm(case.compared_time)) == ("rotated", False)
    warm = case.timed(["back_to_back"])
    assert (warm.compared_time, warm.warm(warm.compared_time), warm.counters) == ("back_to_back", True, {})
    assert case.timed(["published"]).compared_time == ""
