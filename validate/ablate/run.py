"""Predicts the time of each case with all mechanisms on and with each one off; several cases run at a time.

A case is executed and its memory traffic counted once; only the timing model runs again for each mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from gemmsim.support.errors import GemmsimError
from gemmsim.support.processes import map_unordered

from ..records.case import STUDY, Case
from .mechanisms import BY_KEY

SIZES = (1000, 1024, 2048)
FOLDERS = ("h200", "h200_wgmma")


@dataclass(frozen=True)
class Timed:
    """The predicted times of one case.

    error       why the case could not be timed; "" where it could
    time_us     the time with all mechanisms on, as `gemmsim-validate compare` predicts it
    without_us  mechanism's key -> the time in microseconds with that mechanism off
    seconds     how long all predictions of the case took on this machine
    """

    error: str = ""
    time_us: float = 0.0
    without_us: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


def fits(case: Case, sizes: Sequence[int] = SIZES) -> bool:
    """Whether the case is a rung, of the half for study, that was timed on an H200 at an M = N = K among `sizes`."""
    timed_rung = case.kind == "measured" and case.rung and bool(case.compared_time)
    return case.half == STUDY and case.folder in FOLDERS and timed_rung and case.is_square and case.n in sizes


def ablate(case: Case, keys: Sequence[str]) -> Timed:
    """Predict one case's time with all mechanisms on, and with each mechanism named in `keys` off in turn."""
    from gemmsim.api import count

    from ..records.replay import timed_launch
    from .switch import Inputs

    start = time.perf_counter()
    try:
        request = timed_launch(case, case.compared_time)
        given = Inputs.of(count(request), request)
        time_us = given.time_us()
        without_us = {key: BY_KEY[key].switch(given).time_us() for key in keys}
    except GemmsimError as error:
        return Timed(error=str(error), seconds=time.perf_counter() - start)
    return Timed("", time_us, without_us, time.perf_counter() - start)


def ablate_all(
    cases: Iterable[Case],
    keys: Sequence[str],
    jobs: int,
    progress: Callable[[Case, Timed], None] = lambda case, timed: None,
) -> dict[str, Timed]:
    """Predict the cases' times in `jobs` processes; return them by case id, in the order of `cases`.

    A case that cannot be predicted has a `Timed` with an error. `progress` is called with each case and its times as
    soon as these are known.
    """
    given = list(cases)
    # The longest case comes first, so that no process is left with it at the end.
    longest_first = sorted(given, key=lambda case: -case.m * case.n * case.k)
    found = {}
    for case, timed in map_unordered(partial(ablate, keys=tuple(keys)), longest_first, jobs):
        found[case.id] = timed
        progress(case, timed)
    return {case.id: found[case.id] for case in given}
