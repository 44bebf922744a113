"""Runs the jobs of a sweep in several processes of this machine. If one is ended from outside, only its job is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool

from gemmsim.support.processes import available_cpus, workers
from gemmsim.sweeps.job import Job
from gemmsim.sweeps.work import Done, failed, run_job

ENDED = "the process that predicted it was ended, perhaps for want of memory"

Keyed = tuple[Job, str]  # a job and its key


def run_local(jobs: Sequence[Keyed], processes: int | None = None) -> Generator[Done, None, None]:
    """Yield the results of jobs, each given with its key, as they come.

    processes  how many processes run at once; None: one for each CPU at hand; 1: the jobs run in this process

    Where a process is ended from outside, the jobs under way are tried again one by one. A job whose process is ended
    again has failed.
    """
    wanted = min(processes or available_cpus(), len(jobs))
    if wanted <= 1:
        for job, key in jobs:
            yield run_job(job, key)
        return
    waiting = deque(jobs)
    while waiting:
        suspects: deque[Keyed] = deque()
        yield from _until_broken(waiting, wanted, wanted + 1, suspects)
        while suspects:
            ended: deque[Keyed] = deque()
            yield from _until_broken(suspects, 1, 1, ended)
            for keyed in ended:
                yield Done(failed(*keyed, ENDED))


def _until_broken(
    waiting: deque[Keyed], processes: int, at_once: int, suspects: deque[Keyed]
) -> Generator[Done, None, None]:
    """Take jobs from `waiting`, run them in `processes` processes, and yield results until a process is ended.

    at_once   how many jobs are under way at most; where this is more than `processes`, no process waits for a job
    suspects  gets the jobs that were under way when a process was ended; the others stay in `waiting`
    """
    under_way: dict[Future[Done], Keyed] = {}
    with workers(processes) as pool:
        while under_way or (waiting and not suspects):
            try:
                while waiting and not suspects and len(under_way) < at_once:
                    under_way[pool.submit(run_job, *waiting[0])] = waiting[0]
                    waiting.popleft()
            except BrokenProcessPool:
                suspects += under_way.values() or [waiting.popleft()]
                return
            finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in finished:
                keyed = under_way.pop(future)
                try:
                    done = future.result()
                except BrokenProcessPool:
                    suspects.append(keyed)
                    continue
                yield done
