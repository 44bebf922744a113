"""Requests of two and more SMs for the same lines, measured on an H200: the rules of `memory.caches.merging`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmsim.gpu import load_gpu
from gemmsim.memory.caches.merging import merged_share
from gemmsim.memory.grid.placement import place

RUNS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("h200_merging.json").read_text(encoding="utf-8"))[
    "runs"
]
L2_TILES: dict[str, Any] = json.loads(Path(__file__).with_name("h200_l2_tiles.json").read_text(encoding="utf-8"))
TILES: dict[str, Any] = json.loads(Path(__file__).with_name("h200_merging_tiles.json").read_text(encoding="utf-8"))
NO_TILES = np.zeros(2, np.bool_)
SECTORS = 512 * 4  # that each SM reads
H200 = load_gpu("h200")
# GPCs by %smid of the GPU measured: SMs whose clocks were reset together.
GPC = {smid: smid % 16 // 2 for smid in range(64)}
GPC |= {smid: (smid - 64) % 14 // 2 + 1 for smid in range(64, 120)} | {120: 6, 121: 6, 122: 7, 123: 7}
GPC |= dict.fromkeys(range(124, 132), 0)


def requests(run: dict[str, Any]) -> float:
    """Of all SMs for a line, as L2 sees them."""
    return float(run["srcunit_tex_op_read_sectors"]) / SECTORS


def test_gpcs_are_those_of_the_preset() -> None:
    assert tuple(sorted(list(GPC.values()).count(gpc) for gpc in range(8))) == H200.sm.gpc_sms


@pytest.mark.parametrize("caches", ["cold", "warm"])
def test_pairs_merge_within_a_gpc(caches: str) -> None:
    pairs = [run for run in RUNS if run["caches"] == caches and run.get("delay_cycles") == 0]
    assert len(pairs) > 40
    for run in pairs:
        same = GPC[run["smids"][0]] == GPC[run["smids"][1]]
        assert requests(run) == pytest.approx(1 if same else 2, rel=0.01), run


@pytest.mark.parametrize(("caches", "merge", "apart"), [("warm", 20, 120), ("cold", 240, 1400)])
def test_while_the_first_is_under_way(caches: str, merge: int, apart: int) -> None:
    """L2 answers within some tens of cycles, DRAM takes several hundred."""
    for run in RUNS:
        delay = run.get("delay_cycles")
        if run["caches"] == caches and delay is not None and GPC[run["smids"][0]] == GPC[run["smids"][1]]:
            if delay <= merge:
                assert requests(run) == pytest.approx(1, rel=0.01), run
            elif delay >= apart:
                assert requests(run) == pytest.approx(2, rel=0.01), run


def test_four_at_most() -> None:
    for run in RUNS:
        if "smids" not in run and run["sms"] > 1:
            least = -(-run["sms"] // H200.l2.merged_requests)
            assert requests(run) == pytest.approx(least, rel=0.1), run


def of_blocks_alone() -> list[tuple[float, float]]:
    """Of block tiles with one block an SM: the share of reads that merges on the H200, and that of blocks in step."""
    shares = []
    for (bm, bn, *_), fit, m, n, flushed, _ in TILES["rows"]:
        rows, columns = m // bm, n // bn
        if fit == 1 and rows * columns == H200.sm.count:
            block = np.arange(rows * columns)
            places = np.stack([block // columns, block % columns], axis=1)
            of_a, of_b = merged_share(places, place(len(block), H200.sm, 1), 1, H200.l2.merged_requests, 0, 1, NO_TILES)
            arrive, asked = flushed[:2]
            shares.append((1 - asked / arrive, (bm * of_a + bn * of_b) / (bm + bn)))
    return shares


def test_blocks_alone_on_their_sms_are_nearly_in_step() -> None:
    """They never merge more than blocks in step would, and four fifths of that in the mean."""
    kept = [measured / model for measured, model in of_blocks_alone()]
    assert len(kept) == 16
    assert min(kept) > 0.65
    assert max(kept) < 1
    assert sum(kept) / len(kept) == pytest.approx(0.82, abs=0.02)


def launches() -> dict[str, list[tuple[float, float, float]]]:
    """Of block tiles, and of blocks that copy tiles by plain loads and by asynchronous copies: the share of reads that
    merges on the H200, by `merged_share`, and with blocks in step by chance once in as often as an SM has blocks.
    """
    found: dict[str, list[tuple[float, float, float]]] = {"tiles": [], "plain": [], "copies": []}

    def add(kind: str, fit: int, grid: tuple[int, int], widths: tuple[int, int], steps: float, measured: float) -> None:
        rows, columns = grid
        first = np.arange(min(rows * columns, H200.sm.count * fit))
        places = np.stack([first // columns, first % columns], axis=1)
        placed = place(rows * columns, H200.sm, fit)
        alike, drifted = (
            float(merged_share(places, placed, fit, H200.l2.merged_requests, n, H200.l2.drift_steps, NO_TILES) @ widths)
            / sum(widths)
            for n in (0, steps * max(1, rows * columns / H200.sm.count / fit))
        )
        found[kind].append((measured, drifted, alike / min(fit, -(-rows * columns // H200.sm.count))))

    for (bm, bn, bk, *_), fit, m, n, (arrive, asked, *_), _ in TILES["rows"]:
        add("tiles", fit, (m // bm, n // bn), (bm, bn), 1024 / bk, 1 - asked / arrive)
    for (fit, a, b, steps, _, rows, columns, _, jitter, plain), _, (arrive, asked, *_), _ in L2_TILES["rows"]:
        if not jitter:
            add("plain" if plain else "copies", fit, (rows, columns), (a, b), steps, 1 - asked / arrive)
    return found


@pytest.mark.parametrize(("kind", "number", "most"), [("tiles", 49, 0.13), ("plain", 25, 0.07), ("copies", 50, 0.125)])
def test_reads_of_sms_that_drift_apart(kind: str, number: int, most: float) -> None:
    """What L2 reads, in the mean; a quarter less wrong than if one request in r merged on an SM with r blocks."""
    shares = np.array(launches()[kind])
    assert len(shares) == number
    measured, drifted, chance = 1 - shares.T
    error, before = (np.abs(model / measured - 1).mean() for model in (drifted, chance))
    assert error < most
    assert error < before * 0.75


def test_blocks_that_begin_apart_stay_apart() -> None:
    """Nothing brings SMs into step again: blocks that begin up to 20,000 cycles apart merge less than up to 2,000."""
    share = {tuple(row[0]): 1 - row[2][1] / row[2][0] for row in L2_TILES["rows"]}
    for (fit, a, b, steps, stages, rows, columns, work, jitter, plain), merged in share.items():
        if jitter == 20000:
            soon = share[(fit, a, b, steps, stages, rows, columns, work, 2000, plain)]
            assert merged < 0.6 * soon
