"""Many launches side by side: each analysed in a process of its own, the results compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from gemmsim.analysis.studies.comparison import Comparison, Skipped, compare_launches
from gemmsim.analysis.studies.launch_summary import LaunchSummary, summarise
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.cases import FROM_A_SAMPLE, LadderCase, ladder_request
from gemmsim.launch.request import AnalyzeRequest, Sampling
from gemmsim.support.errors import GemmsimError
from gemmsim.support.processes import available_cpus, workers


@dataclass(frozen=True)
class Task:
    """A case to analyse on a GPU; name: what the comparison calls it."""

    name: str
    case: LadderCase
    gpu: GpuSpec
    sampling: Sampling = FROM_A_SAMPLE
    use_cache: bool = True


@dataclass(frozen=True)
class Outcome:
    """result: the launch, or why there is none; warned: warnings that analysing it gave, one line each."""

    result: LaunchSummary | Skipped
    warned: tuple[str, ...] = ()


def compare(
    tasks: Sequence[Task],
    by_gpu: bool = False,
    jobs: int | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Comparison:
    """Analyse `tasks`, all of one size, and compare them in their order.

    jobs      processes at once (the CPUs at hand where None); 1 starts none
    progress  called in this process with each outcome, as they come

    A task that cannot be compiled or launched becomes a `Skipped`. Raises GemmsimError where none can be, or where a
    process ends without an answer.
    """
    if not tasks:
        raise GemmsimError("nothing to compare: no kernel is left")
    wanted = min(jobs or available_cpus(), len(tasks))
    outcomes: dict[int, Outcome] = {}
    for number, outcome in _in_turn(tasks) if wanted == 1 else _at_once(tasks, wanted):
        outcomes[number] = outcome
        progress(outcome)
    results = [outcomes[number].result for number in range(len(tasks))]
    for line in dict.fromkeys(line for outcome in outcomes.values() for line in outcome.warned):
        warnings.warn(line, stacklevel=2)
    launches = [result for result in results if isinstance(result, LaunchSummary)]
    skipped = [result for result in results if isinstance(result, Skipped)]
    if not launches:
        raise GemmsimError(f"none of {len(tasks)} kernels can run; {skipped[0].kernel}: {skipped[0].reason}")
    case = tasks[0].case
    return compare_launches((case.m, case.n, case.k), launches, skipped, by_gpu, case.warm_caches)


def run_task(task: Task) -> Outcome:
    """One analysis. What gemmsim refuses, in one line, is an outcome; anything else is a defect and raised."""
    return run_request(
        task.name, task.gpu.name, lambda: ladder_request(task.case, task.gpu, task.sampling, task.use_cache)
    )


def run_request(name: str, gpu: str, make: Callable[[], AnalyzeRequest]) -> Outcome:
    """The same of any request; `make` may raise GemmsimError."""
    from gemmsim.api import analyze

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            request = make()
            report = analyze(request, accesses=False)
            dtype = next((one.dtype for one in request.launch.args if one.shape), "")
            result: LaunchSummary | Skipped = summarise(
                name, report.labels, dtype, report.evidence, report.bottleneck, report.verified
            )
        except GemmsimError as error:
            result = Skipped(name, gpu, " ".join(str(error).split()))
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
