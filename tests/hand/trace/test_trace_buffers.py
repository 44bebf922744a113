"""What the executor appended, sorted by warp: the same by segments and by items."""

from __future__ import annotations

from itertools import chain, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmsim.support.errors import GemmsimError
from gemmsim.trace import words
from gemmsim.trace.engine import trace_buffers
from gemmsim.trace.engine.recorded import Recorded, append
from gemmsim.trace.repeats import Issued, Repeat, times_of


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12))
def test_items_follow_their_warps(segments: list[tuple[int, int]]) -> None:
    """Segments (warp, items) whose items are numbered as they were appended."""
    length = [count for _, count in segments]
    first = np.cumsum([0, *length])[:-1].astype(np.int64)
    items = np.arange(100, 100 + sum(length))
    numbers = iter(items.tolist())
    by_warp: dict[int, list[int]] = {warp: [] for warp in range(4)}
    for warp, count in segments:
        by_warp[warp] += [next(numbers) for _ in range(count)]
    warps = np.array([warp for warp, _ in segments], np.int32)
    found = trace_buffers._ByWarp(warps, first, len(items), 4)
    for kind in (np.int64, np.uint16):
        ordered = found.sorted(np.append(items, [7, 7]).astype(kind))
        assert ordered.dtype == kind and ordered.tolist() == list(chain(*by_warp.values()))
    places = np.arange(len(items))[::-1]
    assert (items[found.numbers(places)] == found.sorted(items)[places]).all()
    assert found.start.tolist() == np.cumsum([0, *(len(by_warp[warp]) for warp in range(4))]).tolist()


def test_what_is_in_order_is_not_copied() -> None:
    items = np.arange(10)
    one_by_one = trace_buffers._ByWarp(np.array([0, 0, 1], np.int32), np.array([0, 2, 5]), 8, 2)
    assert one_by_one.sorted(items).tolist() == list(range(8))
    assert np.shares_memory(one_by_one.sorted(items), items)
    in_turn = trace_buffers._ByWarp(np.array([0, 1, 0], np.int32), np.array([0, 2, 5]), 8, 2)
    assert in_turn.sorted(items).tolist() == [0, 1, 5, 6, 7, 2, 3, 4]


def test_a_trace_that_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for twice as many records is needed, 48 bytes each besides the buffers' own."""
    buffers = trace_buffers.Buffers(1, 1, 100)
    records = len(buffers.record_pc)
    buffers.counters[words.RECORDS] = records
    monkeypatch.setattr(trace_buffers, "free_memory_bytes", lambda: 96 * records - 1)
    with pytest.raises(GemmsimError, match="more than 16,777,216 times, and the 1 GiB that are free"):
        buffers.grow()
    assert len(buffers.record_pc) == records
    for enough in (96 * records, None):  # None: the system does not say
        monkeypatch.setattr(trace_buffers, "free_memory_bytes", lambda enough=enough: enough)
        buffers.grow()
    assert len(buffers.record_pc) == 2 * records


@pytest.mark.parametrize(
    ("counter", "most", "does"),
    [
        (words.RECORDS, "_MOST_KEPT", "access memory"),
        (words.ISSUED, "_MOST_ISSUED", "execute instructions"),
    ],
)
def test_a_trace_is_bounded_whatever_memory_there_is(
    counter: int, most: str, does: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers = trace_buffers.Buffers(1, 1, 100)
    full = len(buffers.record_pc if counter == words.RECORDS else buffers.pc)
    monkeypatch.setattr(trace_buffers, "free_memory_bytes", lambda: None)
    monkeypatch.setattr(trace_buffers, most, 2 * full)
    buffers.counters[counter] = full
    buffers.grow()  # to what is allowed
    buffers.counters[counter] = 2 * full
    with pytest.raises(GemmsimError, match=f"{does} more than {2 * full:,} times, which is as much as a trace holds"):
        buffers.grow()


@pytest.mark.parametrize(("more", "size"), [((3, 254), 1), ((3, 255), 2), ((70_000,), 4), ((), 1)])
def test_how_often_items_came_is_held_in_as_few_bytes_as_hold_it(more: tuple[int, ...], size: int) -> None:
    """Items 2 and 3 came so often more, then 4 and 5."""
    times = times_of([((2 + 2 * n, 4 + 2 * n), each) for n, each in enumerate(more)], 7)
    expected = [1, 1, *(1 + each for each in more for _ in range(2))]
    assert times.tolist() == expected + [1] * (7 - len(expected)) and times.itemsize == size


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 9)), max_size=4), st.randoms())
def test_for_how_many_executions_instructions_stand(parts: list[tuple[int, int, int]], random: Random) -> None:
    """Parts that come again, so many instructions behind the one before, so long, so often; of segments in any order.
    Counted one by one."""
    repeats, at = [], 0
    for gap, length, times in parts:
        repeats.append(Repeat((0, 0), (at + gap, at + gap + length), times, np.zeros((0, 3), np.int64)))
        at += gap + length
    each = times_of([(repeat.issued, repeat.times) for repeat in repeats], at + 3).astype(int)
    ends = sorted({0, len(each), *random.choices(range(len(each)), k=3)})
    segments = list(pairwise(ends))
    random.shuffle(segments)
    first, stop = np.array(segments).T
    counted = np.cumsum([0, *(each[n] for begin, end in segments for n in range(begin, end))])
    found = Issued(repeats, first, stop - first).before(np.arange(len(each) + 1))
    assert found.tolist() == counted.tolist()


def test_a_finished_trace_is_held_once() -> None:
    """Two warps took turns, so what they left is sorted, and what was recorded is dropped."""
    buffers = trace_buffers.Buffers(2, 1, 100)
    buffers.segment_warp[:3], buffers.segment_start[:3], buffers.segment_record[:3] = [0, 1, 0], [0, 2, 3], [0, 1, 1]
    buffers.pc[:4], buffers.record_pc[:2], buffers.record_base[:2], buffers.record_pattern[:2] = range(4), 5, 128, 0
    buffers.counters[[words.SEGMENTS, words.ISSUED, words.RECORDS, words.PATTERNS]] = 3, 4, 2, 1
    counts = np.zeros((1, 8), np.int64)
    trace = buffers.finish(2, np.zeros(1, np.int64), np.ones(1), counts, counts)
    assert trace.pc.tolist() == [0, 1, 3, 2] and trace.record_start.tolist() == [0, 2, 2]
    assert trace.record_pc.tolist() == [5, 5] and trace.record_base.tolist() == [128, 128]
    for array in (buffers.pc, buffers.record_pc, buffers.record_pattern, buffers.record_base):
        assert array.size == 0 and array.base is None


def test_what_is_appended_keeps_its_shapes_and_places() -> None:
    """Two blocks of two warps, each recorded by itself, behind a record of the first shape: the second block has this
    shape, too, and another one. What follows in the second half of its records comes three times more."""
    shapes = np.zeros((3, words.PATTERN_WORDS), np.uint64)
    shapes[:, words.PATTERN_MASK] = 1, 3, 7

    def block(patterns: list[int], of_records: list[int], first: int, repeats: tuple[Repeat, ...]) -> Recorded:
        records, counted = len(of_records), np.array([4, 5])
        return Recorded(
            *(counted + first, 32 * counted, np.array([0, 1], np.int32), np.array([0, records // 2])),
            *(np.arange(first, first + records, dtype=np.int32), np.array(of_records, np.int32)),
            *(128 * np.arange(first, first + records, dtype=np.uint64), shapes[patterns], repeats, first, first),
        )

    buffers = trace_buffers.Buffers(2, 1, 100)
    buffers.patterns[0] = shapes[2]
    buffers.counters[[words.RECORDS, words.SEGMENTS, words.PATTERNS, words.ISSUED]] = 1, 1, 1, 9
    moving = np.array([[0, 13, 64], [1, 14, 128]])
    again = Repeat((2, 4), (7, 9), 3, moving)
    assert append(buffers, block([0, 2], [0, 1], 10, ()), 2)[0].tolist() == [14, 15]
    append(buffers, block([2, 1, 0], [0, 1, 1, 2], 20, (again,)), 4)
    assert buffers.patterns[:3, words.PATTERN_MASK].tolist() == [7, 1, 3]
    records = int(buffers.counters[words.RECORDS])
    assert buffers.record_pc[1:records].tolist() == [10, 11, 20, 21, 22, 23]
    assert buffers.record_base[1:records].tolist() == [128 * n for n in (10, 11, 20, 21, 22, 23)]
    assert buffers.record_pattern[1:records].tolist() == [1, 0, 0, 2, 2, 1]
    assert buffers.segment_warp[1:5].tolist() == [2, 3, 4, 5]
    assert buffers.segment_record[1:5].tolist() == [1, 2, 3, 5] and set(buffers.segment_start[1:5].tolist()) == {9}
    (found,) = buffers.repeats
    assert (found.records, found.issued, found.times) == ((5, 7), (9, 9), 3)
    assert found.moving.tolist() == [[4, 13, 64], [5, 14, 128]]
    counters = buffers.counters[[words.PATTERNS, words.SEGMENTS, words.UNMET, words.LATE_ARRIVAL, words.ISSUED]]
    assert counters.tolist() == [3, 5, 30, 10, 9]


@pytest.mark.parametrize(("records", "segments", "patterns"), [(40, 1, 1), (1, 5000, 1), (1, 1, 600)])
def test_room_is_made_for_all_that_is_appended(
    records: int, segments: int, patterns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_buffers, "_FIRST_CAPACITY", 64)
    buffers = trace_buffers.Buffers(1, 1, 100)
    buffers.counters[[words.RECORDS, words.SEGMENTS, words.PATTERNS]] = 50, 4000, 250
    buffers.make_room(records, segments, patterns)
    for array, used, more in ((buffers.record_base, 50, records), (buffers.patterns, 250, patterns)):
        assert used + more <= len(array) <= 2 * (used + more + 1)
    assert 4000 + segments <= len(buffers.segment_warp) == len(buffers.segment_start)
