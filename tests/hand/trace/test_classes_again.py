"""Groups of blocks whose places say differently which groups are alike, and classes of fewer blocks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gemmsim.trace.blocks import classes
from gemmsim.trace.differences.leader import BlockClass


def class_of(leader: int, members: list[int]) -> BlockClass:
    """A class of blocks of which one instruction has two threads in the leader, and as many more as the block's number
    says in each block, while three records move by 0, by 128 bytes a block, and by as much in even blocks only."""
    blocks = np.array(members)
    moved = 128 * np.stack([0 * blocks, blocks, blocks * (blocks % 2 == 0)])
    threads = np.array([2]), np.array([0]), blocks[None, :]
    return BlockClass(leader, blocks, np.arange(3, dtype=np.int32), moved, *threads, np.array([1]), False)


def compared(
    monkeypatch: pytest.MonkeyPatch, places: int, alike: dict[int, list[int]]
) -> tuple[list[tuple[int, list[int]]], list[tuple[int, list[int]]]]:
    """Return which leaders were compared with which groups, until all of six groups are in classes, and the groups of
    each class with its leader.

    alike  for each place, the groups of the first class as far as its block can say
    """
    blocks, calls = np.arange(6 * places).reshape(6, places), []

    def relate(_: object, leader: int, others: np.ndarray, place: int | None) -> BlockClass:
        group, at = divmod(leader, places)
        groups = others // places
        calls.append((leader, groups.tolist()))
        members = others[[(g in alike[at]) == (group in alike[at]) for g in groups.tolist()]]
        return class_of(leader, members.tolist())

    monkeypatch.setattr(classes, "relate", relate)
    executor = SimpleNamespace(cutting=SimpleNamespace(left_out_of=lambda _: 0))
    found = classes._classes(executor, blocks, 1)  # type: ignore[arg-type]
    assert found is not None and sorted(np.concatenate([c.members for c in found]).tolist()) == [*range(6 * places)]
    return calls, [(one.leader, (one.members // places).tolist()) for one in found]


def test_what_a_place_drops_leaves_the_places_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place 0 drops group 5, and place 1 group 4: each place is compared once, and leads a class of the other four."""
    every, four = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3]
    calls, found = compared(monkeypatch, 3, {0: [0, 1, 2, 3, 4], 1: [0, 1, 2, 3, 5], 2: every})
    assert calls[:3] == [(3, every), (4, [0, 1, 2, 3, 4]), (5, four)]
    assert found[:3] == [(3, four), (4, four), (5, four)]
    assert [leader // 3 for leader, _ in calls[3:]] == [5, 5, 5, 4, 4, 4]


def test_groups_of_one_block_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, _ = compared(monkeypatch, 1, {0: [0, 1, 2]})
    assert calls == [(1, [0, 1, 2, 3, 4, 5]), (4, [3, 4, 5])]


def test_a_class_among_fewer_blocks() -> None:
    """Among even blocks both records move alike; then they have one mover, and threads are those of these blocks."""
    found = class_of(2, [0, 1, 2, 3, 4]).among(np.array([0, 2, 4]))
    assert found.members.tolist() == [0, 2, 4]
    assert found.record_mover.tolist() == [0, 1, 1]
    assert found.offset_bytes.tolist() == [[0, 0, 0], [0, 256, 512]]
    assert found.threads.tolist() == [2 * 3 + 0 + 2 + 4]


def test_movers_of_a_class_among_all_of_its_blocks_stay() -> None:
    whole = class_of(2, [0, 1, 2, 3, 4])
    found = whole.among(whole.members)
    assert (found.offset_bytes == whole.offset_bytes).all() and (found.record_mover == whole.record_mover).all()
    assert found.threads.tolist() == whole.threads.tolist() == [2 * 5 + 0 + 1 + 2 + 3 + 4]
