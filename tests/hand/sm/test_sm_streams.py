"""What single accesses of a stream cost, where only the beginning or parts of it are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.loops import Loop
from gemmsim.sm.streams import RecordCycles, RecordedStreams
from tests.helpers.sm_builder import EXIT, GPU, cost_of, ins, program, trace_of

EXECUTION = RecordCycles._fields.index("execution")


def test_executions_are_counted_for_each_warp_and_instruction_from_the_stream_s_beginning():
    code = program(ins("LDG", 1), ins("STG", 1), ins("FFMA", 1), EXIT)
    trace = trace_of(code, [[0, 1, 0, 0, 2, 1, 3], [1, 0, 1, 0, 3]], 2)
    streams = RecordedStreams(code, instruction_table(code, GPU), trace, cost_of(trace, RecordCycles(1, 1, 0, 0)))
    first, second = (stream.costs[:, EXECUTION].tolist() for stream in streams.cut([0, 1], {}))
    assert (first, second) == ([0, 0, 1, 2, 1], [0, 0, 1, 1])
    first, second = (
        stream.costs[:, EXECUTION].tolist() for stream in streams.cut([0, 1], {0: [(0, 1), (3, 6)], 1: [(2, 4)]})
    )
    assert (first, second) == ([0, 2, 1], [1, 1])


def test_beginning_of_a_stream_has_the_records_that_it_has_in_all_of_it():
    """The first load left no record, as no lane was active."""
    code = program(ins("LDG", 1), ins("LDS", 1), ins("LDG", 1), EXIT)
    trace = trace_of(code, [[0, 1, 2, 0, 1, 2, 3]], 1)
    trace = replace(
        trace, record_pc=trace.record_pc[1:], record_base=trace.record_base[1:], record_start=np.array([0, 5])
    )
    cost = cost_of(trace, RecordCycles(0, 0, 0, 0))
    cost.wavefronts[:] = range(1, 6)
    streams = RecordedStreams(code, instruction_table(code, GPU), trace, cost)
    whole = streams.cut([0], {})[0].costs[:, 0].tolist()
    assert whole == [0, 1, 2, 3, 4, 5]
    for stop in range(7):
        assert streams.cut([0], {0: [(0, stop)]})[0].costs[:, 0].tolist() == whole[:stop]


def test_loops_are_found_once_whatever_accesses_cost(monkeypatch):
    """Three instructions, five times, of which the first and the last time belong to no loop that is cut."""
    code = program(ins("LDG", 1), ins("FFMA", 1), ins("BRA", 1), EXIT)
    trace, loops = trace_of(code, [[0, 1, 2] * 6 + [3]], 1), {}
    table, costs = instruction_table(code, GPU), [cost_of(trace, RecordCycles(n, 1, 0, 0)) for n in (1, 2)]
    first = RecordedStreams(code, table, trace, costs[0], loops).loop(0)
    monkeypatch.setattr("gemmsim.sm.streams.find_loop", lambda pcs: pytest.fail("they are known"))
    assert RecordedStreams(code, table, trace, costs[1], loops).loop(0) == first == Loop(3, 3, 4) == loops[0]
