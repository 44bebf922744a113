"""Generic accesses are counted in the space that they reach: requests, sectors and wavefronts worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.requests.generic import order_of, split_by_space
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.streams import RecordedStreams
from gemmsim.trace.types import WarpTrace
from gemmsim.trace.words import RANK_SHIFT, REMOTE_BASE

GPU = load_gpu("h200")
GLOBAL, SHARED, LOCAL = 0x7F00_0000_0000, 0x400, 0x7E00_0000_0000
LD, LDG, LDS, ST = range(4)
CODE = program("LD.E", "LDG.E", "LDS", "ST.E")
ROW = [4 * lane for lane in range(32)]


def at(base: int, lanes: list[int] | None = None, stride: int = 4) -> list[int | None]:
    """Addresses of the given lanes (all of them where None), `stride` bytes apart."""
    chosen = range(32) if lanes is None else lanes
    return [base + stride * lane if lane in chosen else None for lane in range(32)]


def served(*accesses: tuple[int, list[int | None]]) -> Traffic:
    return serve(CODE, launch(), warp_trace(4, {0: [accesses]}), GPU, 64 << 10, 1)


def test_a_load_from_shared_memory_is_a_shared_request() -> None:
    generic = served((LD, at(SHARED, stride=8)))
    plain = served((LDS, at(SHARED, stride=8)))
    same = [name for name in plain.counters if "inst_executed_op" not in name]
    assert {name: generic.counters[name] for name in same} == {name: plain.counters[name] for name in same}
    assert generic.counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 2  # two words of each bank
    assert generic.counters["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 0
    (row,) = generic.instructions
    assert (row.index, row.space, row.requests, row.sectors, row.conflicts) == (LD, "shared", 1, 0, 1)
    assert generic.cost.tag_cycles.tolist() == [0]


def test_a_load_from_global_memory_is_what_ldg_is() -> None:
    generic, plain = served((LD, at(GLOBAL))), served((LDG, at(GLOBAL)))
    same = [name for name in plain.counters if "inst_executed_op" not in name]
    assert {name: generic.counters[name] for name in same} == {name: plain.counters[name] for name in same}


def test_instructions_are_counted_by_their_opcode() -> None:
    counters = served(
        (LD, at(SHARED)), (LD, at(GLOBAL)), (LDG, at(GLOBAL)), (LDS, at(SHARED)), (ST, at(GLOBAL))
    ).counters
    counted = {name: counters[f"smsp__inst_executed_op_{name}.sum"]
               for name in ("generic_ld", "generic_st", "global_ld", "global_st", "shared_ld")}  # fmt: skip
    assert counted == {"generic_ld": 2, "generic_st": 1, "global_ld": 1, "global_st": 0, "shared_ld": 1}


def test_one_instruction_in_several_spaces_has_a_row_for_each() -> None:
    traffic = served((LD, at(GLOBAL)), (LD, at(SHARED)), (LD, at(SHARED)), (LD, at(LOCAL)))
    rows = {row.space: row for row in traffic.instructions}
    assert {space: (row.index, row.requests, row.sectors) for space, row in rows.items()} == {
        "global": (LD, 1, 4),
        "shared": (LD, 2, 0),
        "local": (LD, 1, 4),
    }
    assert traffic.counters["smsp__inst_executed.sum"] == 4
    assert traffic.counters["l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum"] == 1


def split_lanes() -> WarpTrace:
    """A warp executes LD twice: its even lanes read global memory and its odd ones shared memory."""
    even, odd = list(range(0, 32, 2)), list(range(1, 32, 2))
    records = [(LD, at(GLOBAL, even)), (LD, at(SHARED, odd))] * 2
    trace = warp_trace(4, {0: [[*records, (LDS, at(SHARED))]]})
    executed = np.array([[2, 0, 1, 0]])
    return replace(trace, executed=executed, pc_start=np.array([0, 3]), pc=np.array([LD, LD, LDS], np.int32))


def test_lanes_of_one_access_in_two_spaces() -> None:
    trace = split_lanes()
    traffic = serve(CODE, launch(), trace, GPU, 64 << 10, 1)
    assert sorted((row.space, row.requests) for row in traffic.instructions) == [
        ("global", 2), ("shared", 1), ("shared", 2),
    ]  # fmt: skip
    assert traffic.counters["smsp__inst_executed_op_generic_ld.sum"] == 2
    # The SM's model sees two executions of LD: each takes the wavefronts of both records, and the tags of the first.
    table = instruction_table(CODE, GPU)
    (stream,) = RecordedStreams(CODE, table, trace, traffic.cost).cut([0], {})
    assert stream.costs[:, :2].tolist() == [[2, 1], [2, 1], [1, 0]]


@pytest.mark.parametrize("spaces", [(SHARED,), (GLOBAL, SHARED)])
def test_nothing_is_split_where_each_number_has_one_space(spaces: tuple[int, ...]) -> None:
    accesses = [(LD if base == SHARED else LDG, at(base)) for base in spaces]
    trace = warp_trace(4, {0: [accesses]})
    split = split_by_space(CODE, trace)
    assert split.trace is trace
    assert split.accesses[LD].space == "shared"


def test_numbers_behind_the_program_stand_for_its_instructions() -> None:
    trace = warp_trace(4, {0: [[(LD, at(GLOBAL)), (ST, at(SHARED)), (LD, at(SHARED)), (ST, at(LOCAL))]]})
    split = split_by_space(CODE, trace)
    assert split.trace.record_pc.tolist() == [LD, ST, 4, 5]
    assert split.instruction.tolist() == [0, 1, 2, 3, LD, ST]
    assert {number: split.accesses[number].space for number in (LD, ST, 4, 5)} == {
        LD: "global", ST: "shared", 4: "shared", 5: "local",
    }  # fmt: skip
    assert split.trace.executed.tolist() == [[2, 0, 0, 2, 1, 1]]


def test_the_order_of_records_of_one_execution() -> None:
    """Global memory, the block's own shared memory, that of each block of the cluster by its rank, local memory."""
    ranks = [REMOTE_BASE + (rank << RANK_SHIFT) + SHARED for rank in (0, 1, 2, 3, 15)]
    assert order_of(np.array([GLOBAL, SHARED, *ranks, LOCAL], np.uint64)).tolist() == [0, 1, 2, 3, 4, 5, 17, 1 << 32]
