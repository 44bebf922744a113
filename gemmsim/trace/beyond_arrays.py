"""Finds accesses beyond a shared array, in code that keeps the arrays of a kernel apart (`gemmsim.compile.apart`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.shared_arrays import SharedArray
from gemmsim.support.plurals import plural
from gemmsim.trace import micro, words
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import merged
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized
from gemmsim.trace.sanitizer.sentences import DOES_BY_KIND
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import WarpTrace, active_lanes

_AT_ONCE = 1 << 20  # records
_DETAIL = "found in code that was compiled once more, with gaps between the shared arrays"


@dataclass(frozen=True)
class _Accesses:
    """How instructions access shared memory, by their index: bytes a lane, 0 where none; and what a lane does."""

    width_bytes: NDArray[np.int64]
    kind: NDArray[np.int64]


def beyond_arrays(executor: Executor, blocks: Sequence[int], arrays: Sequence[SharedArray]) -> list[Finding] | None:
    """Execute `blocks` with a sanitizing executor, and return what accesses of them are outside of all arrays.

    arrays  those of the executor's program, in ascending order

    There is one finding for each source line. Bulk copies are not looked at, nor what lies behind the static
    arrays. None where a block cannot be finished.
    """
    try:
        trace = executor.trace(blocks, streams=[False] * len(blocks))
    except Stopped:
        return None
    found: list[Finding] = []
    accesses = _accesses(executor)
    for begin in range(0, len(trace.record_pc), _AT_ONCE):
        for record, times in _suspects(executor, trace, slice(begin, begin + _AT_ONCE), arrays, accesses):
            met = _findings(executor, trace, record, arrays, accesses)
            found = merged([*found, *(replace(one, count=times * one.count) for one in met)])
    return found


def with_overruns(found: Sanitized, overruns: Sequence[Finding]) -> Sanitized:
    """Return what was found with overruns added, but for those of accesses that left shared memory altogether."""
    known = {(one.at.where, one.at.does) for one in found.findings if one.defect is Defect.OUT_OF_BOUNDS}
    more = [one for one in overruns if (one.at.where, one.at.does) not in known]
    return replace(found, findings=(*found.findings, *merged(more)))


def _accesses(executor: Executor) -> _Accesses:
    """Of an asynchronous copy from global to shared memory, the store counts."""
    code, count = executor.micro.code, len(executor.program.instructions)
    width, kind = np.zeros(count, np.int64), np.zeros(count, np.int64)
    space = code[:, micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK
    size = code[:, micro.ACCESS] & micro.SIZE_MASK
    rows = code[(size > 0) & ((space == micro.SHARED) | (space == micro.GENERIC))]
    numbers = rows[:, micro.INSTRUCTION].astype(np.int64)
    width[numbers] = rows[:, micro.ACCESS] & micro.SIZE_MASK
    kind[numbers] = rows[:, micro.ACCESS] >> micro.KIND_SHIFT & 3
    return _Accesses(width, kind)


def _place(executor: Executor, address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where addresses of shared memory, of this or another block of the cluster, are in the static memory."""
    return (address & ((1 << words.RANK_SHIFT) - 1)) - executor.program.reserved_shared_bytes


def _suspects(
    executor: Executor, trace: WarpTrace, part: slice, arrays: Sequence[SharedArray], accesses: _Accesses
) -> Iterator[tuple[int, int]]:
    """Yield the records of which not all lanes are in one array or all behind the static ones.

    Of those that an instruction leaves at the same addresses it yields the first, and how many there are.
    """
    active = active_lanes(trace.patterns.active_mask)
    lowest = np.where(active, trace.patterns.offsets_bytes, 1 << 62).min(axis=1)
    highest = np.where(active, trace.patterns.offsets_bytes, -(1 << 62)).max(axis=1)
    pattern, pc = trace.record_pattern[part], trace.record_pc[part]
    shared = np.flatnonzero((trace.record_base[part] < np.uint64(1 << 32)) & (accesses.width_bytes[pc] > 0))
    base, pattern = trace.record_base[part][shared].astype(np.int64), pattern[shared]
    first = _place(executor, base + lowest[pattern])
    last = _place(executor, base + highest[pattern]) + accesses.width_bytes[pc[shared]]
    begins, ends = (np.array([getattr(one, name) for one in arrays]) for name in ("begin", "end"))
    at = np.searchsorted(begins, first, side="right") - 1
    fine = (at >= 0) & (last <= ends[at]) | (first >= executor.program.static_shared_bytes)
    rows = np.stack([pc[shared], pattern, base], axis=1)[~fine]
    _, at_first, times = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(at_first)
    yield from zip((shared[~fine][at_first] + part.start)[order].tolist(), times[order].tolist(), strict=True)


def _findings(
    executor: Executor, trace: WarpTrace, record: int, arrays: Sequence[SharedArray], accesses: _Accesses
) -> Iterator[Finding]:
    """Yield a finding for each array beyond which lanes of a record access."""
    shadow = executor.shadow
    assert shadow is not None
    pc, pattern = int(trace.record_pc[record]), int(trace.record_pattern[record])
    width = int(accesses.width_bytes[pc])
    lanes = np.flatnonzero(active_lanes(trace.patterns.active_mask[pattern : pattern + 1])[0]).tolist()
    places = _place(executor, int(trace.record_base[record]) + trace.patterns.offsets_bytes[pattern]).tolist()
    warp = int(np.searchsorted(trace.record_start, record, side="right")) - 1
    block, own_warp = int(trace.blocks[warp // trace.warps_per_block]), warp % trace.warps_per_block
    met: dict[str, list[int]] = {}
    said: dict[str, str] = {}
    for lane in lanes:
        beyond = _beyond(places[lane], width, arrays, executor.program.static_shared_bytes)
        if beyond is not None:
            met.setdefault(beyond[0].name, []).append(lane)
            said.setdefault(beyond[0].name, beyond[1])
    for name, those in met.items():
        at = shadow.site(DOES_BY_KIND[int(accesses.kind[pc])], pc, own_warp, those[0])
        position = shadow.position(block)
        yield Finding(Defect.OVERRUN, said[name], position, "shared", None, width, at, None, _DETAIL, len(those))


def _beyond(begin: int, width: int, arrays: Sequence[SharedArray], static_bytes: int) -> tuple[SharedArray, str] | None:
    """Return the nearest array and what is said of an access that is in none; None where it is in one or behind all."""
    if begin >= static_bytes or any(one.begin <= begin and begin + width <= one.end for one in arrays):
        return None

    def distance(one: SharedArray) -> int:
        return max(begin + width - one.end, one.begin - begin)

    nearest = min(arrays, key=distance)
    if begin >= nearest.begin:
        behind = f"{plural(begin - nearest.end, 'byte')} behind" if begin > nearest.end else "right behind"
        where = f"{behind} the end" if begin >= nearest.end else "across the end"
    else:
        where = f"{plural(nearest.begin - begin, 'byte')} before the beginning"
    has = plural(nearest.size_bytes, "byte")
    return nearest, f"an access {where} of the shared array '{nearest.name}', which has {has}"
