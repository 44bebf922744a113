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
    ("store", "stride", "bytes_each", "warps", "joined"),
    [
        (STORE, 64, 4, 1, True),
        (STORE, 128, 4, 1, False),
        (STORE, 32, 4, 3, True),
        (STORE, 32, 4, 4, False),
        (WIDE, 32, 8, 4, False),
        (HALF, 12, 2, 4, True),
        (HALF, 16, 2, 4, False),
        (STORE, 28, 4, 4, True),
    ],
)
def test_stores_are_joined_where_others_to_fewer_than_32_lines_lie_between(
    store: int, stride: int, bytes_each: int, warps: int, joined: bool
) -> None:
    """Lines of a store times warps, one a sub-partition; those of two bytes count twice."""
    pieces = [(store, piece(number, stride, bytes_each)) for number in range(2)]
    trace = warp_trace(4, {0: [pieces] * warps})
    cost = serve(PROGRAM, launch(threads=32 * warps), trace, GPU, 65536, 1).cost
    sectors = len({place >> 5 for place in piece(0, stride, bytes_each)})
    second = cost.l2_sectors.tolist()[1::2]
    assert (max(second) < sectors) == (min(second) < sectors) == joined


@pytest.mark.parametrize(("stride", "apart"), [(4, 0), (8, 0), (16, 8), (24, 36), (28, 63), (32, 100)])
def test_with_more_warps_a_share_is_sent_apart(stride: int, apart: int) -> None:
    """Of four times the lines less one by 28, to the power of 3."""
    pieces = [(STORE, piece(number, stride)) for number in range(2)]
    trace = warp_trace(4, {0: [pieces] * 1000})
    sent = serve(PROGRAM, launch(threads=1024), trace, GPU, 65536, 1).cost.l2_sectors.tolist()[1::2]
    most = max(sent)
    assert sum(one == most for one in sent) / 10 == pytest.approx(apart if stride > 4 else 100, abs=0.6)
