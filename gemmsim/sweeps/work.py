"""Predicts one combination of a sweep, in any process or on any machine. An error becomes part of the result."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.analysis.studies.launch_summary import LaunchSummary
from gemmsim.analysis.studies.ranking import Prediction, Status, SweepResult
from gemmsim.launch.spec import LaunchSpec
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.job import Job, key_of

# A worker of a cluster may have several threads, but a process has one numba compiler and one list of warnings.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Done:
    """The result of a finished job, and in `warned` the warnings that its prediction gave, one line each."""

    result: SweepResult
    warned: tuple[str, ...] = ()


def run_job(job: Job, key: str) -> Done:
    """Predict `job`. Raises nothing: where something goes wrong, the result says what.

    key  the job's key on the machine that started the sweep; where the job has another key here, files differ between
         the machines, and the job fails
    """
    with _one_at_a_time:
        start = time.monotonic()
        try:
            if key_of(job) != key:
                return Done(
                    failed(job, key, "this worker has another version of gemmsim, its tools or the kernel's files")
                )
            outcome = job.run()
            seconds = time.monotonic() - start
            found = outcome.result
            if isinstance(found, LaunchSummary):
                result = SweepResult(key, job.point, Status.PREDICTED, _prediction(found), "", seconds)
            else:
                status = Status.REFUSED if _cannot_launch(job) else Status.FAILED
                result = SweepResult(key, job.point, status, None, found.reason, seconds)
            return Done(result, outcome.warned)
        except GemmsimError as error:
            return Done(failed(job, key, str(error), time.monotonic() - start))
        except Exception as error:  # a defect of this one case must not lose the others
            return Done(failed(job, key, f"{type(error).__name__}: {error}", time.monotonic() - start))


def failed(job: Job, key: str, reason: str, seconds: float = 0.0) -> SweepResult:
    return SweepResult(key, job.point, Status.FAILED, None, " ".join(reason.split()), seconds)


def _prediction(launch: LaunchSummary) -> Prediction:
    per_s = launch.achieved_flops
    return Prediction(
        time_us=launch.time_us,
        tflops=per_s / 1e12 if per_s else None,
        percent_of_peak=launch.percent_of_peak,
        limiter=launch.bottleneck.kind,
        limited_by=launch.limited_by,
        limiter_text=launch.bottleneck.sentence,
        registers=launch.registers,
        shared_bytes=launch.shared_bytes,
        local_bytes=launch.local_bytes,
        blocks=launch.blocks,
        waves=launch.waves,
        theoretical_occupancy_pct=launch.theoretical_occupancy_pct,
        achieved_occupancy_pct=launch.achieved_occupancy_pct,
        warp_instructions=launch.warp_instructions,
        verified=launch.verified.ok,
        engine=launch.engine,
    )


def _cannot_launch(job: Job) -> bool:
    """Return whether a refused job compiles, but needs more registers or shared memory than its GPU has for a block."""
    from gemmsim.compile import compile_kernel, default_cache

    spec = job.task.spec
    if not isinstance(spec, LaunchSpec):
        return False
    try:
        program = compile_kernel(spec.kernel, spec.gpu.arch, default_cache() if spec.settings.use_cache else None)
    except GemmsimError:
        return False
    shared_bytes = program.static_shared_bytes + spec.launch.dynamic_shared_bytes
    try:
        theoretical_occupancy(program.registers, shared_bytes, spec.launch.threads_per_block, spec.gpu)
    except GemmsimError:
        return True
    return False
