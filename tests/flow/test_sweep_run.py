"""Results that survive: failures, processes that end, interruptions, and a second run of the same sweep."""

from __future__ import annotations

import os
import signal
import sqlite3
import warnings
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sweep_jobs import fake_job

from gemmsim.analysis.studies.comparison import Skipped
from gemmsim.analysis.studies.ranking import Point, Prediction, Pruned, Status, SweepResult, rank
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase
from gemmsim.studies.compare import run_task
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.job import Job, keys_of
from gemmsim.sweeps.local import ENDED, run_local
from gemmsim.sweeps.run import sweep
from gemmsim.sweeps.space import ladder_jobs
from gemmsim.sweeps.store import Store
from gemmsim.sweeps.work import Done, run_job

pytest.importorskip("numba_cuda")

PREDICTION = Prediction(
    10.0, 1.0, 50.0, "pipe", "fma 50%", "fma pipe: 50%", 32, 0, 0, 1, 0.1, 100, 50, 1e6, True, "simpy"
)


def result(number: int, time_us: float = 10.0, gpu: str = "h200", size: int = 8) -> SweepResult:
    point = Point("fake", {"number": number}, size, size, size, "f32", gpu)
    return SweepResult(
        f"key {number} {gpu} {size}", point, Status.PREDICTED, replace(PREDICTION, time_us=time_us), "", 1.5
    )


def one_by_one(jobs: Sequence[tuple[Job, str]]) -> Generator[Done, None, None]:
    return run_local(jobs, 1)


def test_ranks_are_of_a_size_and_a_gpu() -> None:
    every = [result(1, 30), result(2, 20), result(1, 5, "a100"), result(3, 20), result(1, 99, size=16)]
    found = rank(["number"], every, [], 0)
    assert [(one.point.gpu, one.point.m, [r.point.tunables["number"] for r in one.results]) for one in found.rankings]
    assert [[r.point.tunables["number"] for r in one.results] for one in found.rankings] == [[2, 3, 1], [1], [1]]
    assert [one.best_us for one in found.rankings] == [20, 5, 99]


def test_what_fails_is_kept_with_its_error_and_loses_no_other() -> None:
    jobs = [fake_job(0), fake_job(1), fake_job(2, "refused"), fake_job(3, "defect")]
    with Store(None) as store, pytest.warns(UserWarning, match="said once"):
        found = sweep(jobs, [], ["number"], store, one_by_one)
    assert [one.point.tunables["number"] for one in found.rankings[0].results] == [0, 1]
    assert [(one.status, one.reason) for one in found.failed] == [
        (Status.FAILED, "no such thing"),
        (Status.FAILED, "ZeroDivisionError: of this case"),
    ]


def test_what_an_analysis_warns_of_and_why_it_fails_are_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def analyze(*_: object, **__: object) -> None:
        warnings.warn("look\nhere", stacklevel=1)
        raise GemmsimError("no\nway")

    monkeypatch.setattr("gemmsim.api.analyze", analyze)
    outcome = run_task(fake_job(0).task)
    assert outcome.warned == ("look here",)
    assert outcome.result == Skipped("fake", "a100-80gb", "no way")


def test_a_launch_that_does_not_fit_once_compiled_is_refused_not_failed() -> None:
    """blocktile_2d, 1024 threads of about 64 registers, on a GPU of 32768 registers an SM."""
    gpu = load_gpu("a100", ["sm.registers=8192"])
    axes = {"bm": (128,), "bn": (128,), "bk": (8,), "tm": (8,), "tn": (8,)}
    (job,), _ = ladder_jobs(LadderCase("blocktile_2d", 1, 1, 1), axes, [(128, 128, 128)], [gpu])
    (key,) = keys_of([job])
    done = run_job(job, key).result
    assert done.status == Status.REFUSED and "do not fit the 8192 registers" in done.reason


def test_a_worker_with_other_sources_says_so() -> None:
    assert "another version" in run_job(fake_job(0), "0" * 64).result.reason


def test_a_second_run_predicts_only_what_is_missing(tmp_path: Path) -> None:
    path, marks = tmp_path / "r.sqlite", tmp_path / "marks"
    marks.mkdir()
    jobs = [fake_job(number, marks=str(marks)) for number in (0, 2)] + [fake_job(3, "defect", str(marks))]
    with Store(path) as store:
        first = sweep(jobs, [], ["number"], store, one_by_one)
    with Store(path) as store:
        again = sweep([*jobs, fake_job(4, marks=str(marks))], [], ["number"], store, one_by_one)
    assert (first.reused, again.reused) == (0, 2)
    assert [one.runs for one in jobs] == [1, 1, 2]  # what failed is tried again
    assert again.predicted == 3 and again.rankings[0].results[0].prediction == first.rankings[0].results[0].prediction
    with Store(path) as store:
        sweep(jobs[:1], [], ["number"], store, one_by_one, again=True)
    assert jobs[0].runs == 2
    rows = sqlite3.connect(path).execute("SELECT count(*), count(DISTINCT key) FROM result").fetchone()
    assert rows == (4, 4)


def test_equal_combinations_are_predicted_once(tmp_path: Path) -> None:
    jobs = [fake_job(0, marks=str(tmp_path))] * 3
    with Store(None) as store:
        assert sweep(jobs, [], [], store, one_by_one).predicted == 1
    assert jobs[0].runs == 1


def test_interrupted_sweeps_keep_what_is_finished(tmp_path: Path) -> None:
    jobs = [fake_job(0), fake_job(2), fake_job(3, "interrupted"), fake_job(4)]
    with Store(tmp_path / "r.sqlite") as store, pytest.raises(KeyboardInterrupt):
        sweep(jobs, [], [], store, one_by_one)
    with Store(tmp_path / "r.sqlite") as store:
        assert set(store.load(keys_of(jobs))) == set(keys_of(jobs)[:2])


def test_a_process_that_is_ended_takes_no_other_job_with_it(tmp_path: Path) -> None:
    """Of two processes one is killed by its job, once by the first and always by the second."""
    jobs = [fake_job(number, marks=str(tmp_path)) for number in range(6)]
    jobs[2] = replace(jobs[2], how="killed once")
    jobs[5] = replace(jobs[5], how="killed")
    with Store(None) as store, pytest.warns(UserWarning, match="said once"):
        found = sweep(jobs, [], ["number"], store, lambda todo: run_local(todo, 2))
    assert found.predicted == 5
    assert [(one.point.tunables["number"], one.reason) for one in found.failed] == [(5, ENDED)]
    assert (jobs[2].runs, jobs[5].runs) == (2, 2)


def test_processes_and_none_agree() -> None:
    jobs = [fake_job(number) for number in (0, 2, 3)]
    keyed = list(zip(jobs, keys_of(jobs), strict=True))

    def predictions(processes: int) -> dict:
        return {done.result.key: (done.result.point, done.result.prediction) for done in run_local(keyed, processes)}

    assert predictions(1) == predictions(2)


def test_nothing_to_predict() -> None:
    pruned = [Pruned(fake_job(0).point, "threads", "2048 threads a block")]
    with Store(None) as store, pytest.raises(GemmsimError, match="none of 1 combination can be launched; the first"):
        sweep([], pruned, [], store, one_by_one)


def test_results_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    left_out = SweepResult("other", result(1).point, Status.REFUSED, None, "too many registers", 0.1)
    with Store(path) as store:
        store.save(result(1))
        store.save(left_out)
        with Store(path) as second:  # at the same time
            assert second.load(["key 1 h200 8", "other", "none"]) == {"key 1 h200 8": result(1), "other": left_out}
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert sqlite3.connect(path).execute("SELECT kernel, m, time_us FROM result WHERE gpu='h200'").fetchall()


def test_files_that_are_no_results(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but longer than the header of one" * 100)
    foreign = tmp_path / "foreign.sqlite"
    sqlite3.connect(foreign).execute("CREATE TABLE mine (a)")
    newer = tmp_path / "newer.sqlite"
    Store(newer)
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for path, message in (
        (text, "file is not a database"),
        (foreign, "not one of gemmsim sweep"),
        (newer, "results of form 99"),
        (tmp_path / "no" / "folder.sqlite", "unable to open"),
    ):
        with pytest.raises(GemmsimError, match=message):
            Store(path)
    assert text.read_text().startswith("not a database")
    assert sqlite3.connect(foreign).execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_a_cluster_loses_a_worker_and_no_result(tmp_path: Path) -> None:
    """Two processes of a real cluster; the first result costs one of them its life, as soon as it is at another job."""
    distributed = pytest.importorskip("distributed")
    from gemmsim.sweeps.cluster import run_cluster

    jobs = [fake_job(number, marks=str(tmp_path), seconds=0.4) for number in range(10)]
    jobs[9] = replace(jobs[9], how="defect")
    saved: list[str] = []

    class Recorded(Store):
        def save(self, result: SweepResult) -> None:
            saved.append(result.key)
            super().save(result)

    killed: list[int] = []

    def progress(result: SweepResult) -> None:
        if not killed:
            pids = [int(line) for job in jobs if job.runs for line in (tmp_path / str(job.number)).read_text().split()]
            killed.append(pids[-1])
            os.kill(pids[-1], signal.SIGKILL)

    with (  # noqa: PT031 - the warning may come from any of these lines
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0", silence_logs=50) as cluster,
        Recorded(tmp_path / "r.sqlite") as store,
        pytest.warns(UserWarning, match="said once"),
    ):
        address = cluster.scheduler_address
        found = sweep(jobs, [], ["number"], store, lambda todo: run_cluster(todo, address), progress=progress)
        pids = {int(line) for job in jobs for line in (tmp_path / str(job.number)).read_text().split()}
        again = sweep(jobs[:9], [], ["number"], store, lambda todo: run_cluster(todo, address))
    assert killed and len(pids) >= 2
    assert found.predicted == 9 and len(found.failed) == 1 and "of this case" in found.failed[0].reason
    assert sorted(saved) == sorted(keys_of(jobs))  # each once
    assert again.reused == 9
    assert sum(job.runs for job in jobs) > len(jobs)  # what the lost worker was at was begun again


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("gemmsim.sweeps.cluster.SECONDS_TO_CONNECT", 1)
    from gemmsim.sweeps.cluster import run_cluster

    with pytest.raises(GemmsimError, match=r"no dask scheduler at tcp://127\.0\.0\.1:9"):
        list(run_cluster([(fake_job(0), "x")], "tcp://127.0.0.1:9"))
