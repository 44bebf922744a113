"""Which SM runs each block: by hand, and as an H200's scheduler was seen to do it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gemmsim_validate.records.case import load_cases
from trace_builder import alone

from gemmsim.gpu import load_gpu
from gemmsim.gpu.limits import clusters_at_once
from gemmsim.memory.grid.placement import place
from gemmsim.trace.launch_data.clusters import Clusters

H200 = load_gpu("h200").sm
PLACES = Path(__file__).parents[2] / "records" / "h200_cluster_places.json"
# %smid in the order of a pass: the early SMs, then GPC by GPC, as the records' probe saw it (the first GPC cut in two).
EARLY = [*range(124, 132)]
GPCS = (
    [0, 1, 16, 17, 32, 33, 48, 49],
    [2, 3, 18, 19, 34, 35, 50, 51, 64, 65, 78, 79, 92, 93, 106, 107],
    [4, 5, 20, 21, 36, 37, 52, 53, 66, 67, 80, 81, 94, 95, 108, 109],
    [6, 7, 22, 23, 38, 39, 54, 55, 68, 69, 82, 83, 96, 97, 110, 111],
    [8, 9, 24, 25, 40, 41, 56, 57, 70, 71, 84, 85, 98, 99, 112, 113],
    [10, 11, 26, 27, 42, 43, 58, 59, 72, 73, 86, 87, 100, 101, 114, 115],
    [12, 13, 28, 29, 44, 45, 60, 61, 74, 75, 88, 89, 102, 103, 116, 117, 120, 121],
    [14, 15, 30, 31, 46, 47, 62, 63, 76, 77, 90, 91, 104, 105, 118, 119, 122, 123],
)
SMID = [*EARLY, *(smid for gpc in GPCS for smid in gpc)]


def small(*gpcs: int, early: int = 0):  # type: ignore[no-untyped-def]
    return replace(H200, count=sum(gpcs), gpc_sms=gpcs, early_sms=early)


def test_gpc_by_gpc_and_pass_by_pass() -> None:
    """GPCs of 2 and 4 SMs, the first SM early: before all others, and at the end, as there are fewer than 5 turns."""
    placed = place(alone(12), small(2, 4, early=1), 2)
    assert placed.sm.tolist() == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0]
    assert placed.generation.tolist() == [0] * 12
    assert placed.gpc.tolist() == [0, 0, 1, 1, 1, 1]


def test_too_few_blocks_go_to_tpcs_in_turn() -> None:
    """TPCs are SMs (0 1), (2 3) (4 5) (6 7). Four blocks: one a TPC; the fifth goes to GPC 0 again."""
    sm = small(2, 6)
    assert place(alone(3), sm, 1).sm.tolist() == [0, 2, 4]
    assert place(alone(4), sm, 1).sm.tolist() == [0, 2, 4, 6]
    assert place(alone(5), sm, 1).sm.tolist() == [0, 1, 2, 4, 6]
    assert place(alone(6), sm, 1).sm.tolist() == [0, 1, 2, 3, 4, 6]
    assert place(alone(8), sm, 1).sm.tolist() == list(range(8))


def test_later_blocks_are_drawn_pass_by_pass() -> None:
    placed = place(alone(3 * 12), small(2, 4), 2)
    assert placed.generation.tolist() == [0] * 12 + [1] * 12 + [2] * 12
    for first in range(0, 36, 6):
        assert sorted(placed.sm[first : first + 6].tolist()) == list(range(6))
    assert placed.sm.tolist() == place(alone(3 * 12), small(2, 4), 2).sm.tolist()
    assert placed.group(4, 2).tolist() == [b for b in range(24, 36) if placed.sm[b] == 4]


def test_gpcs_that_are_not_known_or_do_not_add_up() -> None:
    unknown = replace(H200, count=5, gpc_sms=(0,), early_sms=0)
    assert place(alone(8), unknown, 2).sm.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert place(alone(3), unknown, 2).sm.tolist() == [0, 1, 2]
    more, fewer = (replace(H200, count=count) for count in (134, 20))
    assert place(alone(134), more, 1).gpc.max() == 8
    assert place(alone(20), fewer, 1).gpc.tolist() == [0] * 16 + [1] * 4


def clustered(grid: tuple[int, int, int], shape: tuple[int, int, int], resident: int, early: int = 2):  # type: ignore[no-untyped-def]
    """On GPCs of SMs 0 to 5, of which the first ones are early, and of 6 to 11."""
    return place(Clusters(shape, grid, True), small(6, 6, early=early), resident)


def test_clusters_go_to_gpcs_in_turn() -> None:
    """Clusters of two: one to the early TPC, then one a GPC. Where SMs hold two blocks, the pass comes twice."""
    a_pass = [0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11]
    assert clustered((12, 1, 1), (2, 1, 1), 1).sm.tolist() == a_pass
    assert clustered((24, 1, 1), (2, 1, 1), 2).sm.tolist() == a_pass * 2
    assert clustered((6, 1, 1), (2, 1, 1), 2).sm.tolist() == a_pass[:6]


def test_a_cluster_lies_in_one_gpc() -> None:
    """Clusters of four do not fit the early TPC. Of GPC 1, the second lies on two SMs that have one block of the first,
    where SMs hold two; the third on the two that have none of it, and on two that have it."""
    assert clustered((8, 1, 1), (4, 1, 1), 1).sm.tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    second_pass = [2, 3, 4, 5, 6, 7, 10, 11, 8, 9, 10, 11]
    assert clustered((20, 1, 1), (4, 1, 1), 2).sm.tolist() == [2, 3, 4, 5, 6, 7, 8, 9, *second_pass]


def test_ranks_of_a_cluster_along_another_axis() -> None:
    """2 x 2 blocks, clusters of two along y: blocks 0 and 2, and 1 and 3."""
    assert clustered((2, 2, 1), (1, 2, 1), 1, early=0).sm.tolist() == [0, 6, 1, 7]


def test_later_clusters_are_drawn() -> None:
    placed = clustered((36, 1, 1), (2, 1, 1), 1)
    assert placed.generation.tolist() == [0] * 12 + [1] * 12 + [2] * 12
    for first in range(0, 36, 2):
        assert placed.sm[first] % 2 == 0
        assert placed.sm[first + 1] == placed.sm[first] + 1
    for first in range(0, 36, 12):
        assert sorted(placed.sm[first : first + 12].tolist()) == list(range(12))


@pytest.mark.parametrize(("blocks", "resident"), [(256, 2), (256, 8), (384, 2), (1024, 8), (1024, 32), (128, 1)])
def test_as_an_h200_was_seen_to_place_them(blocks: int, resident: int) -> None:
    """Of launches of so many blocks in the records, those that began with GPC 0 saw just the SMs that are predicted,
    while the GPU filled."""
    filled = min(blocks, 132 * resident)
    seen = set()
    for case in load_cases():
        found = case.data.get("placement")
        grid = case.grid[0] * case.grid[1] * case.grid[2]
        if found and (grid, found["resident_blocks_per_sm"]) == (blocks, resident):
            early_first = found["smid"][0] == EARLY[0]
            smids = found["smid"] if early_first else [_swapped(smid) for smid in found["smid"]]
            seen.add(tuple(smids[:filled]))
    predicted = tuple(SMID[sm] for sm in place(alone(blocks), H200, resident).sm[:filled].tolist())
    began_with_gpc_0 = {smids for smids in seen if smids[8] == GPCS[0][0]}
    assert seen
    if began_with_gpc_0:
        assert predicted in began_with_gpc_0
    else:
        rotated = {_count_by_gpc(smids) for smids in seen}
        assert _count_by_gpc(predicted) in rotated


def _swapped(smid: int) -> int:
    """The two halves of the early SMs come in either order."""
    return {**{124 + i: 128 + i for i in range(4)}, **{128 + i: 124 + i for i in range(4)}}.get(smid, smid)


def _count_by_gpc(smids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(smid in gpc for smid in smids) for gpc in (EARLY, *GPCS))


CLUSTERS: list[list[Any]] = json.loads(PLACES.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("row", CLUSTERS, ids=lambda row: "x".join(map(str, row[:4])))
def test_clusters_as_an_h200_was_seen_to_place_them(row: list[Any]) -> None:
    """While the GPU fills, the clusters of each GPC are on the SMs that are predicted, one after another. Which GPC
    comes first in a turn differs from launch to launch, so that another may have one more where clusters run out, and
    so does the order of the early TPCs."""
    x, y, blocks, resident, smids = row
    placed = place(Clusters((blocks, 1, 1), (x, y, 1), True), H200, resident)
    number = int((placed.generation == 0).sum()) // blocks
    seen, expected = (
        _by_gpc(np.reshape(found, (-1, blocks))[:number].tolist()) for found in (smids, np.array(SMID)[placed.sm])
    )
    for here, there in zip(seen, expected, strict=True):
        shorter = min(len(here), len(there))
        assert here[:shorter] == there[:shorter]
    assert sorted(map(len, seen)) == sorted(map(len, expected))
    if clusters_at_once(resident, blocks, load_gpu("h200")) == number:
        assert seen == expected


def _by_gpc(clusters: list[list[int]]) -> list[list[list[int]]]:
    early, *others = ([cluster for cluster in clusters if cluster[0] in gpc] for gpc in (EARLY, *GPCS))
    return [sorted(early), *others]
