"""In which order blocks of groups are compared with others, and when they are compared again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gemmsim.trace.blocks import classes
from gemmsim.trace.differences.leader import BlockClass


def compared(monkeypatch: pytest.MonkeyPatch, places: int, alike: dict[int, list[int]]) -> list[tuple[int, list[int]]]:
    """Return which leaders were compared with which groups, until all of six groups are in classes.

    alike  for each place, the groups of the first class as far as its block can say
    """
    blocks, calls = np.arange(6 * places).reshape(6, places), []

    def relate(_: object, leader: int, others: np.ndarray, place: int | None) -> BlockClass:
        group, at = divmod(leader, places)
        groups = others // places
        calls.append((leader, groups.tolist()))
        members = others[[(g in alike[at]) == (group in alike[at]) for g in groups.tolist()]]
        nothing = np.zeros(1, np.int64)
        return BlockClass(leader, members, nothing, nothing, nothing, nothing, False)

    monkeypatch.setattr(classes, "relate", relate)
    executor = SimpleNamespace(cutting=SimpleNamespace(left_out_of=lambda _: 0))
    found = classes._classes(executor, blocks, 1)  # type: ignore[arg-type]
    assert found is not None and sorted(np.concatenate([c.members for c in found]).tolist()) == [*range(6 * places)]
    return calls


def test_a_place_is_compared_again_only_where_blocks_were_dropped_since(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place 0 drops group 5, and place 1 group 4: place 0 is compared again, and so is place 1, but not place 2."""
    every, four = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3]
    calls = compared(monkeypatch, 3, {0: [0, 1, 2, 3, 4], 1: [0, 1, 2, 3, 5], 2: every})
    assert calls[:5] == [(3, every), (4, [0, 1, 2, 3, 4]), (5, four), (3, four), (4, four)]
    assert [leader // 3 for leader, _ in calls[5:]] == [5, 5, 5, 5, 4, 4, 4]


def test_groups_of_one_block_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = compared(monkeypatch, 1, {0: [0, 1, 2]})
    assert calls == [(1, [0, 1, 2, 3, 4, 5]), (4, [3, 4, 5])]
