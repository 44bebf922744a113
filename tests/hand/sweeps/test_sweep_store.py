"""What a sweep keeps: the newest result of a key, and keys that change with the models."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sweep_jobs import fake_job

from gemmsim.analysis.studies.ranking import Status, SweepResult
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps import job as jobs
from gemmsim.sweeps.expressions import evaluate
from gemmsim.sweeps.local import run_local
from gemmsim.sweeps.store import Store
from gemmsim.sweeps.work import run_job


def test_a_later_result_replaces_an_earlier_one() -> None:
    failed = SweepResult("key", fake_job(1).point, Status.FAILED, None, "killed", 0.5)
    refused = replace(failed, status=Status.REFUSED, reason="too large")
    with Store(None) as store:
        store.save(failed)
        assert store.load(["key"]) == {}
        store.save(refused)
        assert store.load(["key"]) == {"key": refused}
        store.save(replace(refused, reason="still too large"))
        assert store.load(["key"])["key"].reason == "still too large"


@pytest.mark.parametrize(("name", "value"), [("model_hash", lambda: "another"), ("MODEL_VERSION", -1)])
def test_a_key_changes_with_the_models(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    before = jobs.key_of(fake_job(1))
    assert jobs.key_of(fake_job(1)) == before != jobs.key_of(fake_job(2))
    monkeypatch.setattr(jobs, name, value)
    assert jobs.key_of(fake_job(1)) != before


def test_expressions_hold_what_63_bits_hold() -> None:
    assert evaluate("9223372036854775806 + 1", {}) == 2**63 - 1
    assert evaluate("0 - 9223372036854775807", {}) == 1 - 2**63
    for text in ("9223372036854775807 + 1", "4611686018427387904 * -2"):
        with pytest.raises(GemmsimError, match="is too large"):
            evaluate(text, {})


def test_an_expression_has_500_characters_at_most() -> None:
    assert evaluate("1" + " " * 498 + " ", {}) == 1
    with pytest.raises(GemmsimError, match="an expression of 501 characters: at most 500"):
        evaluate("1" + " " * 500, {})


def test_no_jobs_need_no_process() -> None:
    assert list(run_local([])) == []


@pytest.mark.parametrize("how", ["refused", "error", "defect"])
def test_how_long_a_job_took_that_failed(how: str) -> None:
    """Since the job began, not since the machine did."""
    one = fake_job(1, how, seconds=0.1)
    assert 0.1 <= run_job(one, jobs.key_of(one)).result.seconds < 5
