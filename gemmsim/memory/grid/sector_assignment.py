"""Whole sectors for single requests of a sample, where only sums or shares by instruction are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import Coalesced
from gemmsim.support.sorting import order_by

_count = native_loop("grid/execution_number_loop", "count")


def spread(amount: NDArray[np.float64], pc: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Whole numbers whose sum follows that of `amount`, float64 [n], along the accesses of each instruction.

    pc int32 [n]. No number is further than one from its amount; amounts that are whole numbers stay as they are.
    """
    order = order_by(pc)
    ends = np.flatnonzero(np.diff(pc[order], append=-1))
    total = np.cumsum(amount[order])
    before = np.repeat(np.concatenate([[0.0], total[ends[:-1]]]), np.diff(ends, prepend=-1)) if len(ends) else total
    whole = np.floor(total - before + 1e-6)
    step = np.diff(whole, prepend=0.0)
    step[ends[:-1] + 1] = whole[ends[:-1] + 1]
    out = np.zeros(len(amount), np.uint16)
    out[order] = step
    return out


def passes(pc: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often its warp has executed the instruction of each access before: int64 [n]. Arguments as of `together`."""
    time = np.empty(len(pc), np.int64)
    if len(pc):
        _count(pc, start, np.zeros((2, int(pc.max()) + 1), np.int64), time)
    return time


def brought_sectors(
    sectors: NDArray[np.int64], requests: L1Requests, coalesced: Coalesced, warps_per_block: int, fetch: int
) -> NDArray[np.int64]:
    """What DRAM would be read for each access, if L2 had nothing of it but what the block has asked for before.

    Pieces of `fetch` sectors are read at once, so of a row that a block goes along in steps of a sector every other
    step finds its sector there. An access counts as one that goes on if its first piece was asked for before.

    sectors  int64 [accesses] that each asks L2 for
    """
    if fetch == 1 or not len(sectors):
        return sectors
    offset = coalesced.sector_offset
    rows = np.repeat(np.arange(len(coalesced.sectors)), coalesced.sectors)
    pieces = [
        np.bincount(rows, np.diff(piece + rows * (1 << 40), prepend=-1) != 0, len(coalesced.sectors))
        for piece in ((offset + phase) // fetch for phase in range(fetch))
    ]
    first = requests.sector + offset[coalesced.sector_start[requests.shape]]
    warp = np.repeat(np.arange(len(requests.start) - 1), np.diff(requests.start))
    turn = np.arange(len(sectors)) - requests.start[warp]
    block, piece = warp // warps_per_block, first // fetch
    order = order_by(block, piece, turn)
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(block[order]) != 0) | (np.diff(piece[order]) != 0)
    earliest = np.empty(len(order), np.int64)
    earliest[order] = turn[order][new][np.cumsum(new) - 1]
    whole = np.stack(pieces)[requests.sector % fetch, requests.shape] * fetch / coalesced.sectors[requests.shape]
    return np.where(turn == earliest, np.rint(sectors * whole), 0).astype(np.int64)


def together(
    sectors: NDArray[np.int64],
    share: NDArray[np.float64],
    pc: NDArray[np.int32],
    start: NDArray[np.int64],
    warps_per_block: int,
) -> NDArray[np.uint16]:
    """Which of the sectors that accesses bring to L2 come from DRAM, where `share` of those of each instruction do.

    The warps of a block that execute an instruction for the n-th time read neighbouring parts of one tile, and the
    first block that reads it brings it to L2 for the others: all of them wait for DRAM, or none.

    sectors  int64 [n] that each access may bring; share float64 [instructions]; pc int32 [n]; start int64 [warps + 1]
    """
    if not len(pc):
        return np.zeros(0, np.uint16)
    warp = np.repeat(np.arange(len(start) - 1), np.diff(start))
    time = passes(pc, start)
    new = np.ones(len(pc), bool)
    block = warp // warps_per_block
    order = order_by(pc, block, time)
    new[1:] = (np.diff(pc[order]) != 0) | (np.diff(time[order]) != 0) | (np.diff(block[order]) != 0)
    tile = np.empty(len(pc), np.int64)
    tile[order] = np.cumsum(new) - 1
    size = np.bincount(tile, sectors)
    tile_pc = pc[order][new]
    wanted = size * share[tile_pc]
    total = np.cumsum(wanted)
    begin = np.flatnonzero(np.diff(tile_pc, prepend=-1))
    total -= np.repeat(total[begin] - wanted[begin], np.diff(begin, append=len(tile_pc)))  # anew for each instruction
    whole = np.maximum(size, 1.0)
    chosen = np.floor(total / whole + 0.5 + 1e-9) > np.floor((total - wanted) / whole + 0.5 + 1e-9)
    return np.where(chosen[tile], sectors, 0).astype(np.uint16)
