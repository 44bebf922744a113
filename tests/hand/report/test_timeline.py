"""Timelines: the recorder against the model's own sums, the pictures of one made by hand against what it says."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from sm_builder import EXIT, GPU, cost_of, ins, program, time_of, trace_of
from timeline_factory import FIRST, SECOND, stay, timeline_report

from gemmsim.report.timeline import page, perfetto, text
from gemmsim.report.timeline.state_letters import LETTERS, STATES
from gemmsim.report.timeline.types import Window, fitting, per_column, within
from gemmsim.sm.observer import LEVELS
from gemmsim.sm.ring import Ring
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.timeline import Extent, Timeline, record
from gemmsim.sm.types import STALL_REASONS
from gemmsim.sm.units.instruction import Reason
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch

CODE = program(
    ins("LDG.E", 2, write=0, read=3), ins("LDS.128", 1, write=1), ins("IMAD", 2, wait=1), ins("FFMA", 4, wait=1),
    ins("BAR.SYNC", 5), ins("STS", 1, read=4), ins("BRA", 5), ins("STG.E", 1, wait=16), EXIT,
)  # fmt: skip
LOOPS = [*range(7)] * 6 + [7, 8]
COST = RecordCycles(3, 2, 4, 2)


def recorded(warps=6, grid=3 * GPU.sm.count, resident=2, blocks=None, budget=10_000) -> Timeline:
    trace = trace_of(CODE, [LOOPS] * warps, warps)
    launch = Launch((grid, 1, 1), (32 * warps, 1, 1), ())
    clock = GPU.clock.sm_load_hz
    return record(CODE, launch, trace, cost_of(trace, COST), GPU, clock, resident, Extent(blocks, budget))


def held(timeline: Timeline) -> np.ndarray:
    """float64 [instructions, reasons]: cycles of all states."""
    total = np.zeros((len(CODE.instructions), len(STALL_REASONS)))
    for warp in timeline.warps:
        for begin, end, reason, instruction in warp.states.tolist():
            total[instruction, reason] += end - begin
    return total


def test_states_of_a_timeline_sum_to_what_the_timing_attributes():
    """All three blocks of the busiest SM: the same simulation as that behind `analyze`, and by its own sums."""
    timeline = recorded(blocks=3)
    timing = time_of(CODE, [LOOPS] * 6, 6, 3 * GPU.sm.count, 2, COST)
    assert timeline.cycles == timing.cycles
    assert held(timeline).tolist() == timing.stall_samples.tolist()


def test_states_tile_each_stay_and_slots_are_reused():
    timeline = recorded(blocks=3)
    assert (timeline.blocks, timeline.resident, len(timeline.warps)) == (3, 2, 18)
    free: dict[int, int] = {}
    for warp in timeline.warps:
        states = warp.states
        assert states[0, 0] == warp.start and states[-1, 1] == warp.end
        assert (states[1:, 0] == states[:-1, 1]).all() and (states[:, 1] > states[:, 0]).all()
        issued = states[states[:, 2] == Reason["SELECTED"]]
        assert issued[:, 3].tolist() == LOOPS and (issued[:, 1] - issued[:, 0] == 1).all()
        assert warp.sub_partition == warp.slot % 4 and warp.start >= free.get(warp.slot, 0)
        free[warp.slot] = warp.end
    assert {warp.block for warp in timeline.warps} == {0, 1, 2} and len(free) == 12


def test_memory_instructions_are_under_way_from_their_issue():
    warp = recorded().warps[0]
    begins = warp.states[(warp.states[:, 2] == Reason["SELECTED"])]
    memory = [pc for pc in LOOPS if CODE.instructions[pc].opcode in ("LDG", "LDS", "STS", "STG")]
    assert warp.memory[:, 2].tolist() == memory
    assert warp.memory[:, 0].tolist() == [b for b, _, _, pc in begins.tolist() if pc in memory]
    assert (warp.memory[:, 1] > warp.memory[:, 0]).all() and set(warp.memory[:, 3].tolist()) == {LEVELS.index("DRAM")}


def test_beyond_the_budget_each_warp_is_cut_alike():
    timeline = recorded(budget=6 * 2 * 11)  # of 44 instructions a warp, two blocks at once
    assert timeline.fraction == 0.25 and timeline.blocks == 2
    counts = {int((warp.states[:, 2] == Reason["SELECTED"]).sum()) for warp in timeline.warps}
    assert counts == {11}


def test_more_blocks_than_the_sm_gets_are_refused():
    with pytest.raises(GemmsimError, match=r"^4 blocks cannot be shown: the busiest SM of .* runs 3"):
        recorded(blocks=4)
    with pytest.raises(GemmsimError, match=r"^--blocks 0 must be at least 1$"):
        recorded(blocks=0)


def test_every_stall_reason_has_a_letter_and_a_colour_of_its_own():
    assert set(STATES) == set(STALL_REASONS)
    assert len(set(LETTERS)) == len({colour for _, colour in STATES.values()}) == len(STALL_REASONS)
    assert all(len(letter) == 1 and letter.isascii() and letter != " " for letter in LETTERS)


GOLDEN = """\
tiled, M=64 N=64 K=32, tile=32 on NVIDIA A100 (sm_80)
the busiest of 108 SMs: 1 of 2 blocks, 30 cycles; the launch takes 60
(predicted, not measured)

cycles 0 to 30, a cycle a column; 2 warps
            0         10        20
            |         |         |
b0 w0         #LLLLLLLLLLLLLLLLL#www#DDDDD
b0 w1         nn#BBBB#w#

issue slots   5 5    5 5        5   5
in flight     559999955555555555

issue slots: used, in tenths (0 under 10 %). in flight: memory instructions
under way, all warps, in tenths of the most, 2.0; blank where there are none

# issues, n not selected, w wait, L long scoreboard, B barrier, D drain; blank:
no warp. gemmsim explain NAME says more
"""


def test_text_by_hand():
    assert text.render(timeline_report(), Window(0, 30), 8) == GOLDEN


def test_text_of_a_window_with_fewer_warps():
    lines = text.render(timeline_report(), Window(8, 13), 1).splitlines()
    assert "cycles 8 to 13, a cycle a column; 1 of 2 warps" in lines
    assert "b0 w0       LLLLL" in lines and not any(line.startswith("b0 w1") for line in lines)
    assert "issue slots  5 5" in lines and "in flight   95555" in lines


def test_a_column_shows_the_state_with_most_of_its_cycles():
    long = stay(2, 1, [(30, 31, "selected", 0), (31, 600, "barrier", 1), (600, 1000, "wait", 1)], [])
    lines = text.render(timeline_report(long), Window(0, 1000), 8).splitlines()
    assert "cycles 0 to 1,000, 15 cycles a column; 3 warps" in lines
    assert all(len(line) <= 80 for line in lines)
    [row] = [line for line in lines if line.startswith("b1 w0")]
    assert row[12:] == "  " + "B" * 38 + "w" * 27  # 30 to 600, 600 to 1000


def test_columns_share_out_intervals():
    begin, end = np.array([0, 5, 5], np.int32), np.array([10, 6, 25], np.int32)
    assert per_column(begin, end, np.array([0, 5, 10, 20])).tolist() == [5, 5 + 1 + 5, 10]
    rng = np.random.default_rng(1)
    begin = rng.integers(0, 100, 200).astype(np.int32)
    end = (begin + rng.integers(0, 50, 200)).astype(np.int32)
    edges = np.unique(rng.integers(0, 160, 12))
    one_by_one = [
        sum(max(0, min(e, high) - max(b, low)) for b, e in zip(begin, end, strict=True))
        for low, high in pairwise(edges)
    ]
    assert per_column(begin, end, edges).tolist() == one_by_one


def test_windows_cut_intervals_and_fit_a_number_of_them():
    rows = timeline_report().timeline.warps[0].states
    assert within(rows, Window(10, 22))[:, :2].tolist() == [[10, 20], [20, 21], [21, 22]]
    report = timeline_report()  # begins: 2 2 2 2 3 4 4 5 9 10 11 20 21 24 25, six and six states and two flights
    assert fitting(report, Window(0, 30), 14) == Window(0, 30)
    assert fitting(report, Window(0, 30), 4) == Window(0, 4)
    assert len([1 for one in (*FIRST, *SECOND) if one[0] < 4]) + 1 <= 5


def later_block():
    """The same slot again, after the first block has left it."""
    shifted = [(begin + 40, end + 40, reason, pc) for begin, end, reason, pc in FIRST]
    return timeline_report(stay(0, 1, shifted, [(42, 60, 0, 2)]))


def test_trace_slices_nest_as_perfetto_wants():
    """The rules of Perfetto's importer: slices of a thread, by time and then longest first, lie in or after another;
    each b has an e with its id, category, name and process; counters are numbers; no thread number is in two
    processes."""
    trace = json.loads(perfetto.render(later_block(), Window(0, 70)))
    found = trace["traceEvents"]
    assert {event["ph"] for event in found} == {"M", "X", "b", "e", "C"}
    threads = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            assert event["dur"] > 0
            threads[event["pid"], event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    assert len(threads) == 2
    for slices in threads.values():
        assert slices == sorted(slices, key=lambda one: one[:2])  # in the file as in time, a parent before its child
        open_until: list[int] = []
        for begin, minus, _ in slices:
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or begin - minus <= open_until[-1]
            open_until.append(begin - minus)
            assert len(open_until) <= 2
    ends = {(e["pid"], e["cat"], e["id"], e["name"]): e["ts"] for e in found if e["ph"] == "e"}
    begins = {(e["pid"], e["cat"], e["id"], e["name"]): e["ts"] for e in found if e["ph"] == "b"}
    assert begins.keys() == ends.keys() and len(begins) == 3 and all(begins[key] < ends[key] for key in begins)
    processes = defaultdict(set)
    for event in found:
        processes[event["tid"]].add(event["pid"])
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
    assert all(len(pids) == 1 for pids in processes.values())
    assert all(isinstance(value, int) for e in found if e["ph"] == "C" for value in e["args"].values())


@pytest.mark.parametrize(
    ("sass", "name"),
    [("@!P1 BRA `(.L_x)", "BRA"), ("@P0 LDG.E R2, [R4]", "LDG.E"), ("FFMA R0, R1, R2", "FFMA"), ("@P0", "@P0")],
)
def test_slices_are_named_by_opcode(sass, name):
    assert perfetto.opcode(sass) == name


def test_trace_says_what_the_timeline_says():
    found = json.loads(perfetto.render(timeline_report(), Window(0, 30)))["traceEvents"]
    slices = [(e["name"], e["ts"], e["dur"]) for e in found if e["ph"] == "X" and e["tid"] == perfetto.FIRST_SLOT]
    assert slices == [
        ("b0 w0", 2, 28), ("LDG.E", 2, 1), ("long scoreboard", 3, 17), ("FFMA", 20, 1), ("wait", 21, 3),
        ("EXIT", 24, 1), ("drain", 25, 5),
    ]  # fmt: skip
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert names == {100: "warp slot 00 (sub-partition 0)", 101: "warp slot 01 (sub-partition 1)"}
    flights = [(e["ph"], e["name"], e["ts"]) for e in found if e["ph"] in "be"]
    assert flights == [("b", "DRAM", 2), ("e", "DRAM", 20), ("b", "shared memory", 4), ("e", "shared memory", 9)]
    counts = [(e["ts"], e["args"]["count"]) for e in found if e["ph"] == "C" and e["name"].startswith("DRAM")]
    assert counts == [(2, 1), (20, 0)]
    wait = next(e for e in found if e["name"] == "long scoreboard")
    assert wait["args"] == {"sass": "FFMA R0, R2, R3, R0", "line": 4, "source": "acc += a * b"}


def test_trace_of_a_window():
    found = json.loads(perfetto.render(timeline_report(), Window(10, 22)))["traceEvents"]
    times = [(e["ts"], e["ts"] + e.get("dur", 0)) for e in found if e["ph"] != "M"]
    assert min(begin for begin, _ in times) == 10 and max(end for _, end in times) == 22
    assert len([e for e in found if e["ph"] == "b"]) == 1


# Stage 0: asked for in cycle 2, full from 5 to 12; stage 1: 3, 8 to 20; stage 0 again: 12, 16 to 30.
RING = Ring(0, 2, True, np.array([(0, 2, 5, 12), (1, 3, 8, 20), (0, 12, 16, 30)], np.int32))


def test_the_fullness_of_a_ring():
    edges = np.array([0, 4, 10, 20, 30])
    assert RING.held(2, 3, edges).tolist() == [0, (5 + 2) / 6, (2 + 10 + 4) / 10, 1]
    assert RING.held(1, 2, edges).tolist() == [(2 + 1) / 4, (1 + 4) / 6, 4 / 10, 0]
    lines = text.render(timeline_report(rings=(RING,)), Window(0, 30), 8).splitlines()
    rows = {line[:12].strip(): line[12:] for line in reversed(lines)}
    full, filling = rows["ring full"], rows["filling"]
    assert full == " " * 5 + "111" + "2222" + "1111" + "2222" + "1" * 10
    assert filling == "  1221" + "11" + "    " + "1111"


def test_the_stages_of_a_ring_in_the_trace_and_on_the_page():
    report = timeline_report(rings=(RING,))
    found = json.loads(perfetto.render(report, Window(4, 30)))["traceEvents"]
    mine = [
        (e["name"], e["tid"] - perfetto.FIRST_STAGE, e["ts"], e["dur"])
        for e in found
        if e["pid"] == perfetto.RINGS and e["ph"] == "X"
    ]
    assert mine == [
        ("filling", 0, 4, 1), ("full", 0, 5, 7), ("filling", 1, 4, 4), ("full", 1, 8, 12), ("filling", 0, 12, 4),
        ("full", 0, 16, 14),
    ]  # fmt: skip
    names = {e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] == perfetto.RINGS}
    assert names == {"b0 stage 0", "b0 stage 1"}
    assert page_data(page.render(report, Window(13, 30)))["rings"] == [[0, 2, [1, 3, 8, 20, 0, 12, 16, 30]]]


def page_data(html: str) -> dict:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def test_page_has_the_states_as_they_are_and_needs_nothing_else():
    html = page.render(timeline_report(), Window(0, 30))
    data = page_data(html)
    assert [warp[:3] for warp in data["warps"]] == [["b0 w0", 0, 2], ["b0 w1", 1, 2]]
    for warp, states in zip(data["warps"], (FIRST, SECOND), strict=True):
        at, rebuilt = warp[2], []
        for cycles, reason, instruction in zip(warp[3][::3], warp[3][1::3], warp[3][2::3], strict=True):
            rebuilt.append((at, at + cycles, data["reasons"][reason][0], instruction))
            at += cycles
        assert tuple(rebuilt) == states
    assert data["warps"][0][4] == [2, 18, 0, 3] and data["levels"][3] == "DRAM"
    assert data["code"][0] == ["LDG.E R2, [R4]", 3, "a = A[</script>]"]
    assert html.count("</script>") == 2 and "http" not in html.replace("http-equiv", "") and "@" not in data["scope"]
    assert "Shown:" not in data["scope"]


def test_page_of_a_window_says_so():
    data = page_data(page.render(timeline_report(), Window(12, 22)))
    assert data["scope"].endswith("Shown: cycles 12 to 22.") and len(data["warps"]) == 1
    assert data["warps"][0][2:] == [12, [8, 3, 1, 1, 0, 1, 1, 2, 2], [12, 8, 0, 3]]
