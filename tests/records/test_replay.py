"""All records, replayed: exact counters are gates, the rest must not be worse than the committed figures."""

from __future__ import annotations

import hashlib
import os

import pytest
from gemmsim_validate.compare import accuracy
from gemmsim_validate.compare.document import sections
from gemmsim_validate.compare.judge import Judged, judge_all
from gemmsim_validate.compare.predict import predict_all
from gemmsim_validate.documents import render
from gemmsim_validate.records.case import Case
from gemmsim_validate.records.select import replayable_cases

from gemmsim.compile import default_cache

# All of the H200 is replayed at 256 that has counters, of rungs for f16 and bf16 the former. Of other launches with
# counters, of published ones and of those timed at 4096 it is a sixty-fourth, chosen by hash, and one of which every
# block is executed. `make slow` replays all of them, `gemmsim-validate compare` all.
SLOW = os.environ.get("GEMMSIM_SLOW") == "1"
REPLAYABLE = tuple(replayable_cases())
IN_FULL = "triton_descriptors_bf16_128x128x32-bf16-1024x1024x1024"
OF_F16 = {(case.gpu, case.id) for case in REPLAYABLE if case.dtype == "f16" and case.counters}


def executes_every_block(case: Case) -> bool:
    """Triton's kernels with descriptors are not sampled: at 2048 and 4096 three took as long as all others together.
    `IN_FULL` is one of the others."""
    return case.name.startswith("triton_descriptors") and case.m > 1024


def resembles_f16(case: Case) -> bool:
    """At 256, whether the same launch for f16 is replayed."""
    return case.m == 256 and case.dtype == "bf16" and (case.gpu, case.id.replace("-bf16-", "-f16-")) in OF_F16


def chosen(case: Case) -> bool:
    if not SLOW and (executes_every_block(case) or resembles_f16(case)):
        return False
    if case.counters and case.m == 256 and case.gpu == "h200":
        return True
    part = int(hashlib.sha256(f"{case.gpu} {case.id}".encode()).hexdigest(), 16) % 64
    drawn = SLOW or part == 0 or case.id == IN_FULL
    return drawn and (bool(case.counters) or case.kind == "published" or case.m == 4096)


CASES = tuple(filter(chosen, REPLAYABLE))


@pytest.fixture(scope="module")
def replayed() -> list[Judged]:
    """Predictions are kept while nothing they depend on changes, as `gemmsim-validate compare` keeps them."""
    judged = judge_all(CASES, predict_all(CASES, default_cache().folder / "predictions", jobs=2))
    print(render.text([section for section in sections(judged) if "every case" not in section.title]))  # noqa: T201
    return judged


def test_every_case_can_be_predicted(replayed: list[Judged]) -> None:
    assert [(row.case.id, row.prediction.error) for row in replayed if row.prediction.error] == []


def test_results_are_right(replayed: list[Judged]) -> None:
    assert [row.case.id for row in replayed if row.prediction.verified is False] == []


def test_exact_counters_equal_the_hardware(replayed: list[Judged]) -> None:
    assert [(row.case.id, n.name, round(n.error_pct, 2)) for row in replayed for n in row.broken] == []


def test_predictions_are_not_worse_than_committed(replayed: list[Judged]) -> None:
    """Where a change of the models moved them for good: gemmsim-validate compare --update."""
    assert accuracy.worse(replayed, accuracy.read()) == []
