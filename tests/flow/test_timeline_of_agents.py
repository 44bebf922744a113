"""A timeline shows what works beside the warps: bulk copies of the TMA unit, and the tensor pipe for wgmma."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.timeline.text import render
from gemmsim.report.timeline.types import TimelineReport, Window
from gemmsim.sm.observer import LEVELS
from gemmsim.studies.timeline import timeline


@pytest.fixture(scope="module")
def report() -> TimelineReport:
    """One block of 128 x 256 results, four tiles of 64 along K: warps 0 to 3 load, 4 to 11 multiply."""
    return timeline(ladder_launch(LadderCase("wgmma_specialised", 128, 256, 256), load_gpu("h200")))


def intervals(report: TimelineReport, warp: int, level: str) -> list[list[int]]:
    rows = report.timeline.warps[warp].memory
    return rows[rows[:, 3] == LEVELS.index(level), :2].tolist()


def test_each_tensor_pipe_multiplies_one_after_another(report: TimelineReport) -> None:
    """16 steps of 16 along K, m64n256k16 in 128 cycles each, for both warpgroups on the four tensor pipes."""
    for part in range(4):
        mine = [n for n, stay in enumerate(report.timeline.warps) if stay.sub_partition == part]
        found = np.array(sorted(one for n in mine for one in intervals(report, n, "tensor pipe")))
        assert (found[:, 1] - found[:, 0] == 128).all() and len(found) == 2 * 16
        assert (found[1:, 0] >= found[:-1, 1]).all()


def test_the_producer_alone_copies(report: TimelineReport) -> None:
    """As many copies for each of the four tiles, all by warp 0."""
    copies = [len(intervals(report, n, "TMA")) for n in range(12)]
    assert copies[0] > 0 and copies[1:] == [0] * 11
    assert copies[0] % 4 == 0


def test_the_ring_of_a_producer_and_its_consumers() -> None:
    """K = 512: eight tiles of 64 along K go through four stages in turn."""
    report = timeline(ladder_launch(LadderCase("wgmma_specialised", 128, 256, 512), load_gpu("h200")))
    [ring] = report.timeline.rings
    assert (ring.stages, ring.told, ring.fills[:, 0].tolist()) == (4, True, [0, 1, 2, 3, 0, 1, 2, 3])
    asked, full, free = ring.fills[:, 1:].T
    assert (asked < full).all() and (full < free).all()
    assert (asked[4:] >= free[:4]).all()  # the producer waits until the stage is free
    copies = np.array(intervals(report, 0, "TMA"))
    for begin, until, complete in zip(asked, [*asked[1:], 1 << 30], full, strict=True):
        mine = copies[(copies[:, 0] >= begin) & (copies[:, 0] < until)]
        assert complete == mine[:, 1].max()  # the phase ends with the last byte of the stage's copies


def test_a_ring_whose_stages_no_mbarrier_frees() -> None:
    """wgmma_tma: three stages, told to be free by a barrier of the block."""
    report = timeline(ladder_launch(LadderCase("wgmma_tma", 128, 128, 320), load_gpu("h200")))
    [ring] = report.timeline.rings
    assert (ring.stages, ring.told, ring.fills[:, 0].tolist()) == (3, False, [0, 1, 2, 0, 1])
    assert ring.fills[:2, 3].tolist() == ring.fills[3:, 1].tolist()
    assert (ring.fills[2:, 3] == report.timeline.cycles).all()
    assert "No mbarrier says when" in " ".join(render(report, Window(0, report.timeline.cycles), 1).split())


def test_rows_and_jobs_in_the_text(report: TimelineReport) -> None:
    text = render(report, Window(0, report.timeline.cycles), 12)
    names = [line[:12].strip() for line in text.splitlines() if line.startswith("b0 ")]
    assert names == ["b0 w0 tma", *(f"b0 w{n}" for n in range(1, 4)), *(f"b0 w{n} mma" for n in range(4, 12))]
    rows = {line[:12].strip(): line[12:] for line in text.splitlines()}
    assert "3" in rows["ring full"] and rows["filling"].strip(" 0").startswith("112")
    assert "9" in rows["TMA"] and "9" in rows["tensor pipe"]
