"""Local memory by hand: where stacks lie, what L1 and L2 do with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import Accesses, Lanes, launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.caches.l1 import L2Requests
from gemmsim.memory.caches.stack_reuse import stack_traffic
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import Residents, residents_of_grid
from gemmsim.memory.grid.stacks import stack_places
from gemmsim.memory.requests.cache_operations import READ, WRITE
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.trace.words import LOCAL_BASE

GPU = load_gpu("h200")
GPU = replace(GPU, l1=replace(GPU.l1, spare_lines=0, lost_lines=(0, 0, 1)))  # the L1s here have few lines
STORE, LOAD, LAST, STORE4, LOAD4 = range(5)
STACK_BYTES = 32  # 8 words a thread, so that a warp's stacks take 8 lines
PROGRAM = replace(program("STL", "LDL", "LDL.LU", "STL.128", "LDL.128"), local_bytes=STACK_BYTES)


def word(number: int) -> Lanes:
    """The addresses of that word of the stacks of a warp's threads, as the executor records them."""
    return [LOCAL_BASE + 128 * number + 4 * lane for lane in range(32)]


def served(*blocks: list[Accesses], sms: int = 1, l1_lines: int = 4) -> Traffic:
    """Blocks 0, 1, ... of one warp, one on an SM at a time, on an L1 of one set."""
    gpu = replace(
        GPU, sm=replace(GPU.sm, count=sms, gpc_sms=()), l1=replace(GPU.l1, unified_bytes=128 * l1_lines, ways=l1_lines)
    )
    trace = warp_trace(5, dict(enumerate(blocks)))
    return serve(PROGRAM, launch((len(blocks), 1, 1)), trace, gpu, 128 * l1_lines, 1)


def hits(traffic: Traffic, op: str) -> float:
    return traffic.counters[f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}_lookup_hit.sum"]


def test_blocks_use_the_places_of_those_that_ended() -> None:
    """Two SMs that hold two blocks each, in two generations; the places of an SM lie side by side."""
    sm = np.array([0, 1, 0, 1, 1, 1, 0])
    generation = np.array([0, 0, 0, 0, 1, 1, 1])
    places = stack_places(Placement(sm, generation, np.zeros(2, np.int64), 2))
    assert places.tolist() == [0, 2, 1, 3, 2, 3, 0]


def test_a_last_use_ends_that_a_line_is_kept() -> None:
    """Word 0 is loaded twice, and its line kept; after its last use four others take the places of all four lines."""
    once = [(LOAD, word(number)) for number in (1, 2, 3, 4)]
    twice = [(LOAD, word(0)), (LOAD, word(0))]
    assert hits(served([[*twice, *once, (LAST, word(0))]]), "ld") == 4 + 4
    assert hits(served([[*twice, (LAST, word(0)), *once, (LAST, word(0))]]), "ld") == 4 + 4 + 0


def test_blocks_of_the_second_generation_wait_until_their_place_is_due() -> None:
    """Two places of one SM, three generations: block 3 begins half a block after block 2, and block 5 after block 4."""
    nothing = np.zeros(6, np.int64)
    found = residents_of_grid(np.arange(6), Placement(nothing, np.array([0, 0, 1, 1, 2, 2]), nothing[:1], 2))
    assert (found.first_place.tolist(), found.start.tolist()) == ([0, 2], [0, 3, 6])
    assert (found.block.tolist(), found.wait.tolist()) == ([0, 2, 4, 1, 3, 5], [0, 0, 0, 0, 0.5, 0])


@pytest.mark.parametrize("sms", [1, 2])
def test_a_later_block_of_an_sm_finds_its_lines_in_l1(sms: int) -> None:
    """Four blocks store a word. On each SM the first one misses, and those after it hit: the place is the same."""
    traffic = served(*[[[(STORE, word(0))]]] * 4, sms=sms)
    assert hits(traffic, "st") == 4 * (4 - sms)
    assert traffic.cost.l2_sectors.tolist() == [4, 4, 4, 4]  # stores go to L2 all the same


def test_stacks_take_the_room_of_resident_blocks_in_l2() -> None:
    """64 blocks of an SM store 8 lines each and load them, with an L2 of 16 lines and no L1: DRAM has no work. Those of
    64 SMs, all resident at once, are 512 lines, and nearly all come from DRAM."""
    small = replace(GPU, l2=replace(GPU.l2, size_bytes=16 * 128, ways=16, partitions=1, fetch_bytes=32))
    block = [[(STORE, word(n)) for n in range(8)] + [(LOAD, word(n)) for n in range(8)]]
    found = {}
    for sms in (1, 64):
        gpu = replace(small, sm=replace(GPU.sm, count=sms, gpc_sms=()))
        trace = warp_trace(5, dict.fromkeys(range(64), block))
        found[sms] = serve(PROGRAM, launch((64, 1, 1)), trace, gpu, 0, 1).counters
    assert found[1]["dram__sectors_read.sum"] == found[1]["dram__sectors_write.sum"] == 0
    assert found[64]["dram__sectors_read.sum"] == 64 * 8 * 4
    assert found[64]["dram__sectors_write.sum"] == 64 * 8 * 4


def test_words_of_a_wide_access_lie_in_lines_of_their_own() -> None:
    """Four words a thread: 4 lines of 4 sectors, all of them whole, so that loads find what was stored."""
    traffic = served([[(STORE4, word(0)), (LOAD4, word(0)), (LOAD, word(3))]])
    assert traffic.counters["l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"] == 16
    assert traffic.counters["l1tex__t_set_accesses_pipe_lsu_mem_local_op_st.sum"] == 4
    assert hits(traffic, "ld") == 16 + 4
    assert traffic.cost.l2_sectors.tolist() == [16, 0, 0]


@pytest.mark.parametrize(("load", "there"), [(LOAD, [0, 2, 3]), (LAST, [1, 2, 3])])
def test_a_last_use_does_not_make_a_line_younger(load: int, there: list[int]) -> None:
    """Four words fill L1, word 0 is loaded, word 4 stored. An ordinary load leaves word 1 as the oldest line."""
    warp = [(STORE, word(n)) for n in range(4)] + [(load, word(0)), (STORE, word(4))]
    for number in range(4):
        traffic = served([[*warp, (LOAD, word(number))]])
        assert (traffic.cost.l2_sectors[-1] == 0) == (number in there), number


def test_a_last_use_finds_what_is_there() -> None:
    """Of what was stored four sectors hit, and L2 is asked for none; of what was not, for four."""
    traffic = served([[(STORE, word(0)), (LAST, word(0)), (LAST, word(1))]])
    assert hits(traffic, "ld") == 4
    assert traffic.cost.l2_sectors.tolist() == [4, 0, 4]


def test_a_last_use_brings_no_line() -> None:
    """Words 0 to 3 stay while word 4 is loaded for the last time, again and again."""
    warp = [(STORE, word(n)) for n in range(4)] + [(LAST, word(4))] * 2 + [(LOAD, word(n)) for n in range(4)]
    traffic = served([warp])
    assert traffic.cost.l2_sectors.tolist() == [4, 4, 4, 4, 4, 4, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("lines", "misses", "written"), [(64, 0, 0.0), (65, 65, 2 * 65 - 64), (200, 200, 2 * 200 - 64)]
)
def test_a_block_has_its_share_of_l2(lines: int, misses: int, written: float) -> None:
    """A group of one block stores its lines and then loads and stores each. It has an eighth of 512 lines. That is a
    set of 64 ways, and less than a set no share has."""
    l2 = replace(GPU.l2, size_bytes=512 * 128, ways=64, partitions=1, fetch_bytes=32, dirty_share=1.0)
    first = np.arange(lines)
    line = np.concatenate([first, np.repeat(first, 2)])
    operation = np.concatenate([np.full(lines, WRITE), np.tile([READ, WRITE], lines)]).astype(np.uint8)
    asked = L2Requests(
        line, np.full(3 * lines, 15, np.uint8), operation, np.arange(3 * lines), np.array([0, 3 * lines])
    )
    one = np.ones(1, np.int64)
    places = np.array([0, 1])
    group = Residents(0 * one, places, places, 0 * one, 0 * one, one, np.zeros(1), np.zeros((1, 1), np.int64))
    made = np.ones(3 * lines, np.int64)
    found = stack_traffic(asked, made, group, l2, 8)
    assert found.missed.sum() == 4 * misses
    assert found.written_share == pytest.approx(written / (2 * lines))
    half = stack_traffic(asked, made, group, l2, 4)
    assert half.missed.sum() == (4 * misses if lines > 128 else 0)
    assert stack_traffic(asked, made, group, l2, 512).missed.tolist() == found.missed.tolist()
