"""Idle gaps of a unit that serves one request at a time, by hand."""

from __future__ import annotations

import pytest
from sm_builder import GPU, idle_sm

from gemmsim.sm.units.server import RESERVE, book


@pytest.mark.parametrize("spare", [RESERVE, RESERVE - 1])
def test_a_list_of_gaps_asks_for_room_before_it_is_full(spare: int) -> None:
    """A request of 5 cycles every 10 leaves a gap of 5. Where fewer than RESERVE entries are spare all lists grow, and
    what is in them stays: the next request takes the first gap."""
    state = idle_sm(GPU)
    server = state.sm.memory.tma_loads
    room = server.room.entries
    for n in range(1, room - spare + 1):
        assert not server.room.short
        assert book(server, 0, 10.0 * n, 5.0) == 10 * n
    assert (server.gaps, server.room.short) == (room - spare, int(spare < RESERVE))
    state.grow()
    server = state.sm.memory.tma_loads
    assert (server.room.entries, server.room.short) == (room if spare == RESERVE else 4 * room, 0)
    assert book(server, 0, 12.0, 5.0) == 15
