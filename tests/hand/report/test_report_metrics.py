"""The table of metrics."""

from __future__ import annotations

import re

import pytest

from gemmsim.report.metrics import METRICS
from gemmsim.sm.types import STALL_REASONS


@pytest.mark.parametrize("name", METRICS)
def test_every_row_says_what_it_is(name: str) -> None:
    metric = METRICS[name]
    assert re.fullmatch(r"[a-z0-9]+__[a-z0-9_]+(\.[a-z_]+)*", name)
    assert metric.label and metric.section
    assert metric.meaning.endswith(".") and "{" not in metric.meaning + metric.label + metric.section


def test_every_stall_reason_has_a_row() -> None:
    for reason in STALL_REASONS:
        assert f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" in METRICS


def test_word_lists_expand() -> None:
    loads = METRICS["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
    stores = METRICS["l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"]
    assert (loads.label, stores.label) == ("requests of global loads", "requests of local stores")
    assert loads.meaning == stores.meaning
