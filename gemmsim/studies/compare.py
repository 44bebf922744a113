"""Compares many launches, which are analysed in several processes at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace

from gemmsim.analysis.studies.comparison import Comparison, Skipped, compare_launches
from gemmsim.analysis.studies.launch_summary import LaunchSummary, summarise
from gemmsim.launch.notation import needed_size
from gemmsim.launch.spec import LaunchSpec
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural
from gemmsim.support.processes import available_cpus, workers


@dataclass(frozen=True)
class Task:
    """One launch of a comparison.

    name  the name of the launch in the comparison
    spec  the launch to analyse, or a `Skipped` that says why there is none
    """

    name: str
    spec: LaunchSpec | Skipped


def task_of(name: str, gpu: str, make: Callable[[], LaunchSpec]) -> Task:
    """Make a task of the launch that `make` returns; where `make` raises GemmsimError, the task is skipped."""
    try:
        return Task(name, make())
    except GemmsimError as error:
        return Task(name, Skipped(name, gpu, " ".join(str(error).split())))


@dataclass(frozen=True)
class Outcome:
    """The result of one task.

    result  the analysed launch, or a `Skipped` that says why there is none
    warned  the warnings that its analysis gave, one line each
    """

    result: LaunchSummary | Skipped
    warned: tuple[str, ...] = ()


def compare(
    tasks: Sequence[Task],
    by_gpu: bool = False,
    jobs: int | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Comparison:
    """Analyse `tasks` and compare them in their order. All must have one problem size and the same caches.

    by_gpu    whether GPUs are compared; else kernels are
    jobs      how many processes work at once; None: one for each CPU at hand; 1: this process does the work
    progress  called in this process with each outcome, as it comes

    A task that cannot be compiled or launched becomes a `Skipped`. Raises GemmsimError where all are skipped, or where
    a process ends without an answer.
    """
    if not tasks:
        raise GemmsimError("nothing to compare: no kernel is left")
    specs = [task.spec for task in tasks if isinstance(task.spec, LaunchSpec)]
    size = needed_size(specs[0].labels.size) if specs else (0, 0, 0)  # (0, 0, 0): all are skipped
    results = [outcome.result for outcome in run_tasks(tasks, jobs, progress)]
    launches = [result for result in results if isinstance(result, LaunchSummary)]
    skipped = [result for result in results if isinstance(result, Skipped)]
    if not launches:
        raise GemmsimError(f"none of {plural(len(tasks), 'kernel')} can run; {skipped[0].kernel}: {skipped[0].reason}")
    return compare_launches(size, launches, skipped, by_gpu, specs[0].warm_caches)


def run_tasks(
    tasks: Sequence[Task], jobs: int | None = None, progress: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Analyse the launches of tasks and return an outcome each, in their order. See `compare`."""
    wanted = min(jobs or available_cpus(), len(tasks))
    outcomes: dict[int, Outcome] = {}
    for number, outcome in _in_turn(tasks) if wanted <= 1 else _at_once(tasks, wanted):
        outcomes[number] = outcome
        progress(outcome)
    for line in dict.fromkeys(line for outcome in outcomes.values() for line in outcome.warned):
        warnings.warn(line, stacklevel=3)
    return [outcomes[number] for number in range(len(tasks))]


def run_task(task: Task) -> Outcome:
    """Analyse the launch of a task.

    Where gemmsim refuses the launch with a GemmsimError, the outcome is a `Skipped` with its message; any other
    exception is a defect of gemmsim and is raised.
    """
    from gemmsim.api import analyze

    spec = task.spec
    if isinstance(spec, Skipped):
        return Outcome(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            report = analyze(replace(spec, settings=spec.settings.for_many()), accesses=False)
            dtype = next((one.dtype for one in spec.launch.args if one.shape), "")
            result: LaunchSummary | Skipped = summarise(
                task.name, report.labels, dtype, report.evidence, report.bottleneck, report.verified
            )
        except GemmsimError as error:
            result = Skipped(task.name, spec.gpu.name, " ".join(str(error).split()))
    return Outcome(result, tuple(" ".join(str(one.message).split()) for one in caught))


def _in_turn(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    for number, task in enumerate(tasks):
        yield number, run_task(task)


def _at_once(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, Outcome]]:
    with workers(jobs) as pool:
        numbers: dict[Future[Outcome], int] = {pool.submit(run_task, task): i for i, task in enumerate(tasks)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except BrokenProcessPool:
            raise GemmsimError(
                "a process that analysed a kernel was ended, perhaps for want of memory: try --jobs 1"
            ) from None
