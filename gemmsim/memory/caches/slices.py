"""How long L2's slices work on atomic operations, which each does one after another.

A slice takes some time for each sector of a packet (`requests.atomics`). A packet behind one of the same sectors waits
until that one is done: a floating-point sum takes longer than its turn.
Each KiB of memory lies in two slices, 256 bytes in turn; different ones are taken to lie in different slices as long as
there are enough. Where L2 has two partitions, packets of SMs of the other half pass through another slice, which costs
half a turn more in the mean. All of this was measured on an H200 (tests/records/h200_atomics.json,
`lts__d_atomic_input_cycles_active`).

The launch takes at least as long as its busiest slice. What that one works is shared out among the records of the
launch, in proportion to what each costs by itself.

Not modelled: warps of many blocks that sweep through the same memory together, so that their slices are busy one after
another (norm_backward of tests/sources/everyday.cu takes twice as long); packets of one request behind each other (two
words by all lanes, in lines of their own: half as long here); double the time of sectors that compare-and-swap or
doubles fill.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import L2
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
    l2: L2,
) -> NDArray[np.float64]:
    """Return what each request adds to the time of the slice of L2 that works longest: float64 [requests] us.

    Times the weights of their records, they add up to the time of that slice. Requests that are no atomics add 0.

    weight    float64 [requests] for how many requests of the grid each stands, those of iterations left out included
    relation  of the executed blocks to those of the grid; None where all were executed
    """
    us = np.zeros(len(requests.pc))
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
    busiest = _busiest(_visits(requests, atomic[request], sector, relation), works, waits, l2)
    by_itself = np.bincount(request, works)
    us[atomic] = by_itself * busiest / (weight[atomic] @ by_itself)
    return us


def _visits(
    requests: L1Requests, request: NDArray[np.int64], sector: NDArray[np.int64], relation: Relation | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the visits of all blocks of the grid to sectors: the index of each in `sector`, the sector, and how many
    visits it stands for.

    request, sector  int64 [n] request of the packets of a line, and their first sector, in the executed block
    """
    index = np.arange(len(sector))
    if len(requests.times):
        times = requests.times[request]
        index = np.repeat(index, times)
        number = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
        sector = sector[index] + number * requests.step[request][index]
    if relation is None:
        return index, sector, np.ones(len(index))
    block = np.repeat(np.arange((len(requests.start) - 1) // requests.warps_per_block), _per_block(requests))
    of_block = block[request[index]]
    per_block = np.bincount(of_block, minlength=int(relation.like.max()) + 1)
    order = np.argsort(of_block, kind="stable")
    begins = np.cumsum(per_block) - per_block
    every = max(1, -(-int(per_block[relation.like].sum()) // _MOST_VISITS))
    blocks = one_of(every, len(relation.like))
    like = relation.like[blocks]
    count = per_block[like]
    visit = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begins[like], count)
    visit = order[visit]
    moved = relation.offset_bytes[requests.mover[request[index[visit]]], np.repeat(blocks, count)] >> SECTOR_SHIFT
    return index[visit], sector[visit] + moved, np.full(len(visit), len(relation.like) / len(blocks))


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
    visits: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    works: NDArray[np.float64],
    waits: NDArray[np.float64],
    l2: L2,
) -> float:
    """Return for how long the slice works that works longest, in us.

    Packets wait for those before them in their slice if these are of the same sectors, as chance has it.

    works, waits  float64 [n] us that the packets of each index take, and that they wait in that case
    """
    index, sector, times = visits
    (sectors,) = distinct(sector)
    kib = sectors >> _KIB_SHIFT - SECTOR_SHIFT
    turn = 2 * kib + (sectors >> _TURN_SHIFT - SECTOR_SHIFT & 1)
    slice_of = np.unique(turn, return_inverse=True)[1] % l2.slices
    of_sector = np.searchsorted(sectors, sector)
    visited = np.bincount(of_sector, times)
    of_slice = slice_of[of_sector]
    work, wait = (np.bincount(of_slice, times * each[index], l2.slices) for each in (works, waits))
    in_slice, alike = (np.bincount(slice_of, each, l2.slices) for each in (visited, visited**2))
    passing = l2.atomic_passing * work.mean() if l2.partitions > 1 else 0.0
    return float((work + wait * alike / np.maximum(in_slice, 1.0) ** 2).max() + passing)
