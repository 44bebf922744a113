"""How long L2's slices work on atomic operations, which each does one after another.

A slice takes some time for each sector of a packet (`requests.atomics`), twice that for doubles and compare-and-swap.
A packet behind one of the same sector waits until that one is done: a floating-point sum takes longer than its turn.
Each KiB of memory lies in two slices, 256 bytes in turn; different ones are taken to lie in different slices as long as
there are enough. Where L2 has two partitions, packets of SMs of the other half pass through another slice, which costs
half a turn more in the mean. All of this was measured on an H200 (tests/records/h200_atomics.json,
`lts__d_atomic_input_cycles_active`).

The launch takes at least as long as its busiest slice. What that one works is shared out among the records of the
launch, in proportion to what each costs by itself.

Not modelled: warps of many blocks that sweep through the same memory together, so that their slices are busy one after
another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import L2
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.atomics import Packets
from gemmsim.memory.requests.cache_operations import ATOMIC
from gemmsim.memory.requests.coalescer import LINE_SHIFT, SECTOR_SHIFT
from gemmsim.support.sorting import distinct
from gemmsim.trace.types import Relation

_MOST_VISITS = 2_000_000  # lines that blocks visit; of more, every n-th block stands for n
_LINES_PER_KIB_SHIFT, _LINES_PER_TURN_SHIFT = 3, 1
_PASSING = 0.5  # of a turn, for packets that pass through the other partition


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
    turn, done = _times(requests.pc[atomic][request], accesses, l2)
    turns = turn * packets.sectors[entry]
    waits = np.maximum(done - turns / packets.packets[entry], 0.0)  # behind a packet of the same sectors
    works = turns + waits * (packets.packets[entry] - 1)
    line = (requests.base_sector[atomic][request] >> LINE_SHIFT - SECTOR_SHIFT) + packets.line[entry]
    visits = _visits(requests, atomic[request], line, relation)
    busiest = _busiest(visits, works, waits, l2)
    by_itself = np.bincount(request, works)
    us[atomic] = by_itself * busiest / (weight[atomic] @ by_itself)
    return us


def _times(pc: NDArray[np.int32], accesses: dict[int, Access], l2: L2) -> NDArray[np.float64]:
    """Return for how long a sector of the instructions `pc` takes a slice, and when it is done: float64 [2, n] us."""
    kinds = {
        "int": (l2.atomic_sector_us, l2.atomic_again_us),
        "cas": (2 * l2.atomic_sector_us, l2.atomic_again_us),
        "float": (l2.atomic_sector_us, l2.atomic_float_again_us),
        "double": (2 * l2.atomic_sector_us, l2.atomic_float_again_us),
    }
    table = np.zeros((int(pc.max()) + 1, 2))
    for index, access in accesses.items():
        if index < len(table) and access.arithmetic:
            table[index] = kinds[access.arithmetic]
    return table[pc].T


def _visits(
    requests: L1Requests, request: NDArray[np.int64], line: NDArray[np.int64], relation: Relation | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the visits of all blocks of the grid to lines: the index of each in `line`, the line, and how many visits
    it stands for.

    request, line  int64 [n] request of each packet line, and its number of line, in the executed block
    """
    index = np.arange(len(line))
    if len(requests.times):
        times = requests.times[request]
        index = np.repeat(index, times)
        number = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
        step_sectors = requests.step[request]
        line = line[index] + (number * step_sectors[index] >> LINE_SHIFT - SECTOR_SHIFT)
    if relation is None:
        return index, line, np.ones(len(index))
    block = np.repeat(np.arange((len(requests.start) - 1) // requests.warps_per_block), _per_block(requests))
    of_block = block[request[index]]
    per_block = np.bincount(of_block, minlength=int(relation.like.max()) + 1)
    order = np.argsort(of_block, kind="stable")
    begins = np.cumsum(per_block) - per_block
    every = max(1, -(-int(per_block[relation.like].sum()) // _MOST_VISITS))
    blocks = np.arange(0, len(relation.like), every)
    like = relation.like[blocks]
    count = per_block[like]
    visit = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begins[like], count)
    visit = order[visit]
    moved = relation.offset_bytes[requests.mover[request[index[visit]]], np.repeat(blocks, count)] >> LINE_SHIFT
    return index[visit], line[visit] + moved, np.full(len(visit), len(relation.like) / len(blocks))


def _per_block(requests: L1Requests) -> NDArray[np.int64]:
    return np.diff(requests.start[:: requests.warps_per_block])


def _busiest(
    visits: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    works: NDArray[np.float64],
    waits: NDArray[np.float64],
    l2: L2,
) -> float:
    """Return for how long the slice works that works longest, in us.

    A packet waits for the one before it in its slice if that is of the same line, as chance has it.

    works, waits  float64 [n] us that the packets of each index take, and that the first one waits in that case
    """
    index, line, times = visits
    (lines,) = distinct(line)
    turn = 2 * (lines >> _LINES_PER_KIB_SHIFT) + (lines >> _LINES_PER_TURN_SHIFT & 1)
    slice_of = np.unique(turn, return_inverse=True)[1] % l2.slices
    of_line = np.searchsorted(lines, line)
    visited = np.bincount(of_line, times)
    of_slice = slice_of[of_line]
    work = np.bincount(of_slice, times * works[index], minlength=l2.slices)
    wait = np.bincount(of_slice, times * waits[index], minlength=l2.slices)
    in_slice = np.bincount(slice_of, visited, minlength=l2.slices)
    alike = np.bincount(slice_of, visited**2, minlength=l2.slices) / np.maximum(in_slice, 1) ** 2
    passing = _PASSING * work.mean() if l2.partitions > 1 else 0.0
    return float((work + alike * wait).max() + passing)
