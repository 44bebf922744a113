"""Runs the jobs of a sweep and sorts the results by time. A job whose result is stored is not predicted again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing

from gemmsim.analysis.studies.ranking import Pruned, Sweep, SweepResult, rank
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural
from gemmsim.sweeps.job import Job, keys_of
from gemmsim.sweeps.store import Store
from gemmsim.sweeps.work import Done

Runner = Callable[[Sequence[tuple[Job, str]]], Generator[Done, None, None]]


def sweep(
    jobs: Sequence[Job],
    pruned: Sequence[Pruned],
    axes: Sequence[str],
    store: Store,
    runner: Runner,
    again: bool = False,
    started: Callable[[int, int], None] = lambda reused, total: None,
    progress: Callable[[SweepResult], None] = lambda result: None,
) -> Sweep:
    """Predict `jobs` and sort the results by time.

    pruned    the combinations that cannot launch, which the result lists too
    axes      names of the tunables that are varied
    runner    runs the jobs (see `local`, `cluster`)
    store     keeps each result before `progress` sees it
    again     whether jobs are predicted whose results are in the store already
    started   called once, with how many results are in the store and how many jobs there are in all
    progress  called with each new result

    Where the sweep is interrupted, for example by KeyboardInterrupt, every finished result is in the store.
    """
    if not jobs:
        kinds = "; ".join(f"{one.kind}: {one.reason}" for one in pruned[:1])
        raise GemmsimError(f"none of {plural(len(pruned), 'combination')} can be launched; the first by {kinds}")
    keys = keys_of(jobs)
    waiting = dict(zip(keys, jobs, strict=True))  # equal combinations are predicted once
    results = {} if again else store.load(waiting)
    reused = len(results)
    started(reused, len(waiting))
    todo = [(job, key) for key, job in waiting.items() if key not in results]
    warned: dict[str, None] = {}
    with closing(runner(todo)) as running:
        for done in running:
            result = done.result
            store.save(result)
            results[result.key] = result
            warned |= dict.fromkeys(done.warned)
            progress(result)
    for line in warned:
        warnings.warn(line, stacklevel=2)
    return rank(axes, [results[key] for key in waiting], pruned, reused)
