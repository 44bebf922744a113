"""Runs jobs on a cluster with dask.distributed, whose scheduler gives the jobs of a lost worker to another one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.job import Job
from gemmsim.sweeps.work import Done, failed, run_job

SECONDS_TO_CONNECT = 30


def run_cluster(jobs: Sequence[tuple[Job, str]], address: str) -> Generator[Done, None, None]:
    """Yield the results of jobs, each given with its key, as they come from a cluster.

    address  the address of the cluster's scheduler: "tcp://host:8786"

    Every worker needs gemmsim, of this version, and the kernel's files at the same paths. Raises GemmsimError where
    there is no scheduler, no worker, or no dask.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise GemmsimError("--scheduler needs dask: install gemmsim[cluster]") from None
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise GemmsimError(f"no dask scheduler at {address}: {error}") from None
    with closing(client):
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise GemmsimError(f"the dask scheduler at {address} has no workers: start some (dask worker {address})")
        by_key = {key: job for job, key in jobs}
        # The key of a job is also the name of its task in dask, so that the cluster runs the job once however often it
        # is asked for. A result is released as soon as it is here, so that a later sweep of the same key computes it
        # anew.
        futures = [client.submit(run_job, job, key, key=f"gemmsim-{key}", pure=False) for key, job in by_key.items()]
        try:
            for future in as_completed(futures, loop=client.loop):
                yield _done(future, by_key)
                future.release()
        except BaseException:
            client.cancel(futures, force=True)
            raise


def _done(future: Any, by_key: dict[str, Job]) -> Done:
    """Return a job's result. As `run_job` raises nothing, an exception means that the job ended several workers."""
    key = str(future.key).removeprefix("gemmsim-")
    error = future.exception()
    if error is None:
        done: Done = future.result()
        return done
    return Done(failed(by_key[key], key, f"the cluster lost it: {type(error).__name__}: {error}"))
