"""Each case counted once, then timed as it is and once without each mechanism; several cases at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace

from gemmsim.support.errors import GemmsimError
from gemmsim.support.processes import workers

from ..records import Case
from .mechanisms import BY_KEY

SIZES = (1000, 1024, 2048)


@dataclass(frozen=True)
class Timed:
    """One case. error: why it could not be timed, else "".

    time_us     as `gemmsim-validate compare` predicts it
    without_us  by mechanism
    seconds     that all of this took
    """

    error: str = ""
    time_us: float = 0.0
    without_us: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


def fits(case: Case, sizes: Sequence[int] = SIZES) -> bool:
    """A rung of the ladder on an H200, measured and timed, M = N = K one of `sizes`."""
    square = case.m == case.n == case.k and case.n in sizes
    return case.gpu == "h200" and case.kind == "measured" and case.rung and bool(case.held_against) and square


def ablate(case: Case, keys: Sequence[str]) -> Timed:
    """One case, without each of the mechanisms of these keys in turn."""
    from gemmsim.api import count

    from .switch import Inputs

    start = time.perf_counter()
    try:
        request = replace(case.request(), warm_caches=case.warm(case.held_against))
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
    """By case id, in the order of `cases`. A case that cannot be timed has an error; the others go on."""
    given = list(cases)
    # Longest first, so that no worker is left with the longest at the end.
    longest_first = sorted(given, key=lambda case: -case.m * case.n * case.k)
    found = {}
    for case, timed in _run(longest_first, tuple(keys), jobs):
        found[case.id] = timed
        progress(case, timed)
    return {case.id: found[case.id] for case in given}


def _run(cases: list[Case], keys: tuple[str, ...], jobs: int) -> Iterator[tuple[Case, Timed]]:
    if jobs <= 1 or len(cases) <= 1:
        for case in cases:
            yield case, ablate(case, keys)
        return
    with workers(jobs) as pool:
        running = {pool.submit(ablate, case, keys): case for case in cases}
        for done in as_completed(running):
            yield running[done], done.result()
