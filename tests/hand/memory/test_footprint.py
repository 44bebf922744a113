"""What is known of sectors while waves of blocks are followed, and how far apart these may lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from requests_builder import coalesced_of, requests_of

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.grid import footprint
from gemmsim.memory.grid.footprint import Visits, Wave, _known, _visit_waves, estimate
from gemmsim.memory.grid.sector_lists import Sectors
from gemmsim.memory.requests.cache_operations import READ, WRITE
from gemmsim.trace.types import Relation


def drawn(seed: int, far: int) -> tuple[Sectors, Visits]:
    """Three lists of sectors below `far`, and 40 visits of them in 9 waves, moved by 0, 64 or 128 sectors."""
    random = np.random.default_rng(seed)
    sector = np.concatenate([np.sort(random.choice(far, 30, replace=False)) for _ in range(3)])
    pc = random.integers(0, 2, 90)
    lists = Sectors(np.array([0, 30, 60, 90]), sector, pc, np.where(pc == 0, READ, WRITE))
    wave = np.sort(random.integers(0, 9, 40))
    visits = Visits(wave, random.integers(0, 3, 40), 64 * random.integers(0, 3, 40), np.ones(40, np.int64))
    return lists, visits


def followed(
    lists: Sectors, visits: Visits, launches: int, capacity: tuple[int, int, int], evict_first: list[bool]
) -> tuple[list, list, int]:
    """What `visit_waves` counts, in dictionaries: for each sector a wave, whether it is dirty, and whether it is
    evicted first."""
    last: dict[int, tuple[int, bool, bool]] = {}
    waves = int(visits.wave[-1]) + 1
    read, touched, written = [0, 0], [0, 0], 0

    def first_that_fits(waves_of: list[int], most: int, now: int) -> int:
        return max([0, *(w + 1 for w in range(now) if sum(x >= w for x in waves_of) > most)])

    def oldest(now: int) -> tuple[int, int, int]:
        """The first waves of which ordinary sectors are there, and others, and of which any are dirty."""
        ordinary = [wave for wave, _, first in last.values() if not first]
        kept = first_that_fits(ordinary, capacity[0], now)
        room = max(capacity[0] - sum(wave >= kept for wave in ordinary), capacity[2])
        return (
            kept,
            first_that_fits([wave for wave, _, first in last.values() if first], room, now),
            first_that_fits([wave for wave, dirty, _ in last.values() if dirty], capacity[1], now),
        )

    for launch in range(launches):
        read, touched, written = [0, 0], [0, 0], 0
        begun = -1
        for wave, number, by in zip(visits.wave, visits.list, visits.offset, strict=True):
            now = launch * waves + int(wave)
            if now != begun:
                begun, (kept, kept_first, kept_dirty) = now, oldest(now)
            for i in range(lists.start[number], lists.start[number + 1]):
                at, pc, write = int(lists.sector[i] + by), int(lists.pc[i]), lists.operation[i] == WRITE
                before, dirty, first = last.get(at, (-1, False, False))
                there = before >= (kept_first if first else kept)
                goes_first = evict_first[pc] and not write
                if before < now:
                    touched[pc] += 1
                    read[pc] += not there and not write
                    if dirty and (before < kept_dirty or not there):
                        written, dirty = written + 1, False
                    first = goes_first
                last[at] = now, bool(dirty or write), first and goes_first
        kept, kept_first, kept_dirty = oldest((launch + 1) * waves)
        for at, (wave, dirty, first) in last.items():
            if dirty and (wave < kept_dirty or wave < (kept_first if first else kept)):
                written += 1
                last[at] = wave, False, first
    return read, touched, written


@pytest.mark.parametrize("far", [100, 1 << 12, 1 << 30])
@pytest.mark.parametrize(
    "capacity", [(0, 0, 0), (40, 1000, 10), (40, 10, 0), (90, 60, 20), (1000, 20, 0), (1000, 1000, 0)]
)
@pytest.mark.parametrize("evict_first", [[False, False], [True, False], [True, True]])
def test_waves_are_followed_as_by_a_slow_twin(
    far: int, capacity: tuple[int, int, int], evict_first: list[bool]
) -> None:
    """Sectors are numbered where fewer are visited than lie between them: never for 100, always for 2^30."""
    for seed in range(5):
        lists, visits = drawn(seed, far)
        known = _known(lists, visits, far + 129, 2 * 9 + 1)
        distinct = {
            int(s + by) for n, by in zip(visits.list, visits.offset, strict=True)
            for s in lists.sector[30 * n : 30 * n + 30]
        }  # fmt: skip
        assert len(known.last) == (far + 129 if far == 100 else len(distinct))
        read, touched = np.zeros((2, 2), np.int64)
        written = _visit_waves(lists, visits, 2, np.array(capacity), np.array(evict_first), known, read, touched)
        assert (read.tolist(), touched.tolist(), written) == followed(lists, visits, 2, capacity, evict_first)


def test_sectors_may_lie_as_far_apart_as_large_matrices_are() -> None:
    """Two blocks of a wave each read a sector, 31 GiB apart; at 33 GiB there is no estimate."""
    gpu = load_gpu("h200")
    coalesced, zero = coalesced_of([[0]]), np.zeros(1, np.int64)
    requests = requests_of(zero + 1000, zero, zero, zero, 1, 1)
    for gib, sectors in ((31, [2.0]), (33, None)):
        relation = Relation(np.zeros(2, np.int64), zero.astype(np.int32), np.array([[0, gib << 30]]), zero, False)
        found = estimate(relation, requests, coalesced, 1, Wave(2, gpu.l2, False))
        assert (None if found is None else found.read_sectors.tolist()) == sectors


@pytest.mark.parametrize("visits", [1000, 64, 16, 3])
def test_all_that_is_stored_is_written(visits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four instructions store to every fourth of 64 sectors each, and four others to the same ones; L2 holds a sector.
    Of the chosen sectors, as many as may be visited, all may be those of one instruction."""
    monkeypatch.setattr(footprint, "_MAX_VISITS", visits)
    coalesced = coalesced_of([[0]] * 8)
    shape = np.tile(np.arange(8), 16)
    base = 4 * np.repeat(np.arange(16), 8) + shape % 4
    requests = requests_of(base, shape, np.zeros(128, np.int64), 3 * np.arange(8) + 2, 1, 1)
    zero = np.zeros(1, np.int64)
    relation = Relation(zero, np.zeros(128, np.int32), np.zeros((1, 1), np.int64), zero, False)
    l2 = replace(load_gpu("h200").l2, size_bytes=32, partitions=1)
    found = estimate(relation, requests, coalesced, 24, Wave(1, l2, False))
    assert found is not None and found.written_sectors == 64
