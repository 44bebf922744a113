"""Requests of two and more SMs for the same lines, measured on an H200: the rules of `memory.caches.merging`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_builder import alone

from gemmsim.gpu import load_gpu
from gemmsim.memory.caches.merging import competing_blocks, in_step, kept, kept_by_tiles
from gemmsim.memory.grid.placement import Placement, place
from gemmsim.trace.launch_data.clusters import Clusters

RUNS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("h200_merging.json").read_text(encoding="utf-8"))[
    "runs"
]
L2_TILES: dict[str, Any] = json.loads(Path(__file__).with_name("h200_l2_tiles.json").read_text(encoding="utf-8"))
TILES: dict[str, Any] = json.loads(Path(__file__).with_name("h200_merging_tiles.json").read_text(encoding="utf-8"))
DRIFTING: dict[str, Any] = json.loads(Path(__file__).with_name("h200_drifting_tiles.json").read_text(encoding="utf-8"))
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


def in_step_ab(placed: Placement, columns: int) -> np.ndarray[Any, Any]:
    """The shares of A and B where block b takes A by its row and B by its column, with so many columns."""
    places = np.stack([placed.first // columns, placed.first % columns], axis=1)
    return in_step(places, placed, H200.l2.merged_requests)


def of_blocks_alone() -> list[tuple[float, float]]:
    """Of block tiles with one block an SM: the share of reads that merges on the H200, and that of blocks in step."""
    shares = []
    for (bm, bn, *_), fit, m, n, flushed, _ in TILES["rows"]:
        rows, columns = m // bm, n // bn
        if fit == 1 and rows * columns == H200.sm.count:
            of_a, of_b = in_step_ab(place(alone(rows * columns), H200.sm, 1), columns)
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
        placed = place(alone(rows * columns), H200.sm, fit)
        alike = float(in_step_ab(placed, columns) @ widths) / sum(widths)
        drifted = alike * kept(placed, steps * placed.generations, H200.l2.drift_steps)
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


def drifting(mode: int, stores: int) -> list[tuple[float, float, float, Placement]]:
    """Of blocks that load tiles by TMA: what L2 reads of what SMs get, on the H200 and here in step; tiles a place of
    an SM, one after another; and where blocks run. `DRIFTING` says what a mode is."""
    found = []
    for (fit, bm, bn, _, _, rows, columns, _, blocks, how, stored), _, (arrive, asked, *_) in DRIFTING["rows"]:
        if (how, stored) != (mode, stores):
            continue
        high = 2 if mode else 1  # blocks of a cluster lie below each other
        grid = Clusters((high, 1, 1), (blocks or rows * columns, 1, 1), bool(mode))
        placed = place(grid, H200.sm, fit)
        cluster, rank = placed.first // high, placed.first % high
        places = np.stack([cluster // columns * high + rank, cluster % columns], axis=1)
        of_a, of_b = in_step(places, placed, H200.l2.merged_requests)
        merged = bm * of_a + bn * (0.5 if mode == 3 else of_b)  # multicast: each block asks for half of B
        found.append((asked / arrive, 1 - merged / (bm + bn), rows * columns / len(placed.first), placed))
    return found


@pytest.mark.parametrize("stores", [0, 1])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_first_tiles_merge_as_blocks_are_placed(mode: int, stores: int) -> None:
    """Where each block computes one tile, SMs are in step. That clusters go to GPCs in turn decides which SMs of a GPC
    read the same, and multicast requests join none."""
    rows = [row for row in drifting(mode, stores) if row[2] == 1]
    assert len(rows) == 4
    for measured, model, *_ in rows:
        assert model / measured == pytest.approx(1, abs=0.035 if mode else 0.085)


def parts(stores: int) -> list[tuple[float, float]]:
    """Tiles a place, and the part that merges, for blocks alone and in clusters that do not wait for each other; only
    where later tiles share as the first ones do."""
    rows = [*drifting(0, stores), *drifting(1, stores)]
    return [
        (tiles, (1 - measured) / (1 - model))
        for measured, model, tiles, placed in rows
        if tiles > 1.5 and len(placed.sm) == H200.sm.count
    ]


def test_tiles_stay_in_step_until_results_are_stored() -> None:
    """Blocks that stay take two, four or eight tiles. Without stores 0.86 and more of what could merge does, but of one
    shape of the grid, and of all but one kind less with stores: of later tiles 0.16 to 0.72, 0.37 in the mean. Kernels
    keep more of it (h200_tile_reads.json)."""
    without, stored = parts(0), parts(1)
    assert len(without) == len(stored) == 12
    assert sum(part > 0.85 for _, part in without) == 10
    assert sum(b < a for (_, a), (_, b) in zip(without, stored, strict=True)) == 11
    later = [(tiles * part - 1) / (tiles - 1) for tiles, part in stored]
    assert np.mean(later) == pytest.approx(0.365, abs=0.001)
    assert np.mean(later) < H200.tma.merged_later < max(later)


def test_tiles_with_stores() -> None:
    """What L2 reads, in the mean: if they stayed in step, it would be half as far off again."""
    rows = [*drifting(0, 1), *drifting(1, 1)]

    def error(later: float) -> float:
        off = [
            (1 - (1 - model) * kept_by_tiles(tiles, later, competing_blocks(placed))) / measured - 1
            for measured, model, tiles, placed in rows
        ]
        return float(np.abs(off).mean())

    assert error(H200.tma.merged_later) < 0.1
    assert error(1.0) > 1.3 * error(H200.tma.merged_later)
