"""Keeps what one block left in the trace buffers, for a trace that is made later.

A leader of a class is executed to find the class. Where iterations of its loops are left out, it would be executed
again in the same way, and leave the same records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.repeats import Repeat
from gemmsim.trace.types import Sketch

_SHAPE = slice(words.PATTERN_MASK + 1)  # by which patterns are told apart


@dataclass(frozen=True)
class Recorded:
    """What the only block in the buffers left there, but for its instruction stream.

    executed, threads  int64 [instructions] executions by warps and by threads
    segment_warp       int32 [segments], and `segment_record`, int64 [segments]: as in `Buffers`
    record_pc, record_pattern, record_base
                       [records] in the order of execution
    patterns           uint64 [patterns, words.PATTERN_WORDS]
    repeats            what came several times
    unmet, late        what the counters UNMET and LATE_ARRIVAL were
    """

    executed: NDArray[np.int64]
    threads: NDArray[np.int64]
    segment_warp: NDArray[np.int32]
    segment_record: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    patterns: NDArray[np.uint64]
    repeats: tuple[Repeat, ...]
    unmet: int
    late: int


def recorded(buffers: Buffers, sketch: Sketch) -> Recorded:
    """Return what the only block in the buffers left there, of which they made a sketch. Its records, of which there
    may be millions, are not copied: the buffers get other arrays for them."""
    c = buffers.counters
    segments = int(c[words.SEGMENTS])
    buffers.renew_records()
    return Recorded(
        sketch.executed[0],
        sketch.threads_executed[0],
        buffers.segment_warp[:segments].copy(),
        buffers.segment_record[:segments].copy(),
        sketch.record_pc,
        sketch.record_pattern,
        sketch.record_base,
        buffers.patterns[: c[words.PATTERNS]].copy(),
        tuple(buffers.repeats),
        int(c[words.UNMET]),
        int(c[words.LATE_ARRIVAL]),
    )


def append(buffers: Buffers, kept: Recorded, warp_base: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Append what a block left elsewhere to the buffers. Nothing can be executed into them afterwards.

    warp_base  warps of the trace before the block's first one

    Returns how often the block executed each instruction, by warps and by threads: int64 [instructions] each.
    """
    c = buffers.counters
    buffers.make_room(len(kept.record_pc), len(kept.segment_warp), len(kept.patterns))
    begin, issued, segments = (int(c[n]) for n in (words.RECORDS, words.ISSUED, words.SEGMENTS))
    known = {row[_SHAPE].tobytes(): n for n, row in enumerate(buffers.patterns[: c[words.PATTERNS]])}
    number = np.empty(len(kept.patterns), np.int32)
    for n, row in enumerate(kept.patterns):
        number[n] = known.setdefault(row[_SHAPE].tobytes(), len(known))
        buffers.patterns[number[n]] = row
    records = slice(begin, begin + len(kept.record_pc))
    buffers.record_pc[records], buffers.record_base[records] = kept.record_pc, kept.record_base
    buffers.record_pattern[records] = number[kept.record_pattern]
    added = slice(segments, segments + len(kept.segment_warp))
    buffers.segment_warp[added] = kept.segment_warp + warp_base
    buffers.segment_record[added], buffers.segment_start[added] = kept.segment_record + begin, issued
    for repeat in kept.repeats:
        moved = begin + repeat.records[0], begin + repeat.records[1]
        moving = repeat.moving + np.array((warp_base, 0, 0))
        buffers.repeats.append(replace(repeat, records=moved, issued=(issued, issued), moving=moving))
    c[[words.RECORDS, words.SEGMENTS, words.PATTERNS]] = records.stop, added.stop, len(known)
    c[words.UNMET] += kept.unmet
    c[words.LATE_ARRIVAL] = c[words.LATE_ARRIVAL] or kept.late
    return kept.executed, kept.threads
