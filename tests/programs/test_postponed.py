"""Launches are executed for their results when something needs these, and not where nothing ever does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gemmsim.programs.allocations import Allocation
from gemmsim.programs.footprints import Footprint, Stores
from gemmsim.programs.postponed import Postponed, Waiting
from gemmsim.trace.types import Relation

PROGRAM = Path(__file__).with_name("postponed_program.py")
ALL, NONE = "all", "not executed"
EXPECTED = {
    "overwritten": [NONE, ALL],
    "overwritten_in_part": [ALL, ALL],
    "read_between": [ALL, ALL, NONE],
    "input_changed": [ALL],
    "input_set_by_a_kernel": [ALL, ALL],
    "input_freed": [ALL],
    "result_freed": [NONE, ALL],
    "in_place": [ALL],
    "leads_another": [ALL, ALL],
    "part_read": [ALL],
    "in_two_halves": [ALL],
    "last_block_stores_last": [ALL],
}


@pytest.fixture(scope="module")
def ran() -> dict[str, tuple[list[str], bool]]:
    pytest.importorskip("numba_cuda", reason="the compiler wheels are not installed")
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("case", EXPECTED)
def test_what_is_executed_and_that_results_are_right(ran: dict, case: str) -> None:
    results, right = ran[case]
    assert right and results == EXPECTED[case]


def stores_of(first: int, bytes_each: int, lanes: int, relation: Relation | None = None) -> Stores:
    """One store of `lanes` lanes that follow one another, from address `first` on."""
    offsets = np.arange(32)[None, :] * bytes_each
    mask = np.array([(1 << lanes) - 1], np.uint32)
    return Stores(np.array([[0, 0, first, 0, bytes_each]]), offsets, mask, relation)


def test_a_mask_has_the_bytes_of_each_lane_that_stores() -> None:
    stored = stores_of(1000, 2, 3).mask(998, 12)
    assert np.flatnonzero(stored).tolist() == [2, 3, 4, 5, 6, 7]
    assert np.flatnonzero(stores_of(1000, 4, 2).mask(1002, 3)).tolist() == [0, 1, 2]  # clipped at both ends


def test_a_mask_moves_with_the_blocks_that_are_like_the_leader() -> None:
    like, moved = np.array([0, 1, 0]), np.array([[0, 8, 16]])
    relation = Relation(like, np.zeros(1, np.int32), moved, np.zeros(1, np.int64), False)
    stored = stores_of(1000, 4, 1, relation).mask(1000, 24)
    assert np.flatnonzero(stored).tolist() == [0, 1, 2, 3, 16, 17, 18, 19]  # not block 1, which is like another one


class Machine:
    """Launches by hand, on three pieces of memory of 8 bytes each."""

    def __init__(self) -> None:
        self.memory = [Allocation(1000 * n, np.zeros(8, np.uint8), watched=True) for n in range(3)]
        self.postponed, self.executed = Postponed(), list[str]()

    def launch(self, name: str, reads: set[int], writes: set[int], whole: bool = True) -> Waiting:
        stores = stores_of(1000 * min(writes), 4, 2 if whole else 1) if len(writes) == 1 else None
        footprint = Footprint(frozenset(reads), frozenset(writes), stores)
        return Waiting(name, footprint, self.memory, lambda: self.executed.append(name))

    def wait(self, name: str, reads: set[int], writes: set[int], whole: bool = True) -> None:
        self.postponed.add(self.launch(name, reads, writes, whole))


def test_launches_before_the_one_that_is_needed_are_executed_in_order() -> None:
    machine = Machine()
    machine.wait("first", {0}, {1})
    machine.wait("second", {1}, {2})
    machine.wait("third", {0}, {1}, whole=False)
    machine.postponed.before_read({machine.memory[2]})
    assert (machine.executed, len(machine.postponed)) == (["first", "second"], 1)


def test_what_a_waiting_launch_reads_is_not_changed_before_it() -> None:
    machine = Machine()
    machine.wait("first", {0}, {1})
    machine.postponed.before_read({machine.memory[0]})
    assert machine.executed == []
    machine.postponed.before_write({machine.memory[0]})
    assert machine.executed == ["first"]


def test_a_launch_that_overwrites_all_saves_the_one_before() -> None:
    machine = Machine()
    machine.wait("first", {0}, {1})
    machine.postponed.before_launch(machine.launch("now", {0}, {1}))
    assert (machine.executed, len(machine.postponed)) == ([], 0)
    machine.wait("second", {0}, {1})
    machine.postponed.before_launch(machine.launch("now", {0}, {1}, whole=False))
    assert machine.executed == ["second"]
    machine.wait("third", {0}, {1})
    machine.postponed.before_launch(machine.launch("now", {1}, {1}))
    assert machine.executed == ["second", "third"]


def test_stores_that_are_known_roughly_overwrite_nothing() -> None:
    machine = Machine()
    machine.wait("first", {0}, {1})
    machine.wait("second", {0}, {1, 2})  # its stores are not known
    machine.postponed.before_read({machine.memory[1]})
    assert machine.executed == ["first", "second"]


def test_a_launch_is_dropped_once_all_that_it_stores_to_is_freed_and_nothing_reads_it() -> None:
    machine = Machine()
    machine.wait("first", {0}, {1})
    machine.wait("second", {1}, {2})
    machine.memory[1].freed = True
    machine.postponed.forget()
    assert len(machine.postponed) == 2
    machine.memory[2].freed = True
    machine.postponed.forget()
    assert len(machine.postponed) == 0 and machine.executed == []


def test_what_a_waiting_launch_reads_is_held() -> None:
    machine = Machine()
    held = object()
    machine.memory[0].hold = lambda: held
    one = machine.launch("first", {0}, {1})
    machine.postponed.add(one)
    assert one.held == [held]
