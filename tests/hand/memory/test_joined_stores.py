"""Stores of a warp to the same lines one after another, by hand: what L1 sends to L2 together."""

from __future__ import annotations

import pytest
from trace_builder import Accesses, Lanes, launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic

GPU = load_gpu("h200")
LOAD, STORE, WIDE, HALF = range(4)
PROGRAM = program("LDG.E", "STG.E", "STG.E.64", "STG.E.U16")


def served(accesses: Accesses) -> Traffic:
    return serve(PROGRAM, launch(), warp_trace(4, {0: [accesses]}), GPU, 65536, 1)


def piece(number: int, stride: int = 16, bytes_each: int = 4) -> Lanes:
    """The piece of each lane with that number, of lanes `stride` bytes apart."""
    return [lane * stride + number * bytes_each for lane in range(32)]


def test_four_pieces_of_sixteen_bytes_are_sent_once() -> None:
    """512 bytes are 16 sectors in four lines, all of them whole in the end: four requests to L2."""
    traffic = served([(STORE, piece(number)) for number in range(4)])
    cost = traffic.cost
    assert traffic.counters["lts__t_requests_srcunit_tex.sum"] == 4
    assert cost.l2_sectors.tolist() == [16, 0, 0, 0]
    assert cost.partial_lines.tolist() == [0, 0, 0, 0]


def test_three_of_them_leave_sectors_written_in_part() -> None:
    cost = served([(STORE, piece(number)) for number in range(3)]).cost
    assert cost.l2_sectors.tolist() == [16, 0, 0]
    assert cost.partial_lines.tolist() == [4, 0, 0]


def test_what_is_between_them_does_not_matter_unless_it_is_a_store() -> None:
    """One to another line ends what is sent together."""
    other: Lanes = [4096 + place for place in piece(1)]
    assert served([(STORE, piece(0)), (LOAD, other), (STORE, piece(1))]).cost.l2_sectors.tolist() == [16, 16, 0]
    assert served([(STORE, piece(0)), (STORE, other), (STORE, piece(1))]).cost.l2_sectors.tolist() == [16, 16, 16]


def test_what_is_written_again_is_sent_again() -> None:
    """The third writes what the first has written, and the fourth goes with it."""
    cost = served([(STORE, piece(number)) for number in (0, 1, 0, 1)]).cost
    assert cost.l2_sectors.tolist() == [16, 0, 16, 0]
    assert cost.partial_lines.tolist() == [4, 0, 4, 0]


@pytest.mark.parametrize(
    ("store", "stride", "bytes_each", "sectors"), [(STORE, 32, 4, 32), (WIDE, 32, 8, 32), (HALF, 4, 2, 4)]
)
def test_stores_to_eight_lines_and_of_two_bytes_are_sent_apart(
    store: int, stride: int, bytes_each: int, sectors: int
) -> None:
    cost = served([(store, piece(number, stride, bytes_each)) for number in range(2)]).cost
    assert cost.l2_sectors.tolist() == [sectors, sectors]


def test_no_more_than_eight_are_sent_together() -> None:
    """Ten stores of four bytes to two sectors in turn: the last two would find their sectors among those of the first
    eight."""
    accesses: Accesses = [(STORE, [number % 2 * 32 + number // 2 * 4] * 32) for number in range(10)]
    assert served(accesses).cost.l2_sectors.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]
