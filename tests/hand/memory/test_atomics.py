"""Atomic operations: the packets of lanes that want the same words, and what L2's slices do, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from trace_builder import Accesses, Lanes, launch, program, warp_trace

from gemmsim.gpu import load_gpu
from gemmsim.memory.caches.slices import atomic_us, one_of, part, steps
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.requests.access import access_of
from gemmsim.memory.requests.atomics import packets_of
from gemmsim.memory.requests.banks import held_longer
from gemmsim.memory.requests.cache_operations import ATOMIC
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.support.provenance import Provenance
from gemmsim.trace.types import Relation

L2 = replace(
    load_gpu("h200").l2,
    slices=4,
    partitions=1,
    atomic_sector_us=1.0,
    atomic_again_us=1.5,
    atomic_float_again_us=5.0,
    atomics_in_step=1000,
)
ONE = np.zeros(32, np.int64)
LANE = np.arange(32)
WORD, KIB = 4, 1024
INTEGER, FLOAT = "RED.E.ADD", "RED.E.ADD.F32"


@pytest.mark.parametrize(
    ("words", "packets", "sectors"),
    [
        (ONE, 32, 32),  # a lane each
        (LANE % 2, 16, 16),
        (LANE % 16, 2, 4),  # two packets of two sectors
        (LANE, 1, 4),  # a line
        (LANE * 8, 8, 32),  # eight lines of four sectors, a lane each
        (LANE * 32, 32, 32),
        (np.where(LANE == 31, 0, LANE), 2, 5),  # the last lane wants the first one's word: a packet of one sector more
    ],
)
def test_packets(words: np.ndarray, packets: int, sectors: int) -> None:
    """`h200_atomics.json` has all but the last as counted."""
    found = packets_of(words[None] * WORD, np.ones((1, 32), bool), np.array([True]))
    assert (found.packets.sum(), found.sectors.sum()) == (packets, sectors)


def test_shapes_that_are_no_atomics_have_no_packets() -> None:
    found = packets_of(np.stack([ONE, ONE]), np.ones((2, 32), bool), np.array([False, True]))
    assert found.start.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("words", "longer", "compare_and_swap"),
    [(LANE, 0, 1), (ONE, 31, 63), (LANE // 4, 3, 7), (LANE * 2, 0, 2), (LANE * 32, 0, 32)],
)
def test_lanes_of_shared_atomics_share_no_word(words: np.ndarray, longer: int, compare_and_swap: int) -> None:
    """32 lanes on a word are one wavefront as it is counted, and take 32 cycles; compare and swap takes two each."""
    lanes = words[None] * WORD, np.ones((1, 32), bool)
    for mnemonic, expected in (("ATOMS.ADD", longer), ("ATOMS.CAS", compare_and_swap)):
        access = access_of(program(mnemonic).instructions[0])
        assert access is not None
        assert held_longer(*lanes, access).tolist() == [expected]


def atomics(mnemonic: str, *words: Sequence[int], l2: object = L2) -> Traffic:
    """A block of one warp that executes an atomic on each row of words, of the lanes 0, 1, ..."""
    lanes: list[Lanes] = [[WORD * word for word in row] + [None] * (32 - len(row)) for row in words]
    block: list[Accesses] = [[(0, addresses) for addresses in lanes]]
    trace = warp_trace(1, {0: block})
    return serve(program(mnemonic), launch(), trace, replace(load_gpu("h200"), l2=l2), 65536, 1)


@pytest.mark.parametrize(
    ("mnemonic", "words", "us"),
    [
        (INTEGER, [[0]] * 10, 10 * 1.5),  # one behind the other
        (FLOAT, [[0]] * 10, 10 * 5.0),
        (INTEGER, [[0, 0, 0, 0]] * 10, 40 * 1.5),  # four packets each
        (FLOAT, [list(range(32))] * 10, 10 * 5.0),  # four sectors take 4.0, and wait for the last such line for 5.0
        (INTEGER, [list(range(32))] * 10, 10 * 4.0),
        (INTEGER, [[0], [KIB // WORD]] * 10, 10 * 1.5),  # in two slices
        (INTEGER, [[0], [256 // WORD]] * 10, 10 * 1.5),
        # two sectors of a slice: every second one follows one of the same
        (INTEGER, [[0], [8]] * 10, 20 * (1.0 + 0.5 * 0.5)),
        (FLOAT, [[0], [512 // WORD]] * 10, 20 * (1.0 + 0.5 * 4.0)),
        # five pieces of 256 bytes in four slices: the first and the last share one
        (INTEGER, [[0], [64], [256], [320], [512]] * 10, 20 * (1.0 + 0.5 * 0.5)),
    ],
)
def test_the_busiest_slice(mnemonic: str, words: list[list[int]], us: float) -> None:
    assert atomics(mnemonic, *words).cost.atomic_us.sum() == pytest.approx(us)


def test_packets_from_the_other_partition_take_half_a_turn_more() -> None:
    """Ten on one word: 15 us, and 10 us shared out among four slices, half of which pass through another one."""
    two = replace(L2, partitions=2)
    assert atomics(INTEGER, *[[0]] * 10, l2=two).cost.atomic_us.sum() == pytest.approx(15 + 0.5 * 10 / 4)


def test_counters_of_lanes_that_want_the_same_word() -> None:
    """32 lanes on a word: 32 packets of a sector each, of which DRAM reads one (and the one beside it)."""
    found = atomics(INTEGER, [0] * 32).counters
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"] == 32
    assert found["lts__t_sectors_srcunit_tex.sum"] == found["lts__t_requests_srcunit_tex.sum"] == 32
    assert found["l1tex__data_pipe_lsu_wavefronts.sum"] == 32
    assert found["lts__t_sectors_srcunit_tex_lookup_miss.sum"] <= 2


@pytest.mark.parametrize(("words", "how"), [(list(range(32)), Provenance.EXACT), ([0, 0], Provenance.MODELLED)])
def test_sectors_are_not_called_exact_where_lanes_want_the_same_word(words: list[int], how: Provenance) -> None:
    found = atomics(INTEGER, words).provenance
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"] == how
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == Provenance.EXACT


@pytest.mark.parametrize("columns", [1, 2, 7, 64, 1000, 4096])
def test_blocks_that_stand_for_others_are_of_all_columns_alike(columns: int) -> None:
    """Of 2^20 blocks one of eight, not those of every eighth column alone."""
    found = one_of(8, 1 << 20)
    assert len(found) == pytest.approx(1 << 17, rel=0.001) and found[0] >= 0 and found[-1] < 1 << 20
    share = np.bincount(found % columns, minlength=columns) * columns / len(found)
    assert share == pytest.approx(1, abs=0.15)
    assert one_of(1, 5).tolist() == [0, 1, 2, 3, 4]


def test_parts_become_wider() -> None:
    """Of 8, 24, 40 atomics: so the distance between warps grows with the square root of their number."""
    found = part(np.array([0, 7, 8, 31, 32, 71, 72, 127]), replace(L2, atomics_in_step=8))
    assert found.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


# Pieces of 256 bytes, one after another: two slices have the first four, the other two the last four.
SWEEP = [[64 * piece] for piece in range(8)]


@pytest.mark.parametrize(
    ("in_step", "words", "us"),
    [
        # each slice has two sectors in turn: 2 us, and half of them 0.5 us for one of the same
        (1000, SWEEP, 2.5),
        # parts of two, six, ten. A piece for each of two slices; then two of these for one slice that has no others
        (2, SWEEP, 1.5 + 2.5),
        # one after the other, all on one word: no part can be quicker than another
        (2, [[0]] * 8, 8 * 1.5),
    ],
)
def test_warps_in_step_keep_few_slices_busy(in_step: float, words: list[list[int]], us: float) -> None:
    l2 = replace(L2, atomics_in_step=in_step)
    assert atomics(INTEGER, *words, l2=l2).cost.atomic_us.sum() == pytest.approx(us)


def test_blocks_that_come_later_are_further_apart() -> None:
    """Two blocks at the only place there is: the second one's eight atomics are all of the third part."""
    one_sm = load_gpu("h200")
    one_sm = replace(one_sm, sm=replace(one_sm.sm, count=1, gpc_sms=()), l2=replace(L2, atomics_in_step=2))
    block: list[Accesses] = [[(0, [WORD * word for word in row] + [None] * 31) for row in SWEEP]]
    found = serve(program(INTEGER), launch((2, 1, 1)), warp_trace(1, {0: block, 1: block}), one_sm, 65536, 1)
    assert found.cost.atomic_us.sum() == pytest.approx(1.5 + 2.5 + 2.5)


def test_steps_of_loops_that_are_not_executed_in_full() -> None:
    """A warp that executes one atomic, a loop of two that goes round three times, and another one."""
    none = np.zeros(4, np.int64)
    requests = L1Requests(
        *[none] * 8, start=np.array([0, 4, 4]), warps_per_block=1, times=np.array([1, 3, 3, 1]), step=none
    )
    assert steps(requests, np.arange(4)).tolist() == [[0, 1, 2, 7], [1, 2, 2, 1], [8, 8, 8, 8]]


def test_steps_of_a_loop_behind_one_that_goes_round_more_often() -> None:
    """Two loops of two atomics, which go round three times and twice, and another atomic: ten and one."""
    none = np.zeros(5, np.int64)
    requests = L1Requests(
        *[none] * 8, start=np.array([0, 5]), warps_per_block=1, times=np.array([3, 3, 2, 2, 1]), step=none
    )
    assert steps(requests, np.arange(5)).tolist() == [[0, 1, 6, 7, 10], [2, 2, 2, 2, 1], [11] * 5]


def requests_of(sectors: np.ndarray, start: list[int], times: np.ndarray, step: np.ndarray) -> L1Requests:
    """Atomics of one lane, in blocks of a warp that begin at `start`."""
    none = np.zeros(len(sectors), np.int64)
    return L1Requests(
        none,
        sectors,
        none.astype(np.int32),
        np.full(len(sectors), ATOMIC, np.uint8),
        none.astype(np.int32),
        none > 0,
        none > 0,
        none.astype(np.int32),
        start=np.array(start),
        warps_per_block=1,
        times=times,
        step=step,
    )


def us_of_each(requests: L1Requests, weight: np.ndarray, relation: Relation | None, blocks: int) -> np.ndarray:
    access = access_of(program(INTEGER).instructions[0])
    assert access is not None
    packets = packets_of(np.zeros((1, 32), np.int64), (LANE == 0)[None], np.array([True]))
    l2 = replace(L2, atomics_in_step=2)
    return atomic_us(requests, packets, {0: access}, weight, relation, np.zeros(blocks, np.int64), l2)


def us_of(sectors: np.ndarray, times: np.ndarray, step: np.ndarray) -> float:
    """What a warp takes that executes atomics of one lane, each `times` times, in a loop that they share."""
    requests = requests_of(sectors, [0, len(sectors)], times, step)
    return float(us_of_each(requests, times.astype(float), None, 1) @ times)


@pytest.mark.parametrize("more", [1, 2, 3])
def test_executed_blocks_without_atomics_add_nothing(more: int) -> None:
    """Of a grid as many blocks are like the first one executed as others are each like one that has no atomics."""
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    found = []
    for like, start in (([0] * more, [0, 1]), ([*range(more + 1), *[0] * (more - 1)], [0, 1, *[1] * more])):
        movers = np.zeros((1, len(like)), np.int64)
        relation = Relation(np.array(like), none.astype(np.int32), movers, none, False)
        requests = requests_of(np.array([1 << 20]), start, one, none)
        found.append(us_of_each(requests, np.array([float(more)]), relation, len(like)).tolist())
    assert found[0] == found[1] and found[0][0] > 0


@pytest.mark.parametrize("seed", range(8))
def test_iterations_that_are_counted_take_as_long_as_those_that_are_executed(seed: int) -> None:
    """A loop of two to four atomics, each of which moves on by itself, written out and not."""
    random = np.random.default_rng(seed)
    length, times = int(random.integers(2, 5)), int(random.integers(5, 20))
    first, step = 8 * random.integers(0, 64, length), 8 * random.integers(0, 4, length)
    executed = (first + step * np.arange(times)[:, None]).ravel()
    ones = np.ones(len(executed), np.int64)
    counted = us_of(first, np.full(length, times), step)
    assert counted == pytest.approx(us_of(executed, ones, ones))
