"""How long L2's slices work on atomic operations, which each does one after another.

A slice takes some time for each sector of a packet (`requests.atomics`). A packet behind one of the same sectors waits
until that one is done: a floating-point sum takes longer than its turn.
Each KiB of memory lies in two slices, 256 bytes in turn; different ones are taken to lie in different slices as long as
there are enough. Where L2 has two partitions, packets of SMs of the other half pass through another slice, which costs
half a turn more in the mean. All of this was measured on an H200 (tests/records/h200_atomics.json,
`lts__d_atomic_input_cycles_active`).

Warps that begin together execute their first atomics together, and drift apart at random: how many steps lie between
the first and the last of them grows with the square root of the steps. Those that go through the same memory so keep
few slices busy at a time. Of a launch, the atomics of each part are taken to be done before those of the next (`part`),
each part as long as its busiest slice. Warps that each begin elsewhere, or that add to words of their own, keep all
slices busy in each part. (tests/records/h200_atomic_sweeps.json: 528 blocks of 8 warps that add 1, 4, 16 and 64 KiB of
one row of memory keep 2.1, 3.9, 9.1 and 17.9 slices busy, and 2.1, 8.3, 25.6 and 44 if each block begins elsewhere.)

What the busiest slices work is shared out among the records of the launch, in proportion to what each costs by itself.

Not modelled: that few warps drift apart faster, and all a little faster the longer they go (deviation 9); packets of
one request behind each other (two words by all lanes, in lines of their own: half as long here); double the time of
sectors that compare-and-swap or doubles fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L2
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.atomics import Packets
from gemmsim.memory.requests.cache_operations import ATOMIC
from gemmsim.memory.requests.coalescer import SECTOR_SHIFT
from gemmsim.support.sorting import distinct
from gemmsim.trace.types import Relation

_MOST_VISITS = 2_000_000  # of blocks to lines; of more, one block of n stands for n
_GOLDEN = (5**0.5 - 1) / 2
_KIB_SHIFT, _TURN_SHIFT = 10, 8


def atomic_us(
    requests: L1Requests,
    packets: Packets,
    accesses: dict[int, Access],
    weight: NDArray[np.float64],
    relation: Relation | None,
    generation: NDArray[np.int64],
    l2: L2,
) -> NDArray[np.float32]:
    """Return what each request adds to the time of the slice of L2 that works longest: float32 [requests] us.

    Times the weights of their records, they add up to the time of that slice. Requests that are no atomics add 0.

    weight      float64 [requests] for how many requests of the grid each stands, those of iterations left out included
    relation    of the executed blocks to those of the grid; None where all were executed
    generation  int64 [executed blocks, or those of the grid where there is a relation] how many were there before it
    """
    us = np.zeros(len(requests.pc), np.float32)
    atomic = np.flatnonzero((requests.operation == ATOMIC) & (np.diff(packets.start)[requests.shape] > 0))
    if not len(atomic):
        return us
    shape = requests.shape[atomic]
    lines = np.diff(packets.start)[shape]
    request = np.repeat(np.arange(len(atomic)), lines)
    entry = np.arange(lines.sum()) - np.repeat(np.cumsum(lines) - lines, lines) + packets.start[shape][request]
    floats = [index for index, access in accesses.items() if access.arithmetic == "float"]
    again = np.where(np.isin(requests.pc[atomic], floats), l2.atomic_float_again_us, l2.atomic_again_us)[request]
    works = l2.atomic_sector_us * packets.sectors[entry]
    waits = np.maximum(packets.packets[entry] * again - works, 0.0)  # behind packets of the same sectors
    sector = requests.base_sector[atomic][request] + packets.first[entry]
    visits = _visits(requests, atomic[request], sector, relation)
    before, apart, all_steps = steps(requests, atomic)[:, request[visits.index]]
    parts = part(generation[visits.block] * all_steps + before + visits.number * apart, l2)
    busiest = _busiest(visits, parts, works, waits, l2)
    by_itself = np.bincount(request, works)
    us[atomic] = by_itself * busiest / (weight[atomic] @ by_itself)
    return us


def part(step: NDArray[np.int64], l2: L2) -> NDArray[np.int64]:
    """Return to which part of a launch the n-th atomic of a place for warps belongs, int64.

    Each part is wider than the one before it by twice as many atomics as the first one has, as the distance between
    warps grows with the square root of n.
    """
    return np.sqrt(step / l2.atomics_in_step).astype(np.int64)


def steps(requests: L1Requests, atomic: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many atomics the warp of each executes before it, from it to the next one for which it stands, and in
    all: int64 [3, atomics]. Atomics behind each other that stand for as many are those of one loop.
    """
    warp = np.searchsorted(requests.start, atomic, side="right")
    times = requests.times[atomic] if len(requests.times) else np.ones(len(atomic), np.int64)
    same = (np.diff(warp) == 0) & (np.diff(times) == 0) & (times[1:] > 1)
    loop = np.cumsum(np.append(0, ~same))
    length = np.bincount(loop)[loop]
    begins = np.flatnonzero(np.append(True, ~same))
    before = np.cumsum(np.append(0, (length * times)[begins]))[:-1]
    first = np.searchsorted(warp, warp)
    in_all = np.bincount(warp, times)[warp].astype(np.int64)
    return np.stack([(before[loop] - before[loop[first]]) + np.arange(len(atomic)) - begins[loop], length, in_all])


@dataclass(frozen=True)
class _Visits:
    """Visits to sectors.

    index   int64 [visits] element of `works` and `waits` that says what it costs
    number  int64 [visits] how many others its request stands for before it
    block   int64 [visits] the block, of those executed, or of the grid where there is a relation
    sector  int64 [visits]
    times   float64 [visits] how many visits it stands for
    """

    index: NDArray[np.int64]
    number: NDArray[np.int64]
    block: NDArray[np.int64]
    sector: NDArray[np.int64]
    times: NDArray[np.float64]


def _visits(
    requests: L1Requests, request: NDArray[np.int64], sector: NDArray[np.int64], relation: Relation | None
) -> _Visits:
    """Return the visits of all blocks of the grid to sectors.

    request, sector  int64 [n] request of the packets of a line, and their first sector, in the executed block
    """
    index, number = np.arange(len(sector)), np.zeros(len(sector), np.int64)
    if len(requests.times):
        times = requests.times[request]
        index = np.repeat(index, times)
        number = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
        sector = sector[index] + number * requests.step[request][index]
    block = np.repeat(np.arange((len(requests.start) - 1) // requests.warps_per_block), _per_block(requests))
    of_block = block[request[index]]
    if relation is None:
        return _Visits(index, number, of_block, sector, np.ones(len(index)))
    per_block = np.bincount(of_block, minlength=int(relation.like.max()) + 1)
    order = np.argsort(of_block, kind="stable")
    begins = np.cumsum(per_block) - per_block
    every = max(1, -(-int(per_block[relation.like].sum()) // _MOST_VISITS))
    blocks = one_of(every, len(relation.like))
    like = relation.like[blocks]
    count = per_block[like]
    visit = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begins[like], count)
    visit = order[visit]
    of_grid = np.repeat(blocks, count)
    moved = relation.offset_bytes[requests.mover[request[index[visit]]], of_grid] >> SECTOR_SHIFT
    stands_for = np.full(len(visit), len(relation.like) / len(blocks))
    return _Visits(index[visit], number[visit], of_grid, sector[visit] + moved, stands_for)


def one_of(every: int, blocks: int) -> NDArray[np.int64]:
    """Return blocks of a grid of which each stands for `every` ones: int64 [blocks / every].

    They are spread by the golden ratio. Each n-th one might always be of the same columns of the grid, and a kernel may
    well add each column to words of its own.
    """
    if every == 1:
        return np.arange(blocks)
    return np.unique((np.arange(blocks // every) * _GOLDEN % 1 * blocks).astype(np.int64))


def _per_block(requests: L1Requests) -> NDArray[np.int64]:
    return np.diff(requests.start[:: requests.warps_per_block])


def _busiest(
    visits: _Visits,
    parts: NDArray[np.int64],
    works: NDArray[np.float64],
    waits: NDArray[np.float64],
    l2: L2,
) -> float:
    """Return for how long the slice works that works longest, in us: of each part of the launch, one after another.

    Packets wait for those before them in their slice if these are of the same sectors, as chance has it.

    parts         int64 [visits] part of the launch to which each belongs
    works, waits  float64 [n] us that the packets of each index take, and that they wait in that case
    """
    index, sector, times = visits.index, visits.sector, visits.times
    (sectors,) = distinct(sector)
    kib = sectors >> _KIB_SHIFT - SECTOR_SHIFT
    turn = 2 * kib + (sectors >> _TURN_SHIFT - SECTOR_SHIFT & 1)
    slice_of = np.unique(turn, return_inverse=True)[1] % l2.slices
    of_sector = np.searchsorted(sectors, sector)
    place = parts * l2.slices + slice_of[of_sector]
    work = busy = np.bincount(place, times * works[index], (int(parts.max()) + 1) * l2.slices)
    if waits.any():
        together, of_visit = np.unique(parts * len(sectors) + of_sector, return_inverse=True)
        of_slice = together // len(sectors) * l2.slices + slice_of[together % len(sectors)]
        visited = np.bincount(of_visit, times)
        in_slice, alike = (np.bincount(of_slice, each, len(work)) for each in (visited, visited**2))
        wait = np.bincount(place, times * waits[index], len(work))
        busy = work + wait * alike / np.maximum(in_slice, 1.0) ** 2
    passing = l2.atomic_passing * work.sum() / l2.slices if l2.partitions > 1 else 0.0
    return float(busy.reshape(-1, l2.slices).max(axis=1).sum() + passing)
