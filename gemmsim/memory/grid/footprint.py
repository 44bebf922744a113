"""L2 and DRAM where not every block was executed: an estimate from what each wave of blocks touches.

The sectors that the executed blocks accessed, moved by the step of each instruction along the grid axes, give those
of every block. Blocks run in waves (all that are resident at once), and L2 is taken to be LRU with a wave as the unit
of time: within a wave a sector is fetched once, and one that an earlier wave touched is still there if the distinct
sectors touched since fit in L2. Blocks that were not executed are taken to be like the executed block of the largest
weight.

Where L2 has two partitions, what SMs of both halves read is in it twice (see `l2`): the capacity is what is left then.

Sectors that are only ever touched together are looked at as one. Where that is still too much work, every m-th of a
block stands for m and the capacity is divided by m: blocks that share sectors share the chosen ones too, as they are
the same accesses.

Not modelled: what L1 keeps from one wave to the next, associativity, and a wave whose own sectors are more than L2
holds (its blocks are taken to move in step, so that what they share is still there when the last of them asks for it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import L2
from gemmsim.memory.grid.block_steps import BlockSteps, coordinates
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1
from gemmsim.memory.requests.coalescer import SECTOR_BYTES, Coalesced
from gemmsim.support.sorting import distinct, order_by
from gemmsim.trace.types import Launch, WarpTrace

_VISITS = 40_000_000  # sector visits that are worth their time: about half a second
_UNITS = (32, 16, 8, 4, 2)  # sectors
_LARGEST_RANGE = 1 << 28  # sectors: 8 GiB of addresses, 1.3 GB of this machine's
_visit = native_loop("grid/footprint_loop", "visit", "requests/cache_operations")


@dataclass(frozen=True)
class Footprint:
    """read_sectors: float64 [instructions] that DRAM reads for each; written_sectors: written back during the launch.

    new_share: float64 [instructions] of the sectors that a wave touches, those that DRAM reads for it
    """

    read_sectors: NDArray[np.float64]
    new_share: NDArray[np.float64]
    written_sectors: float


@dataclass(frozen=True)
class _Lists:
    """What blocks access, a sector and instruction once: list i has entries start[i]:start[i + 1], all int64."""

    start: NDArray[np.int64]
    sector: NDArray[np.int64]
    pc: NDArray[np.int64]
    kind: NDArray[np.int64]


@dataclass(frozen=True)
class _Visits:
    """Lists in the order of waves, each with its addresses moved: int64 [visits]. blocks: that visit it in the wave."""

    wave: NDArray[np.int64]
    list: NDArray[np.int64]
    move: NDArray[np.int64]
    blocks: NDArray[np.int64]


def estimate(
    trace: WarpTrace,
    launch: Launch,
    requests: L1Requests,
    coalesced: Coalesced,
    block_steps: BlockSteps,
    blocks_per_wave: int,
    l2: L2,
    warm: bool = False,
) -> Footprint | None:
    """The estimate; None where a grid axis in use has no known step, or the addresses lie too far apart.

    warm: the waves of the launch follow those of an identical one, which are not counted.
    """
    like = np.full(launch.blocks, int(np.argmax(trace.weight)), np.int64)  # executed block that each block is like
    like[trace.blocks] = np.arange(len(trace.blocks))
    at = coordinates(np.arange(launch.blocks), launch.grid)
    steps = at - at[trace.blocks[like]]
    if any(steps[:, axis].any() and not block_steps.known[axis] for axis in range(3)):
        return None
    # Instructions with the same step along every axis move together: their sectors are visited as one list.
    groups, group = np.unique(block_steps.step_bytes.T // SECTOR_BYTES, axis=0, return_inverse=True)
    lists = _lists(trace, requests, coalesced, group.reshape(-1), len(groups))
    moves = steps @ groups.T
    visits = _visits(like, moves, np.arange(launch.blocks) // blocks_per_wave)
    if not len(lists.sector):
        return Footprint(np.zeros(trace.executed.shape[1]), np.zeros(trace.executed.shape[1]), 0.0)
    low = int(lists.sector.min()) + int(moves.min())
    if int(lists.sector.max()) + int(moves.max()) + 1 - low > _LARGEST_RANGE:
        return None
    unit = _unit(lists, visits.move)
    lists, low, move = _in_units(lists, unit), low // unit, visits.move // unit
    units = int(lists.sector.max()) + int(move.max()) + 1 - low
    every = -(-int((lists.start[visits.list + 1] - lists.start[visits.list]).sum()) // _VISITS) or 1
    read, touched = np.zeros((2, trace.executed.shape[1]), np.int64)
    capacity = int(l2.size_bytes / SECTOR_BYTES / unit / every / _copies(visits, lists, l2.partitions))
    launches = 2 if warm else 1
    held = np.zeros(launches * (int(visits.wave[-1]) + 1) + 1, np.int64)
    last = np.zeros(units, np.int16 if 2 * len(held) + 1 <= np.iinfo(np.int16).max else np.int32)
    some = _every(lists, every)
    written = _visit(
        launches, some.start, some.sector - low, some.pc, some.kind, visits.wave, visits.list, move,
        capacity, held, last, read, touched,
    )  # fmt: skip
    new_share = read / np.maximum(touched, 1)
    return Footprint((read * (every * unit)).astype(np.float64), new_share, float(written * (every * unit)))


def _unit(lists: _Lists, move: NDArray[np.int64]) -> int:
    """Aligned sectors side by side that are always touched together, by the same instructions: what is true of one of
    them is true of all."""
    for unit in _UNITS:
        if len(lists.sector) % unit or (lists.start % unit).any() or (move % unit).any():
            continue
        sector = lists.sector.reshape(-1, unit)
        together = (sector == sector[:, :1] + np.arange(unit)).all() and not (sector[:, 0] % unit).any()
        if together and all((x.reshape(-1, unit) == x[::unit, None]).all() for x in (lists.pc, lists.kind)):
            return unit
    return 1


def _in_units(lists: _Lists, unit: int) -> _Lists:
    return _Lists(lists.start // unit, lists.sector[::unit] // unit, lists.pc[::unit], lists.kind[::unit])


def _every(lists: _Lists, every: int) -> _Lists:
    """Every m-th entry of each list, by sector: neighbours in memory one after the other, which is several times as
    fast; only those of one sector need to stay in order."""
    length = np.diff(lists.start)
    number = np.repeat(np.arange(len(length)), length)
    chosen = np.flatnonzero((np.arange(len(number)) - lists.start[number]) % every == 0)
    chosen = chosen[order_by(number[chosen], lists.sector[chosen])]
    start = np.concatenate([[0], np.cumsum(-(-length // every))])
    return _Lists(start, lists.sector[chosen], lists.pc[chosen], lists.kind[chosen])


def _lists(
    trace: WarpTrace, requests: L1Requests, coalesced: Coalesced, group: NDArray[np.int64], groups: int
) -> _Lists:
    """List block * groups + g: what instructions of group g touched in executed block `block`."""
    accesses = np.diff(requests.start[:: trace.warps_per_block])
    block = np.repeat(np.arange(len(trace.blocks)), accesses)
    pc_of_shape, kind_of_pc = np.zeros(len(coalesced.sectors), np.int64), np.zeros(len(group), np.int64)
    pc_of_shape[requests.shape], kind_of_pc[requests.pc] = requests.pc, requests.kind
    # Warps repeat each other's accesses: drop the repeats before each access becomes its sectors.
    block, shape, base = distinct(block, requests.shape, requests.sector)
    count = coalesced.sectors[shape]
    access = np.repeat(np.arange(len(shape)), count)
    within = np.arange(len(access)) - np.repeat(np.cumsum(count) - count, count)
    pc = pc_of_shape[shape[access]]
    sector = base[access] + coalesced.sector_offset[coalesced.sector_start[shape[access]] + within]
    number, pc, sector = distinct(block[access] * groups + group[pc], pc, sector)
    start = np.searchsorted(number, np.arange(len(trace.blocks) * groups + 1))
    kind = kind_of_pc[pc]
    return _Lists(start, sector, pc, np.where(kind == READ_PAST_L1, READ, kind))


def _visits(like: NDArray[np.int64], moves: NDArray[np.int64], wave: NDArray[np.int64]) -> _Visits:
    """Each wave's lists, without repeats: blocks of one wave that touch the same sectors find them in L2."""
    groups = moves.shape[1]
    columns = []
    for g in range(groups):
        places, place = np.unique(moves[:, g], return_inverse=True)
        key = (wave * (int(like.max()) + 1) + like) * len(places) + place.reshape(-1)
        _, first, blocks = np.unique(key, return_index=True, return_counts=True)
        columns.append(np.stack([wave[first], like[first] * groups + g, moves[first, g], blocks]))
    wave, number, move, blocks = np.concatenate(columns, axis=1)
    order = np.argsort(wave, kind="stable")
    return _Visits(wave[order], number[order], move[order], blocks[order])


def _copies(visits: _Visits, lists: _Lists, partitions: int) -> float:
    """Lines of L2 that a line takes, in the mean: one in the partition it belongs to and one in each other whose SMs
    read it. Each of the blocks that do is near to any of the partitions; what is only written has no copies."""
    if partitions == 1:
        return 1.0
    others = (partitions - 1) * (1 - (1 - 1 / partitions) ** visits.blocks.astype(np.float64))
    reads = np.concatenate([[0], np.cumsum(lists.kind == READ)])
    read = reads[lists.start[visits.list + 1]] - reads[lists.start[visits.list]]
    touched = lists.start[visits.list + 1] - lists.start[visits.list]
    return 1 + float(read @ others) / max(int(touched.sum()), 1)
