"""Which requests are the first of their block, and how many sectors are stored once: as by sets and dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from requests_builder import coalesced_of, requests_of

from gemmsim.memory.grid.sector_assignment import _COUNTED_BLOCKS, round_to_sectors, sectors_new_to_block, stored_once
from gemmsim.memory.grid.slots import empty_slots, slot_of, slots_for
from gemmsim.memory.requests.cache_operations import WRITE

OFFSETS = [[0], [0, 1, 2, 3], [1, 5, 6], [3]]
SHAPES = coalesced_of(OFFSETS)
OPERATIONS = np.array([2, 0, 5])  # instructions: `requests_of` lets 2 and 5 write, and 0 read
FAR = 1 << 41  # sectors from 0 to where arrays lie


@st.composite
def launches(draw: st.DrawFn):  # type: ignore[no-untyped-def]
    """Requests of up to seven blocks of two warps, at few places, so that they meet."""
    warps = 2 * draw(st.integers(1, 7))
    some = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=warps, max_size=12 * warps))
    base, shape = np.array(some, np.int64).T
    pc_of_shape = OPERATIONS[draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))]
    far = draw(st.sampled_from([0, FAR]))
    return requests_of(base + far, shape, np.zeros(len(base)), pc_of_shape, warps, 2)


@settings(max_examples=150)
@given(launches(), st.sampled_from([2, 4]))
def test_requests_that_are_the_first_of_their_block(requests, fetch: int) -> None:  # type: ignore[no-untyped-def]
    """A piece is new to a block where a warp first comes to it; warps that do so in the same turn both wait."""
    turns: dict[tuple[int, int], int] = {}
    keys, turn = [], []
    for warp in range(len(requests.start) - 1):
        for place, i in enumerate(range(requests.start[warp], requests.start[warp + 1])):
            piece = (int(requests.base_sector[i]) + OFFSETS[requests.shape[i]][0]) // fetch
            keys.append((warp // requests.warps_per_block, piece))
            turn.append(place)
            turns[keys[-1]] = min(turns.get(keys[-1], place), place)
    pieces = [
        {(int(b) + o) // fetch for o in OFFSETS[s]} for b, s in zip(requests.base_sector, requests.shape, strict=True)
    ]
    wanted = [fetch * len(p) * (turns[key] == t) for p, key, t in zip(pieces, keys, turn, strict=True)]
    asked = SHAPES.sectors[requests.shape]
    assert sectors_new_to_block(asked, requests, SHAPES, fetch).tolist() == wanted


@settings(max_examples=150)
@given(launches())
def test_sectors_that_several_store_to_are_written_once(requests) -> None:  # type: ignore[no-untyped-def]
    """Of the first blocks from the first one on that stores, the share that each instruction is the first to store."""
    stores = requests.operation == WRITE
    block = requests.of_blocks(np.arange((len(requests.start) - 1) // 2))
    first = block[stores][0] if stores.any() else 0
    seen: set[tuple[int, int]] = set()
    new, stored = np.zeros((2, 6))
    for i in np.flatnonzero(stores & (block >= first) & (block < first + _COUNTED_BLOCKS)):
        for offset in OFFSETS[requests.shape[i]]:
            sector = int(block[i]), int(requests.base_sector[i]) + offset
            stored[requests.pc[i]] += 1
            new[requests.pc[i]] += sector not in seen
            seen.add(sector)
    share = np.divide(new, stored, out=np.ones(6), where=stored > 0)
    amount = np.where(stores, SHAPES.sectors[requests.shape] * share[requests.pc], 0.0)
    assert stored_once(requests, SHAPES).tolist() == round_to_sectors(amount, requests.pc).tolist()


@pytest.mark.filterwarnings("ignore:overflow")  # which is meant, and only seen where the function is not compiled
@given(st.sets(st.integers(0, 1 << 42), min_size=1, max_size=40))
def test_each_number_has_a_slot_of_its_own(numbers: set[int]) -> None:
    slots = slots_for(len(numbers))
    empty_slots(slots)
    for number in numbers:
        slots[slot_of(slots, number)] = number
    assert sorted(slots[slots >= 0].tolist()) == sorted(numbers)
    assert all(slots[slot_of(slots, number)] == number for number in numbers)
    assert np.count_nonzero(slots == -1) >= len(numbers)  # so that the search for a number that is not there ends soon
