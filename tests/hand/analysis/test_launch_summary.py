"""What is summed up of a launch, by the numbers of `report_factory`."""

from __future__ import annotations

import pytest
from report_factory import evidence

from gemmsim.analysis.findings import Bottleneck, Verification
from gemmsim.analysis.studies.launch_summary import summarise
from gemmsim.launch.spec import Labels


def test_a_launch_is_summed_up() -> None:
    """14,100 cycles at 1.41 GHz, on an A100, of whose 64 warps half are there; of eight cycles an instruction one is
    the issue itself."""
    bottleneck, verified = Bottleneck("latency", "warps wait", 40.0), Verification(None, None, "")
    found = summarise("tiled", Labels("tiled", ""), "f32", evidence(), bottleneck, verified)
    assert (found.blocks, found.sm_count, found.waves, found.registers) == (27 * 8, 108, 0.25, 32)
    assert (found.warps, found.achieved_occupancy_pct) == (32.0, 50.0)
    assert found.kernel_us == pytest.approx(10.0)
    assert found.warp_instructions == 100 + 100 + 400 + 400 + 50 + 10
    assert found.waits_us == pytest.approx({"selected": 1.25, "short_scoreboard": 7.5, "barrier": 1.25})
    issue = found.use("issue slots")
    assert issue is not None and (issue.share_pct, issue.work) == (40.0, 1060.0)
    assert issue.busy_us == pytest.approx(4.0)
